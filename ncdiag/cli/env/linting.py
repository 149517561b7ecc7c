"""The steps of ``ncdiag env lint``: find the settings, ask hosts for their devices, judge."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

from ncdiag.cli.env.arguments import Source, own_settings, read_file, source_of
from ncdiag.model.environment import LintFinding, LintSeverity, Profile, Setting
from ncdiag.model.errors import UsageError
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.profiles import placeholders
from ncdiag.profiles.context import HostDevices, LintContext
from ncdiag.profiles.lint import lint
from ncdiag.profiles.placeholders import HostValues
from ncdiag.profiles.sources import read_settings
from ncdiag.profiles.versions import in_range

if TYPE_CHECKING:
    from ncdiag.cli.way import Way

SYSTEM_FILE = Path("/etc/nccl.conf")
USER_FILE = ".nccl.conf"
FILE_VARIABLE = "NCCL_CONF_FILE"
# Reading some files of sysfs; a host that takes longer is stuck.
_DEVICES_S = 20.0
_ORDER = list(LintSeverity)


@dataclass(frozen=True, slots=True)
class Asked:
    """What hosts answered; ``values`` fill in profiles where this very host was asked."""

    hosts: tuple[HostDevices, ...] = ()
    unreachable: dict[str, str] = field(default_factory=dict)
    values: HostValues | None = None

    def reasons(self) -> list[tuple[str, str]]:
        """Hosts that could not be asked, folded, by the reason."""
        by_reason: dict[str, list[str]] = {}
        for host, why in self.unreachable.items():
            by_reason.setdefault(visible(why), []).append(visible(host))
        return [(fold(hosts), why) for why, hosts in by_reason.items()]


def this_host() -> Asked:
    """The devices of this host."""
    from ncdiag.health.devices import devices_here, values_here

    return Asked(hosts=(devices_here(),), values=values_here())


def fleet(nodes: str, way: "Way", messages: Console, *, verbose: bool) -> Asked:
    """The devices of each host of ``nodes``; all are asked at the same time."""
    from ncdiag.cluster.fleet import Call, CallError, Fleet, FleetOptions
    from ncdiag.cluster.inventory import read_hosts
    from ncdiag.health.devices import devices_task

    hosts = read_hosts(nodes)
    found: dict[str, HostDevices] = {}
    failed: dict[str, str] = {}

    def tell(host: str, text: str) -> None:
        if verbose:
            messages.print(f"{visible(host)}: {visible(text)}", soft_wrap=True)

    def note(call: Call) -> None:
        try:
            found[call.host] = msgspec.json.decode(call.result(), type=HostDevices)
        except (CallError, msgspec.MsgspecError) as error:
            failed[call.host] = f"{error}"

    options = FleetOptions(driver_address=way.driver_address)
    with Fleet(hosts, way.launcher_for(hosts), options=options) as members:
        members.start(tell)
        up = members.up
        calls = [members.call(h, devices_task, h.encode(), timeout_s=_DEVICES_S) for h in up]
        for call in members.as_completed(calls):
            note(call)
        failed |= {host: why for host, why in members.unreachable.items() if host not in found}
    return Asked(tuple(found[h.name] for h in hosts if h.name in found), failed)


@dataclass(frozen=True, slots=True)
class Linted:
    """The findings of all operands, errors first, and how many settings were looked at.

    ``unread`` are operands that name variables and set none that can be read.
    """

    findings: tuple[LintFinding, ...]
    settings: int
    unread: tuple[str, ...]


def lint_all(operands: Sequence[str], context: LintContext, values: HostValues | None) -> Linted:
    """Each operand is looked at by itself; without any, all layers of the environment together."""
    if not operands:
        settings = layers()
        missing = frozenset(_missing_file(settings))
        found = lint(settings, replace(context, missing_files=missing))
        return Linted(found, len(settings), ())
    findings: list[LintFinding] = []
    count = 0
    unread = []
    for source in map(source_of, operands):
        settings = source.settings
        if source.unread:
            unread.append(source.name)
        if source.in_crlf:
            findings.append(_in_crlf(source))
        if source.profile:
            findings += _for_another_release(source.profile, context)
        if values is not None:
            settings, unfilled = _filled(settings, values)
            findings += unfilled
        findings += lint(settings, context)
        count += len(settings)
    findings.sort(key=lambda one: _ORDER.index(one.severity))
    return Linted(tuple(findings), count, tuple(unread))


def _missing_file(settings: Iterable[Setting]) -> Iterable[str]:
    """The file that NCCL_CONF_FILE names, if it is not there."""
    for one in settings:
        if one.name == FILE_VARIABLE and one.value and not Path(one.value).is_file():
            yield one.value


def layers(root: Path = Path("/")) -> tuple[Setting, ...]:
    """What NCCL would find here: the environment, then the files that it reads after it."""
    files = []
    if named := os.environ.get(FILE_VARIABLE):
        files.append(named)
    if home := os.environ.get("HOME"):
        files.append(str(Path(home) / USER_FILE))
    files.append(str(root / SYSTEM_FILE.relative_to("/")))
    found = list(own_settings())
    for file in dict.fromkeys(files):
        if Path(file).is_file():
            found += read_settings(read_file(file), file)
    return tuple(found)


def _in_crlf(source: Source) -> LintFinding:
    return LintFinding(
        rule="carriage_return",
        severity=LintSeverity.WARNING,
        variable="",
        place=source.name,
        message="every line ends with a carriage return, which some readers add to the value",
        fix="save it with the line ends of Unix (dos2unix)",
    )


def _for_another_release(profile: Profile, context: LintContext) -> Iterable[LintFinding]:
    if profile.nccl and context.nccl and not in_range(context.nccl, profile.nccl):
        version = ".".join(map(str, context.nccl))
        yield LintFinding(
            rule="profile_version",
            severity=LintSeverity.WARNING,
            variable="",
            place=profile.path or profile.name,
            message=f"the profile is meant for NCCL {profile.nccl}, and not for {version}",
            fix="choose another profile, or another release of NCCL",
        )


def _filled(
    settings: Sequence[Setting], host: HostValues
) -> tuple[tuple[Setting, ...], list[LintFinding]]:
    """``settings`` with the values of this host, and a finding for each that has none here."""
    done: list[Setting] = []
    unfilled: list[LintFinding] = []
    for setting in settings:
        try:
            done.append(placeholders.filled(setting, host))
        except UsageError as error:
            unfilled.append(
                LintFinding(
                    rule="placeholder_empty",
                    severity=LintSeverity.ERROR,
                    variable=setting.name,
                    place=setting.place,
                    message=f"{error}",
                    fix="use this profile on hosts that have it, or another profile here",
                )
            )
    return tuple(done), unfilled
