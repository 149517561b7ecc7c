"""Expected bandwidths for a terminal of 80 columns."""

from collections.abc import Iterable, Sequence

from rich.console import Console

from ncdiag.expect.collective import CollectiveExpectation
from ncdiag.expect.curve import Point
from ncdiag.expect.derivation import Line, figure
from ncdiag.expect.machine import Machine
from ncdiag.expect.pair import GpuPairExpectation, PairExpectation, RailExpectation
from ncdiag.model.units import format_count

_LABEL = 14
# Every eighth size shows the shape; --format json has all.
_SHOWN_SIZES = slice(0, None, 3)
_LATENCY_JUDGES = 0.5
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def render_collective(
    expected: CollectiveExpectation, out: Console, size_bytes: int | None
) -> None:
    """Print what to expect, why, and the curve; of one size first, where one was asked for."""
    hosts = f"{expected.nodes} x {expected.machine}" if expected.nodes > 1 else expected.machine
    _line(out, f"{expected.collective} over {expected.ranks} GPUs on {hosts}")
    if size_bytes is not None:
        _one_size(out, expected.at(size_bytes))
    large = "" if size_bytes is None else ", large messages"
    _say(out, "bus bandwidth", f"{_rate(expected.busbw_gb_per_s)}{large}")
    _say(out, "algorithm bw", f"{_rate(expected.algbw_gb_per_s)}{large}")
    _say(out, "algorithm", expected.algorithm)
    if expected.others:
        others = ", ".join(f"{one} {figure(rate)}" for one, rate in expected.others)
        _say(out, "weighed too", f"{others} GB/s bus bandwidth")
    _say(out, "bound by", expected.binding)
    for note in expected.notes:
        _say(out, "note", note)
    _derivation(out, expected.derivation)
    _curve(out, expected.curve[_SHOWN_SIZES])


def _one_size(out: Console, point: Point) -> None:
    judged = "latency" if point.latency_share > _LATENCY_JUDGES else "bandwidth"
    size = _size(point.size_bytes)
    _say(
        out, "one message", f"{size} in {_time(point.time_us)}, {point.algorithm} {point.protocol}"
    )
    _say(out, "", f"{_rate(point.busbw_gb_per_s)} bus bandwidth; {judged} decides")


def render_hosts(expected: PairExpectation, out: Console) -> None:
    """Print every rail (alike ones together), all rails together, and why."""
    _line(out, f"{expected.source} to {expected.target}, each way")
    for rails in _alike(expected.rails):
        first, last = rails[0], rails[-1]
        numbers = f"rail {first.rail}" if len(rails) == 1 else f"rails {first.rail}-{last.rail}"
        names = "" if len(rails) > 1 else f", {first.source} to {first.target}"
        _say(out, numbers, f"{_rate(first.gb_per_s)}, bound by {first.binding}{names}")
    if expected.unmatched:
        _say(out, "note", f"{format_count(expected.unmatched, 'rail')} of one host only")
    _say(out, "together", f"{_rate(expected.gb_per_s)}, bound by {expected.binding}")
    lines = [line for rails in _alike(expected.rails) for line in rails[0].derivation]
    _derivation(out, dict.fromkeys((*lines, *expected.derivation)))


def render_gpus(expected: GpuPairExpectation, out: Console) -> None:
    """Print what two GPUs exchange, and why."""
    _line(out, f"{expected.source} to {expected.target}, each way")
    _say(out, "NCCL", _rate(expected.gb_per_s))
    if expected.copy_gb_per_s is not None:
        both = f"{_rate(2 * expected.copy_gb_per_s)} both ways together"
        _say(out, "copies", f"{_rate(expected.copy_gb_per_s)}, {both}")
    _say(out, "way", expected.way)
    _say(out, "bound by", expected.binding)
    _derivation(out, expected.derivation)


def render_hardware(machines: Iterable[Machine], out: Console) -> None:
    """Print the catalogue, a line each."""
    row = "{:<19}{:>4}  {:<11}{:<24}{}"
    _line(out, row.format("machine", "GPUs", "GPU", "joined by", "NICs"))
    for machine in machines:
        fabric = machine.fabric
        joined = "PCIe"
        if fabric is not None:
            multicast = ", NVLS" if fabric.multicast_share is not None else ""
            joined = f"{fabric.links} {fabric.name} {fabric.raw_gb_per_s:g} GB/s{multicast}"
        if machine.gpus == 1:
            joined = "-"
        rail = machine.rails[0]
        nics = f"{len(machine.rails)} x {rail.gbit_per_s:g}G {rail.layer}"
        line = row.format(machine.name, machine.gpus, machine.gpu, joined, nics)
        _line(out, line.rstrip())


def render_sources(machine: Machine, out: Console) -> None:
    """Print where each figure of one machine is from."""
    render_hardware([machine], out)
    for what, source in machine.sources.items():
        _say(out, what.removesuffix("_gb_per_s"), source)


def _alike(rails: Sequence[RailExpectation]) -> list[list[RailExpectation]]:
    """Neighbouring rails of the same derivation together."""
    groups: list[list[RailExpectation]] = []
    for rail in rails:
        if groups and groups[-1][0].derivation == rail.derivation:
            groups[-1].append(rail)
        else:
            groups.append([rail])
    return groups


def _derivation(out: Console, lines: Iterable[Line]) -> None:
    _line(out, "derivation")
    for line in lines:
        _line(out, f"  {line.what}{f' ({line.why})' if line.why else ''}")
        _line(out, f"    {line.formula} = {figure(line.gb_per_s)} GB/s")


def _curve(out: Console, points: Sequence[Point]) -> None:
    _line(out, f"{'size':>9} {'time':>11} {'algbw GB/s':>11} {'busbw GB/s':>11}  by")
    for point in points:
        _line(
            out,
            f"{_size(point.size_bytes):>9} {_time(point.time_us):>11}"
            f" {point.algbw_gb_per_s:>11.4g} {point.busbw_gb_per_s:>11.4g}"
            f"  {point.algorithm} {point.protocol}",
        )


def _say(out: Console, label: str, what: str) -> None:
    _line(out, f"  {label:<{_LABEL}} {what}")


def _line(out: Console, text: str) -> None:
    out.print(text, soft_wrap=True)


def _rate(gb_per_s: float) -> str:
    return f"{figure(gb_per_s)} GB/s"


def _time(microseconds: float) -> str:
    for unit, scale in (("us", 1.0), ("ms", 1e3), ("s", 1e6)):
        if microseconds < 1000 * scale or unit == "s":
            break
    return f"{microseconds / scale:.3g} {unit}"


def _size(size_bytes: int) -> str:
    value = float(size_bytes)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{value:.4g} {unit}"
