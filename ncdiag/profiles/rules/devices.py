"""Lists of HCAs and interfaces: how they are written, and what they select on known hosts."""

import re
from collections.abc import Iterator

from ncdiag.model.environment import LintFinding, LintSeverity, Setting
from ncdiag.model.nodes import fold
from ncdiag.profiles.context import HostDevices
from ncdiag.profiles.matching import DeviceList, Entry, ListProblem, parse
from ncdiag.profiles.rules.look import Look, is_before, short
from ncdiag.profiles.rules.table import found

_INTERFACES = "NCCL_SOCKET_IFNAME"
_HCAS = "NCCL_IB_HCA"
# Starts of names that are nobody's whole name, as the kernel numbers devices, ports and slots:
# mlx5_0, bnxt_re0, rocep12s0, ibp24s0, hfi1_0, eth0, enp12s0f1np1.
_STEMS = {
    *("mlx", "mlx4", "mlx5", "bnxt_re", "irdma", "roce", "rocep", "ibp", "hfi1", "hns", "efa"),
    *("rdmap", "erdma", "mana", "eth", "en", "eno", "enp", "ens", "ib", "ibs", "bond", "hsn"),
}
# Names with one digit, so that ten devices more may exist, of drivers that number from 0 on.
_NUMBERED = re.compile(r"(?:mlx[45]_|bnxt_re|irdma|hns_|erdma_|mana_|hfi1_|efa_)[1-9]")
_DRIVERS = ("mlx4", "mlx5", "bnxt_re", "irdma", "roce", "ibp", "hns", "erdma", "mana", "hfi1")
# Interfaces of containers and virtual machines, beside lo.
_INSIDE = ("docker", "virbr", "veth", "cni", "flannel", "br-")
# The first release that takes rail and plane behind the port. Source: NCCL's tags, as for the
# grammar in profiles/matching.py.
_RAILS_SINCE = (2, 30, 3)
_SHOWN = 3

_RULE_OF = {
    ListProblem.BLANK: "list_blanks",
    ListProblem.INNER_CARET: "inner_caret",
    ListProblem.INNER_EQUALS: "inner_equals",
    ListProblem.WRONG_ORDER: "sign_order",
    ListProblem.BAD_PORT: "bad_port",
    ListProblem.TOO_MANY: "list_too_long",
    ListProblem.EXCLUDES_ALL: "excludes_all",
    ListProblem.IGNORED: "list_ignored",
}
_MESSAGE_OF = {
    ListProblem.BLANK: "blanks are part of a name, and no device is called {text}",
    ListProblem.INNER_CARET: "^ counts at the front of the list only; {text} is taken for a name",
    ListProblem.INNER_EQUALS: "= counts at the front of the list only; {text} is taken for a name",
    ListProblem.WRONG_ORDER: "^ behind = is taken for part of a name",
    ListProblem.BAD_PORT: "{text} names no port that exists",
    ListProblem.TOO_MANY: "{text} entries, of which NCCL reads 32",
    ListProblem.EXCLUDES_ALL: "{text} takes every device away",
    ListProblem.IGNORED: "{text} is too short: one letter is not read",
}


def check(setting: Setting, look: Look) -> Iterator[LintFinding]:
    """What is wrong with the list of devices in ``setting``."""
    value = setting.value or ""
    sockets = setting.name == _INTERFACES
    listed = parse(value, sockets=sockets)
    for problem, text in dict.fromkeys(listed.problems):
        shown_text = repr(short(text)) if problem is ListProblem.BLANK else short(text)
        message = _MESSAGE_OF[problem].format(text=shown_text)
        yield found(_RULE_OF[problem], setting, message, _rewritten(problem, setting, listed))
    rails = [entry for entry in listed.entries if entry.rail is not None]
    if rails and look.context.nccl is not None and is_before(look.context.nccl, _RAILS_SINCE):
        message = "rail and plane behind the port are read from NCCL 2.30.3 on"
        yield found("value_too_new", setting, message, "write name:port")
    if not listed.entries:
        return
    yield from _loopback(setting, listed, look)
    known = [
        (host, devices)
        for host in look.context.hosts
        if (devices := _of(host, setting.name)) is not None
    ]
    if known:
        yield from _on_hosts(setting, listed, known)
    elif not any(problem is ListProblem.WRONG_ORDER for problem, _ in listed.problems):
        yield from _by_name(setting, listed, sockets=sockets)


def _of(host: HostDevices, name: str) -> tuple[str, ...] | None:
    return {_INTERFACES: host.interfaces, _HCAS: host.hcas}.get(name)


def _rewritten(problem: ListProblem, setting: Setting, listed: DeviceList) -> str | None:
    """The list as it was meant, where that can be told."""
    if problem not in (ListProblem.BLANK, ListProblem.INNER_EQUALS, ListProblem.WRONG_ORDER):
        return None
    texts = (setting.value or "").lstrip("^=").split(",")
    names = [text.strip().lstrip("^=") for text in texts]
    order = any(found_problem is ListProblem.WRONG_ORDER for found_problem, _ in listed.problems)
    exact = listed.exact or problem is ListProblem.INNER_EQUALS
    signs = ("^" if listed.exclude or order else "") + ("=" if exact else "")
    return f"write {setting.name}={short(signs + ','.join(name for name in names if name))}"


