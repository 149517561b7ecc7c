"""A picture of an NCCL topology: CPUs above, GPUs and adapters below, NVLink under the GPUs."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ncdiag.expect.nccl_links import pcie_gb_per_s
from ncdiag.model.topology import Cpu, Gpu, NcclTopology
from ncdiag.report.topology.drawing import ALARM, FILLS, Box, Canvas, Line, cut
from ncdiag.report.topology.rows import (
    NcclRows,
    adapter_name,
    cpu_name,
    pcie_text,
)
from ncdiag.report.topology.styles import gb_per_s

_STEP_X, _STEP_Y = 1.02, 0.86
_WIDTH, _HEIGHT, _CHARS = 0.92, 0.46, 15
_BEND = 0.1
# Points of a line's width for each 16 GB/s, so that gen5 x16 is thick and gen3 x16 thin.
_POINTS_PER_GB_PER_S = 1 / 16
_PCIE_COLOUR, _NVLINK_COLOUR, _CPU_COLOUR = "#4b6a8f", "#7b4f9d", "#9aa0ac"
_DEEPEST_ARCH = 2.4


@dataclass(slots=True)
class _Node:
    """A thing in the tree; ``rate`` is what the link above it carries, in GB/s."""

    lines: list[str]
    fill: str
    names: frozenset[str] = frozenset()
    link: str = ""
    rate: float | None = None
    gpu: int | None = None
    children: list["_Node"] = field(default_factory=list)
    parent: "_Node | None" = None
    depth: int = 0
    x: float = 0.0
    y: float = 0.0

    def add(self, child: "_Node") -> "_Node":
        child.parent, child.depth = self, self.depth + 1
        self.children.append(child)
        return child


def draw(topology: NcclTopology, suspects: frozenset[str]) -> Canvas:
    """The whole topology; what is in ``suspects`` (bus ids, names) is ringed."""
    cpus = _tree(topology)
    order = _placed(cpus)
    canvas = Canvas()
    for node in order:
        alarm = bool(node.names & suspects)
        canvas.boxes.append(Box(node.x, node.y, _WIDTH, _HEIGHT, node.lines, node.fill, alarm))
        if node.parent:
            canvas.lines.append(_edge(node, node.parent))
    for (one, cpu), (other, beside) in pairwise(zip(cpus, topology.cpus, strict=True)):
        if cpu.host_hash == beside.host_hash:
            canvas.lines.append(Line([(one.x, one.y), (other.x, other.y)], 1.0, _CPU_COLOUR))
    gpus = {node.gpu: node for node in order if node.gpu is not None}
    _nvlinks(canvas, topology, gpus)
    return canvas


def _tree(topology: NcclTopology) -> list[_Node]:
    cpus = [_cpu_node(cpu) for cpu in topology.cpus]
    wanted = _leading_somewhere(topology)
    gpus = defaultdict(list)
    for number, gpu in enumerate(topology.gpus):
        gpus[gpu.pci].append((number, gpu))
    adapters = defaultdict(list)
    for adapter in topology.adapters:
        if adapter.pci is None:
            name = adapter.name or "adapter"
            cpus[adapter.cpu].add(_Node([cut(name, _CHARS)], FILLS["adapter"], frozenset({name})))
        else:
            adapters[adapter.pci].append(adapter)
    nodes: dict[int, _Node] = {}
    for number, device in enumerate(topology.pci):
        if number not in wanted:
            continue
        above = nodes[device.parent] if device.parent is not None else cpus[device.cpu]
        busid = device.busid or "?"
        link, rate = pcie_text(device), pcie_gb_per_s(device)
        short = busid.removeprefix("0000:")
        if gpus[number]:
            for index, gpu in gpus[number]:
                label = f"GPU {'?' if gpu.index is None else gpu.index}"
                ids = frozenset({busid, label, label.replace(" ", "")})
                leaf = _Node([label, short], FILLS["gpu"], ids, link, rate, index)
                nodes[number] = above.add(leaf)
        elif adapters[number]:
            names = [adapter_name(topology, one) or "adapter" for one in adapters[number]]
            ids = frozenset({busid, *names})
            leaf = _Node([*_shown(names), short], FILLS["adapter"], ids, link, rate)
            nodes[number] = above.add(leaf)
        else:
            nodes[number] = above.add(
                _Node(["switch", short], FILLS["switch"], frozenset({busid}), link, rate)
            )
    return cpus


def _cpu_node(cpu: Cpu) -> _Node:
    lines = [cpu_name(replace(cpu, vendor=None, arch=None))]
    if known := cpu.vendor or cpu.arch:
        lines.append(cut(known.strip(), _CHARS))
    return _Node(lines, FILLS["cpu"])


def _shown(names: Iterable[str]) -> list[str]:
    """The names of an adapter's ports, as far as two lines hold them."""
    names = list(dict.fromkeys(names))
    more = f" +{len(names) - 2}" if len(names) > 2 else ""
    return [cut(name, _CHARS) for name in names[:1]] + [
        cut(name, _CHARS - len(more)) + more for name in names[1:2]
    ]


