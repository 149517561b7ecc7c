"""The hosts a command works on: a hosts file, a node set on the command line, or standard input.

``parse_hosts`` is pure and understands the hosts file of the command line contract; everything
that does not parse is one :class:`UsageError` that names the line and how to put it right.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import lru_cache
from pathlib import PurePath
from typing import Any, BinaryIO, Final

from ncdiag.cluster.names import (
    BRACKETS,
    SHOWN_CHARS,
    check_count,
    check_port,
    check_target,
    check_user,
    expand,
    shown,
)
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host
from ncdiag.model.text import visible
from ncdiag.model.units import parse_rate_gbit_per_s

# MAX_HOSTS lines of about 160 bytes.
MAX_FILE_BYTES: Final = 16 * 1024**2

_MAX_LABEL_CHARS = 64
_MAX_PATH_CHARS = 1024
_FILE_SUFFIXES = {".cfg", ".conf", ".csv", ".hosts", ".ini", ".json", ".list", ".lst", ".txt"}

_ODD = re.compile(r"[^A-Za-z0-9._\-:@%\[\],]")
_NIC = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:-]{0,63}")
_LINE_END = re.compile(r"\r\n?|\n")


def read_hosts(
    nodes: str | None, stdin: BinaryIO | None = None, *, at_least: int = 1
) -> tuple[Host, ...]:
    """The hosts of ``--nodes``: an existing file first, else a node set; ``-`` is standard input.

    ``None`` is the Slurm allocation around us. ``at_least`` is how many different hosts the command
    needs. Raises :class:`UsageError`.
    """
    hosts, source = _read(nodes, stdin)
    if len(hosts) >= at_least:
        return hosts
    hint, remedy = "", "add hosts to it, one a line"
    if nodes is None:
        remedy = f"ask for more nodes (salloc -N{at_least})"
    if nodes and source == "--nodes":
        hint = f" (there is no file {shown(nodes)}, so it was read as a host name)"
    raise UsageError(
        f"{source}: {_plural(len(hosts))} given, at least {at_least} needed{hint}; {remedy}"
    )


def parse_hosts(text: str, source: str) -> tuple[Host, ...]:
    """The hosts of a hosts file in the file's order, each once; raises :class:`UsageError`.

    ``source`` is what the errors call the file.
    """
    hosts = _Hosts()
    for number, line in enumerate(_LINE_END.split(text), start=1):
        words = line.partition("#")[0].split()
        if words:
            try:
                hosts.add(_parse_entry(words), number)
            except UsageError as error:
                raise UsageError(f"{source}:{number}: {error}") from None
    if not hosts.found:
        raise UsageError(f"{source}: no hosts in it; write one host a line, such as gpu[001-008]")
    return tuple(hosts.found.values())


def check_hosts(hosts: Sequence[Host]) -> None:
    """Refuse hosts that no hosts file can hold, for those that were read from elsewhere.

    Raises :class:`UsageError`.
    """
    seen = set()
    for host in hosts:
        for name in (host.name, host.address):
            check_target(name)
        if host.user is not None:
            check_user(host.user)
        if host.port is not None:
            check_port(host.port)
        if host.nics:
            _parse_nics("nic", ",".join(host.nics))
        if host.root is not None:
            _parse_root("root", host.root)
        if host.name in seen:
            raise UsageError(f"{host.name} stands there twice")
        seen.add(host.name)


def _read(nodes: str | None, stdin: BinaryIO | None) -> tuple[tuple[Host, ...], str]:
    if nodes is None:
        allocation = os.environ.get("SLURM_JOB_NODELIST")
        if not allocation:
            raise UsageError("no hosts given; add --nodes hosts.txt or --nodes 'gpu[001-008]'")
        return _parse_node_set(allocation, "SLURM_JOB_NODELIST"), "SLURM_JOB_NODELIST"
    if nodes == "-":
        return parse_hosts(_read_text(stdin or sys.stdin.buffer, "stdin"), "stdin"), "stdin"
    if os.path.exists(nodes):  # noqa: PTH110 - unlike Path.exists it takes over-long names
        source = visible(nodes)
        try:
            with open(nodes, "rb") as file:  # noqa: PTH123 - the path is used as it was typed
                return parse_hosts(_read_text(file, source), source), source
        except IsADirectoryError:
            raise UsageError(f"--nodes {source}: this is a directory, not a hosts file") from None
        except OSError as error:
            raise UsageError(f"--nodes {source}: cannot be read: {error.strerror}") from None
    if "/" in nodes or PurePath(nodes).suffix in _FILE_SUFFIXES:
        raise UsageError(f"--nodes {shown(nodes)}: no such file; check the path")
    return _parse_node_set(nodes, "--nodes"), "--nodes"


def _read_text(file: BinaryIO, source: str) -> str:
    data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(
            f"{source}: larger than {MAX_FILE_BYTES // 1024**2} MiB; is it a hosts file?"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(_LINE_END.findall(data[: error.start].decode("latin-1"))) + 1
        raise UsageError(
            f"{source}:{line}: not UTF-8 text (byte 0x{data[error.start]:02x}); is it a hosts file?"
        ) from None


def _parse_node_set(text: str, source: str) -> tuple[Host, ...]:
    """Hosts of ``a,b,gpu[1-4]``: entries without attributes, parted by commas or blanks."""
    hosts = _Hosts()
    try:
        for entry in re.split(r"[,\s]+(?![^\[]*\])", text):
            if entry:
                hosts.add(_parse_entry([entry]), 1)
    except UsageError as error:
        quoted = "" if shown(text) in f"{error}" else f" {shown(text)}"
        raise UsageError(f"{source}{quoted}: {error}") from None
    if not hosts.found:
        raise UsageError(f"{source} is empty; name a hosts file or a node set such as gpu[001-008]")
    return tuple(hosts.found.values())


@dataclass(slots=True)
class _Hosts:
    """The hosts found so far, and the line on which each was first given."""

    found: dict[str, Host] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def add(self, hosts: Iterator[Host], line: int) -> None:
        for host in hosts:
            before = self.found.setdefault(host.name, host)
            if before is host:
                self.lines[host.name] = line
                check_count(len(self.found))
            elif before != host:
                raise UsageError(
                    f"{host.name} was already given on line {self.lines[host.name]} with "
                    f"{_difference(before, host)}; keep one of the two"
                )


def _difference(before: Host, now: Host) -> str:
    pairs = [
        (item.name, getattr(before, item.name), getattr(now, item.name)) for item in fields(now)
    ]
    name, first, second = next(pair for pair in pairs if pair[1] != pair[2])
    key = _KEY_OF_FIELD.get(name, name)
    return f"{_setting(key, first)}, here {_setting(key, second)}"


def _setting(key: str, value: object) -> str:
    if value in (None, ()):
        return f"no {key}="
    return f"{key}={','.join(value) if isinstance(value, tuple) else value}"


def _parse_entry(words: list[str]) -> Iterator[Host]:
    """The hosts of one line's words; everything is checked before the first host comes out."""
    entry, *rest = words
    attributes = _parse_attributes(tuple(rest))
    user, port, target = _split_login(entry)
    names = expand(target)
    address = attributes.pop("address", None)
    if address is not None and len(names) > 1:
        raise UsageError(
            f"address= belongs to one host, but {shown(target)} names {len(names)}; "
            "write a line for each"
        )
    return (
        Host(name=name, address=address or name, user=user, port=port, **attributes)
        for name in names
    )


