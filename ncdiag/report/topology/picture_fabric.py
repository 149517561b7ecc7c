"""Pictures of an InfiniBand fabric and of a Slurm topology: hosts below, spines above."""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence

from ncdiag.model.nodes import fold
from ncdiag.model.topology import IbFabric, SlurmTopology
from ncdiag.report.topology.cables import Cables
from ncdiag.report.topology.drawing import FILLS, Box, Canvas, Line, cut
from ncdiag.report.topology.slurm_tree import roots

_STEP_X, _STEP_Y = 1.5, 1.3
# Of a fabric with many leaves, the levels stand further apart, or lines would lie flat.
_LEAVES_PER_STEP = 9
_WIDTH, _HEIGHT, _CHARS = 1.36, 0.46, 21
_COLOUR = "#4b6a8f"


def draw_fabric(topology: IbFabric, suspects: frozenset[str]) -> Canvas:
    """Leaves with the number of their hosts, and the switches above them by distance."""
    rows = {row.node.guid: row for row in Cables(topology).switches()}
    cables: Counter[tuple[str, str]] = Counter()
    for guid, row in rows.items():
        for port in row.node.ports:
            if port.peer_guid in rows and port.peer_guid != guid:
                cables[_pair(guid, port.peer_guid)] += 1
    # Both ends list a cable.
    widths = {pair: max(1, round(count / 2)) for pair, count in cables.items()}
    levels = _levels([guid for guid, row in rows.items() if row.is_leaf], list(rows), widths)
    labels = {}
    for guid, row in rows.items():
        name = row.node.description or guid
        below = f"{row.hosts} adapters" if row.is_leaf else f"{row.uplinks} cables"
        labels[guid] = [cut(name, _CHARS), below]
    names = {guid: {guid, row.node.description or guid} for guid, row in rows.items()}
    alarms = {guid for guid, known in names.items() if known & suspects}
    return _layers(labels, levels, widths, alarms)


def draw_slurm(topology: SlurmTopology, suspects: frozenset[str]) -> Canvas:
    """The switches from the roots down; below each its nodes, folded."""
    known = {one.name: one for one in topology.switches}
    pairs = {
        _pair(one.name, child): 1
        for one in topology.switches
        for child in one.switches
        if child in known and child != one.name
    }
    starts = [one.name for one in roots(topology)] or list(known)[:1]
    depth = _levels(starts, list(known), pairs)
    deepest = max(depth.values(), default=0)
    levels = {name: deepest - level for name, level in depth.items()}
    labels = {
        name: [cut(name, _CHARS), *([cut(fold(one.nodes), _CHARS + 5)] if one.nodes else [])]
        for name, one in known.items()
    }
    return _layers(labels, levels, pairs, set(known) & suspects)


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _levels(
    starts: Sequence[str], everything: Sequence[str], pairs: Mapping[tuple[str, str], int]
) -> dict[str, int]:
    """How many cables each is away from the nearest of ``starts``; 0 where none leads there."""
    beside: dict[str, list[str]] = defaultdict(list)
    for one, other in pairs:
        beside[one].append(other)
        beside[other].append(one)
    levels = dict.fromkeys(starts, 0)
    waiting = deque(starts)
    while waiting:
        here = waiting.popleft()
        for other in beside[here]:
            if other not in levels:
                levels[other] = levels[here] + 1
                waiting.append(other)
    return {name: levels.get(name, 0) for name in everything}


def _layers(
    labels: Mapping[str, Sequence[str]],
    levels: Mapping[str, int],
    widths: Mapping[tuple[str, str], int],
    alarms: set[str],
) -> Canvas:
    """Boxes by level, each level in the middle, and the lines between them."""
    rows: dict[int, list[str]] = defaultdict(list)
    for name in sorted(labels, key=lambda name: tuple(labels[name])):
        rows[levels[name]].append(name)
    longest = max((len(row) for row in rows.values()), default=1)
    step_y = _STEP_Y * max(1.0, longest / _LEAVES_PER_STEP)
    places = {}
    for level, row in rows.items():
        step = _STEP_X * longest / len(row)
        for number, name in enumerate(row):
            places[name] = ((number + 0.5) * step, level * step_y)
    canvas = Canvas()
    for (one, other), count in widths.items():
        (x0, y0), (x1, y1) = places[one], places[other]
        label = f"{count}" if count > 1 and len(widths) <= 40 else ""
        canvas.lines.append(Line([(x0, y0), (x1, y1)], min(0.5 + count / 3, 5), _COLOUR, label))
    for name, (x, y) in places.items():
        fill = FILLS["switch"] if levels[name] else FILLS["cpu"]
        alarm = name in alarms
        canvas.boxes.append(Box(x, y, _WIDTH, _HEIGHT, list(labels[name]), fill, alarm))
    return canvas