def _leading_somewhere(topology: NcclTopology) -> set[int]:
    """The PCI devices that are a GPU or an adapter, or lead to one; all if there is none."""
    ends = {gpu.pci for gpu in topology.gpus}
    ends |= {one.pci for one in topology.adapters if one.pci is not None}
    wanted: set[int] = set()
    for end in ends:
        here: int | None = end
        while here is not None and here not in wanted:
            wanted.add(here)
            here = topology.pci[here].parent
    return wanted or set(range(len(topology.pci)))


def _placed(cpus: Iterable[_Node]) -> list[_Node]:
    """All nodes, each with its place: leaves side by side, parents over their children."""
    order: list[_Node] = []
    waiting = list(cpus)[::-1]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += node.children[::-1]
    deepest = max((node.depth for node in order), default=0)
    leaf = 0
    for node in order:
        if not node.children:
            node.x = leaf * _STEP_X
            leaf += 1
    for node in reversed(order):
        is_device = node.depth > 0 and not node.children
        node.y = -_STEP_Y * (deepest if is_device else node.depth)
        if node.children:
            node.x = (node.children[0].x + node.children[-1].x) / 2
    return order


def _edge(node: _Node, above: _Node) -> Line:
    start, end = (above.x, above.y - _HEIGHT / 2), (node.x, node.y + _HEIGHT / 2)
    bend = start[1] - _BEND
    width = 0.6 if node.rate is None else max(node.rate * _POINTS_PER_GB_PER_S, 0.4)
    label = node.link if node.link != "link unknown" else ""
    return Line([start, (above.x, bend), (node.x, bend), end], width, _PCIE_COLOUR, label)


def _nvlinks(canvas: Canvas, topology: NcclTopology, gpus: dict[int, _Node]) -> None:
    rows = NcclRows(topology).gpus
    linked = [number for number, row in enumerate(rows) if row.nvlinks and number in gpus]
    if not linked:
        return
    most = Counter(rows[number].nvlinks for number in linked).most_common(1)[0][0]
    bottom = min(gpus[number].y for number in linked) - _HEIGHT / 2
    if any(rows[number].nvlink_to in {"switch", "mixed"} for number in linked):
        xs = [gpus[number].x for number in linked]
        y = bottom - 0.75
        count = NcclRows(topology).nvswitches
        label = f"NVSwitch x{count}" if count else "NVSwitch"
        width = max(xs) - min(xs) + _WIDTH
        middle = (max(xs) + min(xs)) / 2
        canvas.boxes.append(Box(middle, y, width, 0.3, [label], FILLS["nvswitch"]))
        for number in linked:
            links = rows[number].nvlinks
            canvas.lines.append(
                Line(
                    [(gpus[number].x, bottom), (gpus[number].x, y)],
                    max(links / 6, 0.5),
                    _NVLINK_COLOUR if links == most else ALARM,
                    _link_label(links, rows[number].nvlink_gb_per_s),
                )
            )
    _arches(canvas, topology, gpus, bottom)


def _link_label(links: int, rate: float | None) -> str:
    return f"{links}" if rate is None else f"{links}: {gb_per_s(rate)}"


def _arches(canvas: Canvas, topology: NcclTopology, gpus: dict[int, _Node], bottom: float) -> None:
    """An arch for each pair of GPUs that are linked directly, as thick as it has links."""
    by_busid = {topology.busid(gpu): number for number, gpu in enumerate(topology.gpus)}
    pairs: dict[tuple[int, int], int] = {}
    for number, gpu in enumerate(topology.gpus):
        for target, count in _targets(gpu, by_busid):
            if target != number and target in gpus and number in gpus:
                key = (min(number, target), max(number, target))
                pairs[key] = max(pairs.get(key, 0), count)
    if not pairs:
        return
    spans = {pair: abs(gpus[pair[0]].x - gpus[pair[1]].x) for pair in pairs}
    widest = max(spans.values()) or 1.0
    for pair, count in pairs.items():
        left, right = sorted((gpus[pair[0]].x, gpus[pair[1]].x))
        depth = 0.35 + (_DEEPEST_ARCH - 0.35) * spans[pair] / widest
        points = [
            (left + (right - left) * step / 12, bottom - depth * (1 - (step / 6 - 1) ** 2))
            for step in range(13)
        ]
        label = f"{count}" if len(pairs) <= 16 else ""
        width = max(count / 3, 0.6)
        canvas.lines.append(Line(points, width, _NVLINK_COLOUR, label, len(points) // 2))


def _targets(gpu: Gpu, by_busid: dict[str | None, int]) -> Iterable[tuple[int, int]]:
    for link in gpu.links:
        if link.target in by_busid and link.count:
            yield by_busid[link.target], link.count
