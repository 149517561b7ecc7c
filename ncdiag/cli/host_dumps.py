"""The topology dumps of ``sweep --topology``: one of all hosts alike, or a folder of theirs."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from ncdiag.cli.topo.reading import read_dump
from ncdiag.expect.dumped_nics import read_host_dump
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host, HostDump
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible


def read_host_dumps(path: str, hosts: Sequence[Host], messages: Console) -> tuple[HostDump, ...]:
    """What the dumps at ``path`` say of the NICs of ``hosts``; says which hosts have none.

    Raises :class:`UsageError` for what cannot be read or a folder without any host's dump, and
    :class:`UndecidedError` for a dump that is cut short.
    """
    folder = Path(path)
    if not folder.is_dir():
        return (read_host_dump(read_dump(path), "", folder.name),)
    found: list[HostDump] = []
    missing: list[str] = []
    for host in hosts:
        file = _dump_of(folder, host.name)
        if file is None:
            missing.append(host.name)
        else:
            found.append(read_host_dump(read_dump(str(file)), host.name, file.name))
    if not found:
        raise UsageError(
            f"{visible(path)} has no dump of any host; they are called after them: "
            f"{hosts[0].name}.xml"
        )
    if missing:
        messages.print(
            f"--topology {visible(path)}: no dump, so what they say of themselves counts, of "
            f"{len(missing)} of {len(hosts)} hosts: {fold(missing)}",
            soft_wrap=True,
        )
    return tuple(found)


def _dump_of(folder: Path, host: str) -> Path | None:
    """``HOST.xml``, which may be compressed."""
    for ending in (".xml", ".xml.gz", ".xml.zst", ".xml.xz", ".xml.bz2"):
        if (file := folder / f"{host}{ending}").exists():
            return file
    return None
