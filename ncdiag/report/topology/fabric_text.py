"""An InfiniBand fabric and a Slurm topology as text."""

from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.topology import IbFabric, IbNodeKind, SlurmSwitch, SlurmTopology
from ncdiag.model.units import format_count
from ncdiag.report.topology.cables import Cables, SwitchRow
from ncdiag.report.topology.slurm_tree import all_nodes, roots
from ncdiag.report.topology.styles import safe, short, table

_SWITCHES, _SLURM_LINES, _FOLDED_CHARS = 24, 60, 200
# Slurm's own trees have three levels or four; whoever nests more means harm.
_DEPTH = 12


def fabric_summary(topology: IbFabric) -> str:
    """``40 switches, 582 adapters, 1,114 cables``."""
    cables = Cables(topology)
    switches = cables.count(IbNodeKind.SWITCH)
    adapters = cables.count(IbNodeKind.CA)
    routers = cables.count(IbNodeKind.ROUTER)
    parts = [
        format_count(switches, "switch"),
        format_count(adapters, "adapter"),
        format_count(routers, "router") if routers else "",
        format_count(len(cables.rates), "cable"),
    ]
    return ", ".join(part for part in parts if part)


def fabric(topology: IbFabric, console: Console, *, verbose: bool) -> None:
    """Cables by rate, leaves by how many uplinks they have, and a row for each switch."""
    cables = Cables(topology)
    if cables.rates:
        unknown = cables.rates.count(None)
        rates = [f"{short(rate)} {count:,}" for rate, count in cables.by_rate.items()]
        rates += [f"rate unknown {unknown:,}"] if unknown else []
        console.print(Text(f"cables    {', '.join(rates)}"))
    rows = list(cables.switches())
    leaves = [row for row in rows if row.is_leaf]
    if leaves:
        console.print(Text(f"leaves    {len(leaves)} of {format_count(len(rows), 'switch')}"))
        spread = Counter(row.uplinks for row in leaves)
        told = [f"{up} on {format_count(count, 'leaf')}" for up, count in sorted(spread.items())]
        console.print(Text(f"uplinks   {', '.join(told).replace('leafs', 'leaves')}"))
    if rows:
        console.print()
        _switch_table(rows, console, verbose=verbose)


def _switch_table(rows: list[SwitchRow], console: Console, *, verbose: bool) -> None:
    figures = ("adapters", "switches")
    grid = table(("switch", "GUID", *figures, "rates"), right=figures)
    rows = sorted(rows, key=lambda row: (not row.is_leaf, row.node.description or ""))
    shown = rows if verbose else rows[:_SWITCHES]
    for row in shown:
        rates = sorted(row.rates.items(), key=lambda item: -item[1])
        grid.add_row(
            safe(row.node.description),
            safe(row.node.guid),
            safe(row.hosts),
            safe(row.uplinks),
            safe(", ".join(f"{rate} {count}" for rate, count in rates) or None),
        )
    console.print(grid)
    if len(rows) > len(shown):
        console.print(Text(f"and {len(rows) - len(shown):,} more: see --verbose"))


def slurm_summary(topology: SlurmTopology) -> str:
    """``19 switches, 96 nodes``."""
    thing = "block" if topology.plugin == "block" else "switch"
    parts = [
        f"plugin {short(topology.plugin)}",
        format_count(len(topology.switches), thing),
        format_count(len(all_nodes(topology)), "node"),
    ]
    if topology.block_sizes:
        parts.append(f"block sizes {','.join(map(str, topology.block_sizes))}")
    return ", ".join(parts)


def slurm(topology: SlurmTopology, console: Console, *, verbose: bool) -> None:
    """The switches as trees from the roots down, nodes folded."""
    lines = _SlurmLines(topology, most=None if verbose else _SLURM_LINES)
    starts = roots(topology)
    if not starts and topology.switches:
        console.print(Text("no root: every switch stands below another", "yellow"))
        starts = topology.switches[:1]
    for root in starts:
        if not lines.full:
            console.print(lines.tree(root))
    if lines.full:
        console.print(Text("and more: see --verbose"))


class _SlurmLines:
    """Makes trees of a limited number of lines."""

    def __init__(self, topology: SlurmTopology, most: int | None) -> None:
        self._by_name = {one.name: one for one in topology.switches}
        self._left = most

    @property
    def full(self) -> bool:
        """Whether there was more than may be shown."""
        return self._left is not None and self._left <= 0

    def tree(self, root: SlurmSwitch) -> Tree:
        """The tree below ``root``; a switch that stands below itself is shown once more only."""
        top = Tree(_slurm_label(root), guide_style="dim")
        waiting = [(top, root, frozenset({root.name}))]
        while waiting:
            here, switch, above = waiting.pop()
            for child in self._children(switch, above):
                if self._left is not None:
                    self._left -= 1
                    if self._left <= 0:
                        return top
                branch = here.add(_slurm_label(child))
                waiting.append((branch, child, above | {child.name}))
        return top

    def _children(self, switch: SlurmSwitch, above: frozenset[str]) -> Iterator[SlurmSwitch]:
        if len(above) > _DEPTH:
            return
        for name in switch.switches:
            if name not in above:
                yield self._by_name.get(name, SlurmSwitch(name=f"{name} (not defined)"))


def _slurm_label(switch: SlurmSwitch) -> Text:
    label = safe(switch.name, "bold")
    if switch.nodes:
        folded = visible(fold(switch.nodes))
        if len(folded) > _FOLDED_CHARS:
            folded = f"{folded[:_FOLDED_CHARS]}…"
        label.append(f"  {folded}  ({len(switch.nodes)})", "default")
    return label