def _split_login(entry: str) -> tuple[str | None, int | None, str]:
    """Parts ``user@name:port`` and ``name:slots``; the slots are checked and dropped."""
    if entry.startswith("-"):
        raise UsageError(f"{shown(entry)} starts with '-': it would be taken for an option")
    odd = _ODD.search(entry)
    if odd:
        raise UsageError(
            f"{shown(odd[0])} cannot stand in a host name ({shown(entry)}); "
            "letters, digits and ._-:@%[], can"
        )
    if "," in BRACKETS.sub("", entry):
        raise UsageError(f"a comma stands only inside brackets ({shown(entry)}): one entry a line")
    user, at, target = entry.rpartition("@")
    if at and not user:
        raise UsageError(f"{shown(entry)}: groups are off; name the hosts, such as gpu[001-008]")
    target, number = _split_number(target)
    if not at:
        return None, None, target
    return check_user(user), None if number is None else check_port(number), target


def _split_number(target: str) -> tuple[str, int | None]:
    """Parts ``name:number``; a bare IPv6 address has no number after it."""
    if target.count(":") > 1 and "]" not in target:
        return target, None
    name, colon, number = target.rpartition(":")
    if not colon or "]" in number:
        return target, None
    if not re.fullmatch(r"\d{1,6}", number, re.ASCII):
        raise UsageError(
            f"{shown(number)} is no number ({shown(target)}); write user@host:port or host:slots"
        )
    return name, int(number)


