"""A post-mortem in words, the same in every format."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ncdiag.diagnose.postmortem.guide import GUIDE, guide_of
from ncdiag.diagnose.postmortem.guide.codes import code_meaning
from ncdiag.diagnose.postmortem.phrases import time_of_day
from ncdiag.model.finding import (
    BenchmarkSummary,
    EvidenceLine,
    Finding,
    FindingClass,
    Network,
    Postmortem,
    PostmortemVerdict,
    Role,
    Suspect,
    SuspectKind,
)
from ncdiag.model.nodes import fold
from ncdiag.model.units import format_count
from ncdiag.report.describe import percent

_MAX_NAMES = 8
_MOST_CHARS = 2000
# Attributes that name a device, the most exact one first.
_DEVICES: Final = {"NIC": ("hca", "device", "interface"), "GPU": ("pci", "bus_id")}
# Of a work request: the host that speaks is at fault, or nobody.
_LOCAL_STATUSES: Final = frozenset({"1", "2", "4", "8", "9", "19", "21"})
_ON_ISOLATION: Final = re.compile(r"To isolate\b|No host is to be isolated\b")
_DIGITS: Final = re.compile(r"\d+")
_SENTENCE: Final = re.compile(r"(?<=[.?]) (?=[A-Z])")
# GPU and NIC are words of prose as well, but not where a command has its argument.
_WORDS: Final = re.compile(
    r"\b(?:HOST|PEER|PID|FILE|JOB|IFACE|ADDRESS)\b"
    r"|(?<=-i )GPU\b|(?:(?<=ibstat )|(?<=mstdump )|(?<=-d ))NIC\b"
)
_ORDER: Final = tuple(SuspectKind)
# A variable or an option, not a word for something that is set.
_SETTING: Final = re.compile(r"--\S+|[A-Z][A-Z0-9_]+(?:=\S*)?|[\w.]+[_.=][\w.=]*")
_PCI_FUNCTION: Final = re.compile(r"\.\d$")
_KINDS: Final = {SuspectKind.GPU: "GPU", SuspectKind.NIC: "NIC"}
_THE_APPLICATION: Final = frozenset({"application", "program", "the application", "the program"})


def headline(postmortem: Postmortem) -> str:
    """One line: what failed and where, or why that cannot be told."""
    if postmortem.verdict is PostmortemVerdict.FINDINGS and postmortem.findings:
        return _first(postmortem)
    if postmortem.verdict is PostmortemVerdict.OK:
        return _fine(postmortem)
    if not any(one.kinds for one in postmortem.inputs):
        return "nothing of NCCL, PyTorch or a kernel was recognised in the input"
    if postmortem.findings:
        return f"the logs cannot tell for sure; first to look at: {_first(postmortem)}"
    return "nothing certainly failed, but something is missing; give it the logs of all ranks"


def _first(postmortem: Postmortem) -> str:
    first = postmortem.findings[0]
    told = where(first, postmortem) or "the logs do not say where"
    return f"{first.class_}: {told} ({percent(first.confidence)} sure)"


def _fine(postmortem: Postmortem) -> str:
    warnings = sum(one.role is Role.WARNING for one in postmortem.findings)
    told = f", {format_count(warnings, 'warning')}" if warnings else ""
    return f"nothing failed in what was read{told}"


def where(finding: Finding, postmortem: Postmortem) -> str:
    """What is suspected, in words; empty where nothing is."""
    isolated = {one.host for one in postmortem.isolate}
    return suspects(finding.suspects, postmortem.job.hosts, isolated)


def first_time(finding: Finding) -> str:
    """When it was first seen, without what is odd of a time in a log; empty if not known."""
    first = finding.first_seen
    return time_of_day(first.time) if first and first.time else ""


def victims(finding: Finding, postmortem: Postmortem) -> list[str]:
    """The hosts that only suffered from it: nobody who is to be isolated, or is suspected here."""
    blamed = {one.host for one in postmortem.isolate} | {one.name for one in finding.suspects}
    return [name for name in finding.victims if name not in blamed]


def suspects(
    them: Sequence[Suspect], hosts: Collection[str] = (), isolated: Collection[str] = ()
) -> str:
    """``host gpu-04, NIC mlx5_2``: hosts first and folded.

    A host may be suspected for its settings only: then it is the place of the rest.
    """
    groups: dict[SuspectKind, list[str]] = {}
    places = []
    settings = {one.name for one in them if one.kind is SuspectKind.CONFIG}
    for kind, name in sorted(
        ((_kind(one, isolated), one.name) for one in them), key=lambda one: _ORDER.index(one[0])
    ):
        if kind is SuspectKind.CONFIG and name in hosts:
            places.append(name)
            continue
        known = kind is SuspectKind.APPLICATION and name in settings
        groups.setdefault(kind, []).append("application" if known else name)
    told = ", ".join(_group(kind, names) for kind, names in groups.items())
    place = listed(places, folded=True)
    return f"{told or 'settings'} on {place}" if place else told


def _kind(one: Suspect, isolated: Collection[str]) -> SuspectKind:
    """Of a host to isolate it is not the settings that count."""
    host = one.kind is SuspectKind.CONFIG and one.name in isolated
    return SuspectKind.HOST if host else one.kind


def _group(kind: SuspectKind, names: Sequence[str]) -> str:
    # A GPU's PCI address is printed with and without its function.
    names = [name for name in names if _PCI_FUNCTION.sub("", name) not in {*names} - {name}]
    if kind is SuspectKind.CONFIG:
        return ", ".join(f"setting {name}" if _SETTING.fullmatch(name) else name for name in names)
    if kind is SuspectKind.APPLICATION:
        named = [name for name in names if name not in _THE_APPLICATION]
        return f"the application ({listed(named)})" if named else "the application"
    word = _KINDS.get(kind, kind.value)
    many = "" if len(names) == 1 else "s"
    return f"{word}{many} {listed(names, folded=kind is SuspectKind.HOST)}"


def listed(names: Sequence[str], *, folded: bool = False) -> str:
    """Names with commas, host names folded; of very many the first."""
    if folded and len(names) > 1:
        return fold(names)
    more = len(names) - _MAX_NAMES
    rest = f" and {more} more" if more > 0 else ""
    return ", ".join(names[:_MAX_NAMES]) + rest


def job(postmortem: Postmortem, *, nics: bool = True) -> str:
    """One line: how large the job was, what it ran with; empty where nothing is known."""
    shape, library, network = postmortem.job, postmortem.library, postmortem.network
    ranks = format_count(shape.ranks, "rank") if shape.ranks else ""
    nodes = shape.nodes or len(shape.hosts)
    hosts = format_count(nodes, "host") if nodes else ""
    versions = " and ".join(library.versions[:3])
    parts = (
        " on ".join(part for part in (ranks, hosts) if part),
        " ".join(part for part in (library.name, versions) if part),
        _network(network, nics=nics) if network.name or network.nics else "",
    )
    return ", ".join(part for part in parts if part)


def _network(network: Network, *, nics: bool) -> str:
    gdr = {"on": "with GPUDirect", "off": "without GPUDirect", "mixed": "with GPUDirect in part"}
    named = listed(network.nics) if nics and network.nics else ""
    if named:
        named = f"({named})" if network.name else f"NICs {named}"
    parts = (network.name or "", gdr.get(network.gdr, ""), named)
    return " ".join(part for part in parts if part)


def read(postmortem: Postmortem, folder: str = "") -> str:
    """One line: what was read, below ``folder`` if that is the same for all."""
    inputs = postmortem.inputs
    kinds = sorted({kind for one in inputs for kind in one.kinds})
    errors = sum(one.error is not None and not one.bytes for one in inputs)
    cut = sum(one.truncated for one in inputs)
    holding = f" of {', '.join(kinds)}" if kinds else ""
    where = format_count(len(inputs) - errors, "file") + (f" in {folder}" if folder else "")
    parts = (
        _file(inputs[0].path) if len(inputs) == 1 and not errors else where,
        format_count(sum(one.lines for one in inputs), "line") + holding,
        f"{format_count(errors, 'file')} cannot be read" if errors else "",
        f"{format_count(cut, 'file')} not read to the end" if cut else "",
    )
    return ", ".join(part for part in parts if part)


def _file(path: str) -> str:
    return "standard input" if path == "-" else path


def cut(text: str) -> str:
    """A line of a log, but not more of it than anybody reads."""
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"


def benchmark(one: BenchmarkSummary) -> str:
    """One line: what was measured, and whether it can be believed."""
    figures = (("average", one.avg_busbw_gb_per_s), ("peak", one.peak_busbw_gb_per_s))
    parts = (
        (one.test or "a benchmark")
        + (f" on {format_count(one.ranks, 'rank')}" if one.ranks else ""),
        *(f"{name} {value:.4g} GB/s" for name, value in figures if value is not None),
        f"{one.out_of_bounds} values out of bounds" if one.out_of_bounds else "",
        "" if one.complete else "not finished",
    )
    return ", ".join(part for part in parts if part)


def story(postmortem: Postmortem) -> list[str]:
    """What happened, in order; whom to isolate has a place of its own."""
    return [sentence for sentence in postmortem.story if not _ON_ISOLATION.match(sentence)]


def isolate(postmortem: Postmortem) -> str:
    """The hosts to leave out, folded."""
    return fold(one.host for one in postmortem.isolate) if postmortem.isolate else "nobody"


def specific(finding: Finding) -> str:
    """What is known of this case, beside what holds for every one of its class."""
    return _with_code(finding, finding.explanation.removeprefix(meaning(finding)).strip())


def explanation(finding: Finding) -> str:
    """All that is known, the meaning of its number first."""
    return _with_code(finding, finding.explanation)


def _with_code(finding: Finding, text: str) -> str:
    code = code_meaning(finding.class_, finding.attributes)
    return f"{code[:1].upper()}{code[1:]}. {text}".strip() if code else text


def brief(text: str, chars: int) -> str:
    """The first sentences of ``text`` that fit, at least one."""
    kept = ""
    for sentence in _SENTENCE.split(text):
        longer = f"{kept} {sentence}".strip()
        if kept and len(longer) > chars:
            break
        kept = longer
    return kept


def unlike(lines: Sequence[EvidenceLine]) -> list[EvidenceLine]:
    """The lines that differ in more than their numbers, the first of each sort."""
    kept: dict[str, EvidenceLine] = {}
    for line in lines:
        kept.setdefault(_DIGITS.sub("", line.text), line)
    return list(kept.values())


def meaning(finding: Finding) -> str:
    """What the class of a finding means in general."""
    return GUIDE[finding.class_].meaning


def times(finding: Finding) -> str:
    """``once`` or ``14 times``."""
    return "once" if finding.count == 1 else f"{finding.count:,} times"


def next_command(finding: Finding, hosts: Collection[str] = ()) -> str:
    """The command to run first, with the names of this finding in it."""
    return filled(guide_of(finding.class_, finding.attributes).next, finding, hosts)


def filled(text: str, finding: Finding, hosts: Collection[str] = ()) -> str:
    """``text`` with the names that are known in place of ``HOST``, ``NIC`` and so on.

    ``hosts`` are those of the job.
    """
    names = _names(finding, hosts)
    return _WORDS.sub(lambda match: names.get(match[0], match[0]), text)


def _names(finding: Finding, hosts: Collection[str]) -> Mapping[str, str]:
    values = finding.attributes
    host, peer = _ends(finding)
    host = host or _only_host(finding, {*hosts} - {peer})
    found = {"HOST": host, "PEER": peer if peer != host else None}
    for word, keys in _DEVICES.items():
        found[word] = next((values[key] for key in keys if key in values), None)
    found["IFACE"], found["ADDRESS"] = values.get("interface"), values.get("pci")
    found["PID"], found["JOB"] = values.get("pid"), values.get("job")
    found["FILE"] = finding.first_seen.path if finding.first_seen else None
    return {word: name for word, name in found.items() if name and _SAFE.fullmatch(name)}


def _ends(finding: Finding) -> tuple[str | None, str | None]:
    """The host that speaks and the one it speaks of, as the guide's commands mean them."""
    suspect = next((one.name for one in finding.suspects if one.kind is SuspectKind.HOST), None)
    peer = finding.attributes.get("peer")
    speaks_of_peer = peer is not None or finding.class_ is FindingClass.IB_COMPLETION_ERROR
    victim = next((name for name in finding.victims if name != suspect), None)
    if suspect and speaks_of_peer and finding.attributes.get("status") not in _LOCAL_STATUSES:
        return victim, suspect
    return suspect or finding.attributes.get("host") or victim, peer


def _only_host(finding: Finding, hosts: Collection[str]) -> str | None:
    """The host whose settings are suspected, or the only one there is."""
    configured = (one.name for one in finding.suspects if one.kind is SuspectKind.CONFIG)
    return next((name for name in configured if name in hosts), None) or (
        next(iter(hosts)) if len(hosts) == 1 else None
    )


# What a shell takes as it stands; a log must not write commands for whoever copies them.
_SAFE: Final = re.compile(r"[\w.:%/+][\w.:%/+-]{0,200}", re.ASCII)