def _by_name(setting: Setting, listed: DeviceList, *, sockets: bool) -> Iterator[LintFinding]:
    """What names say by themselves, where no host's devices are known."""
    names = [entry.name for entry in listed.entries]
    stems = [name for name in names if name.rstrip("_") in _STEMS] if listed.exact else []
    upper = [name for name in names if name.lower().startswith(_DRIVERS) and name != name.lower()]
    if stems and (listed.exclude or len(stems) < len(names)):
        message = f"after = a name must be whole, and no device is called {_some(stems)}"
        yield found("no_such_device", setting, message)
    elif stems:
        text = short(",".join(stems))
        message = f"={text} selects no device: after = a name must be whole"
        fix = f"write {setting.name}={text} for all that begin so, or whole names after ="
        yield found("matches_nothing", setting, message, fix)
    elif upper and not sockets and not listed.exclude and len(upper) == len(names):
        message = f"{short(upper[0])} selects no device: names are lower case"
        fix = f"write {setting.name}={short((setting.value or '').lower())}"
        yield found("matches_nothing", setting, message, fix)
    if not listed.exact and not sockets:
        yield from _ambiguous(setting, listed, None)


def _ambiguous(
    setting: Setting, listed: DeviceList, devices: tuple[str, ...] | None
) -> Iterator[LintFinding]:
    """Entries that are one device's whole name and the start of another's."""
    wide = _wider_than_meant([entry.name for entry in listed.entries], devices)
    if not wide:
        return
    name, more = next(iter(wide.items()))
    verb = "also excludes" if listed.exclude else "also matches"
    rest = f", and {len(wide) - 1} more are like it" if len(wide) > 1 else ""
    where = "" if devices is not None else " where there is one"
    exact = ("^=" if listed.exclude else "=") + (setting.value or "").lstrip("^")
    yield found(
        "prefix_also_matches",
        setting,
        f"{short(name)} is a prefix and {verb} {_some(more)}{where}{rest}",
        f"write {setting.name}={short(exact)}",
    )


def _wider_than_meant(names: list[str], devices: tuple[str, ...] | None) -> dict[str, list[str]]:
    longer: dict[str, list[str]] = {}
    for name in names:
        if devices is None:
            # mlx5_1 also is the start of mlx5_10; who lists mlx5_10 as well means both.
            if _NUMBERED.fullmatch(name):
                more = [other for other in names if other != name and other.startswith(name)]
                longer[name] = [] if more else [f"{name}0"]
        elif name in devices:
            more = [device for device in devices if device.startswith(name) and device != name]
            longer[name] = [device for device in more if device not in names]
    return {name: more for name, more in longer.items() if more}


def _on_hosts(
    setting: Setting, listed: DeviceList, known: list[tuple[HostDevices, tuple[str, ...]]]
) -> Iterator[LintFinding]:
    """What the list selects of the devices of known hosts."""
    empty = [host.host for host, devices in known if not any(map(listed.selects, devices))]
    if len(empty) == len(known):
        text = short(setting.value or "")
        has = _some(list(known[0][1]))
        message = f"{text} selects no device of {_folded(empty)}, where there is {has or 'none'}"
        yield found("matches_nothing", setting, message, f"name one of {has}" if has else None)
        return
    if empty:
        yield found(
            "missing_on_some_hosts",
            setting,
            f"{short(setting.value or '')} selects no device of {_folded(empty)} "
            f"({len(empty)} of {len(known)} hosts)",
        )
    missing = [entry for entry in listed.entries if not _matched(entry, listed, known)]
    if missing and not (listed.exclude and setting.name == _INTERFACES):
        names = _some([entry.name for entry in missing])
        place = f"of {known[0][0].host}" if len(known) == 1 else "of any host"
        yield found("no_such_device", setting, f"{names} matches no device {place}")
    if not listed.exact:
        devices = tuple(dict.fromkeys(device for _, all_of in known for device in all_of))
        yield from _ambiguous(setting, listed, devices)


def _folded(hosts: list[str]) -> str:
    return fold(short(host) for host in hosts)


def _matched(
    entry: Entry, listed: DeviceList, known: list[tuple[HostDevices, tuple[str, ...]]]
) -> bool:
    return any(listed.matches(entry, device) for _, devices in known for device in devices)


def _loopback(setting: Setting, listed: DeviceList, look: Look) -> Iterator[LintFinding]:
    if setting.name != _INTERFACES or listed.exclude or look.multi_host() is False:
        return
    names = [entry.name for entry in listed.entries]
    inside = [name for name in names if name == "lo" or name.startswith(_INSIDE)]
    if inside and len(inside) == len(names):
        yield found(
            "loopback",
            setting,
            f"{short(inside[0])} reaches no other host",
            None,
            LintSeverity.ERROR if look.multi_host() else None,
        )


def _some(names: list[str]) -> str:
    shown = ", ".join(short(name) for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