def _parse_attributes(words: tuple[str, ...]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    seen = set()
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(
                f"expected key=value after the host, not {shown(word)}; one entry a line"
            )
        if key not in _ATTRIBUTES:
            raise UsageError(f"unknown key {shown(key)}{_suggestion(key)}")
        if key in seen:
            raise UsageError(f"{key}= is given twice")
        if not value:
            raise UsageError(f"{key}= has no value")
        seen.add(key)
        name, parse = _ATTRIBUTES[key]
        parsed = parse(key, value)
        if name:
            attributes[name] = parsed
    return attributes


def _suggestion(key: str) -> str:
    near = get_close_matches(key.lower(), _ATTRIBUTES, n=1)
    if near:
        return f"; did you mean {near[0]}=?"
    return f"; known are {' '.join(f'{known}=' for known in _ATTRIBUTES)}"


def _parse_label(key: str, value: str) -> str:
    if len(value) > _MAX_LABEL_CHARS or not value.isprintable() or set(value) & set("|,"):
        raise UsageError(
            f"{key}={shown(value)}: a name of up to {_MAX_LABEL_CHARS} printable characters "
            "without | and , is needed"
        )
    return value


def _parse_nics(key: str, value: str) -> tuple[str, ...]:
    nics = tuple(value.split(","))
    for nic in nics:
        if not _NIC.fullmatch(nic):
            raise UsageError(f"{key}={shown(value)}: {shown(nic)} is no NIC; write eth0,eth1")
    if len(set(nics)) < len(nics):
        raise UsageError(f"{key}={shown(value)}: a NIC stands there twice")
    return nics


@lru_cache(maxsize=1024)
def _parse_rate(key: str, value: str) -> float:
    if len(value) > SHOWN_CHARS:
        raise UsageError(f"{key}={shown(value)}: not a rate; write {key}=400gbit")
    try:
        return parse_rate_gbit_per_s(value)
    except UsageError as error:
        raise UsageError(f"{key}=: {error}") from None


def _parse_count(key: str, value: str) -> int:
    if not re.fullmatch(r"\d{1,6}", value, re.ASCII):
        raise UsageError(f"{key}={shown(value)}: a number is needed, such as {key}=8")
    return int(value)


def _parse_address(key: str, value: str) -> str:
    if value.startswith("-") or _ODD.search(value):
        raise UsageError(f"{key}={shown(value)}: a host name or an IP address is needed")
    return check_target(value)


def _parse_root(key: str, value: str) -> str:
    if not value.startswith("/") or not value.isprintable() or len(value) > _MAX_PATH_CHARS:
        raise UsageError(
            f"{key}={shown(value)}: an absolute path is needed, such as {key}=/var/lib/facts/gpu7"
        )
    return value


_Parser = Callable[[str, str], Any]
# Key in the file, the field of Host it fills (none: understood and not needed), and its parser.
_ATTRIBUTES: Final[dict[str, tuple[str | None, _Parser]]] = {
    "leaf": ("leaf", _parse_label),
    "rack": ("rack", _parse_label),
    "nic": ("nics", _parse_nics),
    "rate": ("rate_gbit_per_s", _parse_rate),
    "uplink": ("uplink_gbit_per_s", _parse_rate),
    "gpus": ("gpus", _parse_count),
    "root": ("root", _parse_root),
    "address": ("address", _parse_address),
    # Open MPI's: how many ranks a host takes.
    "slots": (None, _parse_count),
    "max_slots": (None, _parse_count),
    "max-slots": (None, _parse_count),
}
_KEY_OF_FIELD = {name: key for key, (name, _) in _ATTRIBUTES.items() if name}


def _plural(hosts: int) -> str:
    return "1 host" if hosts == 1 else f"{hosts} hosts"
