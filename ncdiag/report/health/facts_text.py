"""The main facts of one host in a few lines; all of them are in the JSON."""

from collections import Counter
from collections.abc import Iterator

from ncdiag.model.health import HealthFacts, SourceState
from ncdiag.model.text import visible
from ncdiag.model.units import format_bytes, format_count, format_duration

_VERSIONS = ("driver", "cuda", "nccl", "kernel", "ofed")


def facts_lines(facts: HealthFacts) -> Iterator[tuple[str, str]]:
    """A label and a text for each kind of thing that is there."""
    yield from _host(facts)
    if facts.gpus:
        yield "gpus", visible(_counted(gpu.name or "unnamed GPU" for gpu in facts.gpus))
    if temperatures := [gpu.temperature_c for gpu in facts.gpus if gpu.temperature_c is not None]:
        yield "", f"{min(temperatures):g} to {max(temperatures):g} °C"
    if facts.ib_ports:
        ports = (f"{port.link_layer or 'RDMA'} port {port.state}" for port in facts.ib_ports)
        yield "rdma", visible(_counted(ports))
    if facts.ethernet_ports:
        yield (
            "ethernet",
            visible(", ".join(f"{port.name} {port.state}" for port in facts.ethernet_ports)),
        )
    versions = [f"{one} {facts.versions[one]}" for one in _VERSIONS if one in facts.versions]
    if versions:
        yield "versions", visible(", ".join(versions))
    if facts.mounts:
        full = [mount for mount in facts.mounts if mount.state != "ok"]
        bad = f", {', '.join(f'{one.path} {one.state}' for one in full)}" if full else ""
        yield "mounts", visible(f"{len(facts.mounts)}{bad}")
    yield from _sources(facts)


def _host(facts: HealthFacts) -> Iterator[tuple[str, str]]:
    parts = []
    if facts.cpus is not None:
        parts.append(format_count(facts.cpus, "CPU"))
    if facts.memory_total_bytes is not None:
        parts.append(f"{format_bytes(facts.memory_total_bytes)} memory")
    if facts.memory_available_bytes is not None:
        parts.append(f"{format_bytes(facts.memory_available_bytes)} available")
    if facts.uptime_s is not None:
        parts.append(f"up {format_duration(facts.uptime_s)}")
    if parts:
        yield "host", ", ".join(parts)


def _sources(facts: HealthFacts) -> Iterator[tuple[str, str]]:
    for state, what in ((SourceState.READ, "read"), (SourceState.ABSENT, "absent")):
        if names := [one.source.value for one in facts.sources if one.state is state]:
            yield what, ", ".join(names)


def _counted(names: Iterator[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(names).most_common())
