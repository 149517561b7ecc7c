"""Who differs from nearly all other hosts, and what that means for them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

from ncdiag.health.checks.check import Check, UsualPort, quoted, usual
from ncdiag.health.checks.limits import Limits
from ncdiag.health.checks.of_many import CLOCK_SKEW, UNLIKE_FLEET
from ncdiag.health.checks.ports import ACTIVE, port_name
from ncdiag.health.checks.ports import CHECKS as PORT_CHECKS
from ncdiag.model.health import Difference, HealthFacts, HealthFinding, IbPort, Severity
from ncdiag.model.units import format_bytes, format_rate

_PORTS = {check.id: check for check in PORT_CHECKS}
# Versions that jobs notice; what a distribution calls itself is told by its kernel.
_VERSIONS = ("driver", "amdgpu", "cuda", "nccl", "ofed", "kernel", "gdrcopy", "bios")
_SETTINGS = ("iommu", "numa_balancing", "cpu_governor")
_LIMITS = ("memlock", "nofile")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing the hosts gave; ``compared`` are the hosts that each check could look at."""

    differences: tuple[Difference, ...] = ()
    findings: Mapping[str, tuple[HealthFinding, ...]] = field(default_factory=dict)
    compared: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def not_compared(self, check: str, host: str) -> str | None:
        """Why ``check`` was not made for ``host``; ``None`` where it was."""
        if host in self.compared.get(check, ()):
            return None
        return "too few hosts tell enough to compare them"


def compare(facts: Mapping[str, HealthFacts], limits: Limits) -> Comparison:
    """Compare all hosts, property by property."""
    differences: list[Difference] = []
    found: dict[str, list[HealthFinding]] = {}
    alike: set[str] = set()
    for what, values in _properties(facts).items():
        most = usual(values.values(), limits)
        if most is None:
            continue
        alike.update(values)
        differences.extend(_differences(what, values, most))
        for host, value in values.items():
            if value != most:
                number = sum(other == most for other in values.values())
                found.setdefault(host, []).append(_unlike(what, value, most, number))
    _add(found, _ports(facts, limits))
    skewed, timed = _clocks(facts, limits)
    _add(found, skewed)
    return Comparison(
        tuple(differences),
        {host: tuple(findings) for host, findings in found.items()},
        {UNLIKE_FLEET.id: frozenset(alike), CLOCK_SKEW.id: frozenset(timed)},
    )


def _add(found: dict[str, list[HealthFinding]], more: Iterator[tuple[str, HealthFinding]]) -> None:
    for host, finding in more:
        found.setdefault(host, []).append(finding)


def _properties(facts: Mapping[str, HealthFacts]) -> dict[str, dict[str, str]]:
    """What is compared, with the value of each host that tells it."""
    properties: dict[str, dict[str, str]] = {}
    for host, told in facts.items():
        for what, value in _of_host(told):
            properties.setdefault(what, {})[host] = value
    return properties


def _of_host(facts: HealthFacts) -> Iterator[tuple[str, str]]:
    for name in _VERSIONS:
        if version := facts.versions.get(name):
            yield name, version
    for name in _SETTINGS:
        if setting := facts.settings.get(name):
            yield name, setting
    for name in _LIMITS:
        if (bound := facts.limits.get(name)) is not None:
            yield f"limit of {name}", "unlimited" if bound == -1 else str(bound)
    if facts.cpus is not None:
        yield "CPUs", str(facts.cpus)
    yield from _of_gpus(facts)
    yield from _of_ports(facts)


def _of_gpus(facts: HealthFacts) -> Iterator[tuple[str, str]]:
    gpus = [gpu for gpu in facts.gpus if not gpu.lost]
    if not facts.gpus:
        return
    yield "GPUs", str(len(facts.gpus))
    columns = {
        "GPU model": [gpu.name for gpu in gpus],
        "VBIOS": [gpu.vbios for gpu in gpus],
        "GPU memory": [
            None if gpu.memory_total_bytes is None else format_bytes(gpu.memory_total_bytes)
            for gpu in gpus
        ],
        "power limit": [
            None if gpu.power_limit_w is None else f"{gpu.power_limit_w:.0f} W" for gpu in gpus
        ],
        "persistence mode": [_switch(gpu.persistence_mode) for gpu in gpus],
        "MIG mode": [_switch(gpu.mig_mode) for gpu in gpus],
        "ECC mode": [_switch(gpu.ecc_mode) for gpu in gpus],
        "compute mode": [gpu.compute_mode for gpu in gpus],
    }
    for what, values in columns.items():
        if known := sorted({value for value in values if value is not None}):
            yield what, ", ".join(known)


def _switch(value: bool | None) -> str | None:  # noqa: FBT001
    return None if value is None else "on" if value else "off"


def _of_ports(facts: HealthFacts) -> Iterator[tuple[str, str]]:
    if not facts.ib_ports:
        return
    yield "RDMA ports", str(len(facts.ib_ports))
    by_board: dict[str, set[str]] = {}
    for port in facts.ib_ports:
        if port.firmware:
            by_board.setdefault(port.board or "adapters", set()).add(port.firmware)
    for board, firmwares in by_board.items():
        yield f"firmware of {quoted(board)}", ", ".join(sorted(firmwares))


