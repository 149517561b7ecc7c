"""``ncdiag topo check``: what is wrong with topology dumps."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ncdiag.cli import console, options
from ncdiag.cli.topo.arguments import Live
from ncdiag.model.errors import ExitCode, NcdiagError, UsageError
from ncdiag.model.text import visible

if TYPE_CHECKING:
    from ncdiag.health.topology.pcie_links import PcieLinks
    from ncdiag.model.topology import Topology
    from ncdiag.report.topology.check import Checked


Dumps = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        show_default=False,
        help="Topology dumps, or folders of them; plain or compressed. - is standard input.",
    ),
]


def check(
    paths: Dumps = None,
    *,
    live: Live = None,
    output_format: options.Format = options.OutputFormat.TEXT,
    verbose: options.Verbose = False,
    no_color: options.NoColor = False,
    explain: options.Explain = None,
    list_classes: options.ListClasses = False,
) -> ExitCode:
    """Say what is wrong with topology dumps: links that are missing, slow, or contradict.

    Devices are compared with their like in the same dump. The exit code is 0 when nothing is
    wrong, 1 with a finding that is degraded or fatal, 3 for a dump that is cut short.
    """
    as_json = output_format is options.OutputFormat.JSON
    if explain is not None or list_classes:
        return _classes(explain, as_json=as_json, no_color=no_color)
    if not paths and live is None:
        raise UsageError("nothing to check; name topology dumps, or --live with a tool")
    from ncdiag.report.topology import check as report

    inputs = _inputs(paths or [], live.value if live else None)
    _tell_errors(inputs, console.messages(no_color=no_color))
    if as_json:
        console.write(report.render_json(inputs))
    else:
        report.render_text(inputs, console.results(no_color=no_color), verbose=verbose)
    return report.exit_code(inputs)


def _inputs(paths: Sequence[str], live: str | None) -> "list[Checked]":
    """Each input, read and judged; raises the error of the only one, or of all that failed."""
    from ncdiag.report.topology.check import Checked

    inputs, errors = [], []
    for name, dump in _read(paths, live):
        if isinstance(dump, NcdiagError):
            errors.append(dump)
            inputs.append(Checked(name, None, "", error=str(dump)))
        else:
            inputs.append(_checked(name, dump))
    if len(errors) == len(inputs):
        # What was cut short could not be decided, which is more than that the rest is no dump.
        first = max(errors, key=lambda error: error.exit_code)
        more = f" (and {len(errors) - 1} more cannot be judged)" if len(errors) > 1 else ""
        raise type(first)(f"{first}{more}")
    return inputs


def _read(
    paths: Sequence[str], live: str | None
) -> "Iterator[tuple[str, Topology | PcieLinks | NcdiagError]]":
    from ncdiag.cli.topo.reading import files, live_dump, read_each

    for path in files(paths):
        yield from read_each(path)
    if live is not None:
        try:
            dump: Topology | NcdiagError = live_dump(live)
        except NcdiagError as error:
            dump = error
        yield f"live:{live}", dump


def _checked(name: str, dump: "Topology | PcieLinks") -> "Checked":
    from ncdiag.diagnose.topology.check import check as check_topology
    from ncdiag.diagnose.topology.classes import has_amd_gpus
    from ncdiag.health.topology.pcie_links import KIND, PcieLinks, check_links
    from ncdiag.report.topology import pcie
    from ncdiag.report.topology.check import Checked
    from ncdiag.report.topology.text import describe

    if isinstance(dump, PcieLinks):
        return Checked(name, KIND, pcie.describe(dump), check_links(dump))
    amd = has_amd_gpus(dump)
    return Checked(name, dump.kind.value, describe(dump), check_topology(dump), amd=amd)


def _tell_errors(inputs: "Sequence[Checked]", messages: Console) -> None:
    for one in inputs:
        if one.error:
            messages.print(f"ncdiag: {visible(one.error)}", soft_wrap=True)


def _classes(explain: str | None, *, as_json: bool, no_color: bool) -> ExitCode:
    from ncdiag.diagnose.topology.classes import CLASSES
    from ncdiag.report.topology import classes

    chosen = [classes.find(explain)] if explain is not None else list(CLASSES)
    if as_json:
        console.write(classes.render_json(chosen))
    elif explain is not None:
        classes.explain(chosen[0], console.results(no_color=no_color))
    else:
        classes.list_all(console.results(no_color=no_color))
    return ExitCode.DONE