def _differences(what: str, values: Mapping[str, str], most: str) -> Iterator[Difference]:
    others: dict[str, list[str]] = {}
    for host, value in values.items():
        if value != most:
            others.setdefault(value, []).append(host)
    number = len(values) - sum(map(len, others.values()))
    for other, hosts in others.items():
        yield Difference(
            what=what,
            most=quoted(most),
            most_hosts=number,
            other=quoted(other),
            hosts=tuple(hosts),
        )


def _unlike(what: str, value: str, most: str, number: int) -> HealthFinding:
    text = f"{what}: {quoted(value)} here, {quoted(most)} on {number:,} other hosts"
    return _made(UNLIKE_FLEET, text, measured=quoted(value), limit=quoted(most))


def _made(
    check: Check,
    text: str,
    *,
    device: str | None = None,
    measured: str | None = None,
    limit: str | None = None,
    severity: Severity | None = None,
) -> HealthFinding:
    return HealthFinding(
        check=check.id,
        severity=severity or check.severity,
        text=text,
        next=check.fix,
        device=device,
        class_=None if check.class_ is None else str(check.class_),
        measured=measured,
        limit=limit,
        configuration=check.configuration,
    )


def _ports(facts: Mapping[str, HealthFacts], limits: Limits) -> Iterator[tuple[str, HealthFinding]]:
    """Ports that are down or slow here, and up or fast on nearly all hosts that have them."""
    for name, ports in _by_name(facts).items():
        most = _usual_port(ports.values(), limits)
        if most.state != ACTIVE:
            continue
        up = sum(port.state == ACTIVE for port in ports.values())
        for host, port in ports.items():
            if (finding := _odd_port(port, most.rate, most.width, up)) is not None:
                finding = replace(finding, device=quoted(name))
                uptime_s = facts[host].uptime_s
                if uptime_s is not None and uptime_s < limits.boot_grace_s:
                    finding = replace(finding, severity=Severity.WARNING)
                yield host, finding


def usual_ports(facts: Mapping[str, HealthFacts], limits: Limits) -> dict[str, UsualPort]:
    """Each RDMA port by its name, as nearly all hosts have it."""
    return {name: _usual_port(ports.values(), limits) for name, ports in _by_name(facts).items()}


def _by_name(facts: Mapping[str, HealthFacts]) -> dict[str, dict[str, IbPort]]:
    by_name: dict[str, dict[str, IbPort]] = {}
    for host, told in facts.items():
        for port in told.ib_ports:
            by_name.setdefault(port_name(port), {})[host] = port
    return by_name


def _usual_port(ports: Iterable[IbPort], limits: Limits) -> UsualPort:
    ports = list(ports)
    up = [port for port in ports if port.state == ACTIVE]
    return UsualPort(
        state=usual((port.state or "" for port in ports), limits),
        rate=usual((str(port.rate_gbit_per_s) for port in up if port.rate_gbit_per_s), limits),
        width=usual((str(port.width) for port in up if port.width), limits),
    )


def _odd_port(port: IbPort, rate: str | None, width: str | None, up: int) -> HealthFinding | None:
    if port.state is None:
        return None
    if port.state != ACTIVE:
        text = f"the port is {quoted(port.state)}; it is up on {up:,} other hosts"
        return _made(_PORTS["ib_port_down"], text, measured=quoted(port.state), limit=ACTIVE)
    slow = _PORTS["ib_port_slow"]
    if rate and port.rate_gbit_per_s and port.rate_gbit_per_s < float(rate):
        now, most = format_rate(port.rate_gbit_per_s), format_rate(float(rate))
        text = f"runs at {now}, on nearly all other hosts at {most}"
        return _made(slow, text, measured=now, limit=most)
    if width and port.width and port.width < int(width):
        text = f"runs at {port.width}X, on nearly all other hosts at {width}X"
        return _made(slow, text, measured=f"{port.width}X", limit=f"{width}X")
    return None


def _clocks(
    facts: Mapping[str, HealthFacts], limits: Limits
) -> tuple[Iterator[tuple[str, HealthFinding]], set[str]]:
    """Clocks that differ from the fleet's median by more than asking took."""
    offsets: dict[str, tuple[float, float]] = {}
    for host, told in facts.items():
        if told.asked_s is not None and told.answered_s is not None:
            doubt_s = abs(told.answered_s - told.asked_s) / 2
            offsets[host] = told.taken_s - (told.asked_s + told.answered_s) / 2, doubt_s
    if len(offsets) < limits.least_alike:
        return iter(()), set()
    middle = median(offset for offset, _ in offsets.values())
    odd = Counter(
        host
        for host, (offset, doubt_s) in offsets.items()
        if abs(offset - middle) - doubt_s > limits.clock_skew_s
    )
    if len(odd) * limits.one_odd_of > len(offsets):
        return iter(()), set()

    def findings() -> Iterator[tuple[str, HealthFinding]]:
        for host in odd:
            by = offsets[host][0] - middle
            text = f"the clock is {abs(by):.3g} s {'ahead of' if by > 0 else 'behind'} the fleet's"
            limit = f"{limits.clock_skew_s:g} s"
            yield host, _made(CLOCK_SKEW, text, measured=f"{by:.3g} s", limit=limit)

    return findings(), set(offsets)
