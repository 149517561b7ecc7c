"""Tables of GPUs and NICs against each other: nvidia-smi, rocm-smi and amd-smi.

``nvidia-smi topo -m`` prints one table, the AMD tools one for each property, of which the link
types are the paths. Columns are found by their names, so every layout and any blanks do.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ncdiag.model.topology import (
    GpuMatrix,
    MatrixCell,
    NotATopologyError,
    TruncatedTopologyError,
)
from ncdiag.read.topology.text import open_line, quoted

# Several times what any host has; a larger table is cut and says so, a larger text is none.
_MAX_CHARS = 8 << 20
_MAX_DEVICES = 1024
_MAX_TABLES = 4096
_MAX_DAMAGE = 40

_GPU = re.compile(r"GPU[0-9]{1,4}|[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_NIC = re.compile(
    r"(?:NIC|mlx|cxi|bnxt|irdma|rdma|efa|hfi|qedr|ib|roce|eth|en|hns)[\w.+:-]*\d[\w.+-]*"
)
# The words of the tools' own legends; NV# and what stands for a self or an unknown cell.
_CELL = re.compile(
    r"X|NV[0-9]{1,3}|SYS|NODE|PHB|PXB|PIX|PSB|SOC|XGMI|PCIE|SELF|XXXX|N/A|Unknown|UNKNOWN|0|OK"
)
# What only a table of paths has: no number, and nothing of what peers can do (OK, CNS).
_PATH = re.compile(r"NV[0-9]{1,3}|SYS|NODE|PHB|PXB|PIX|PSB|SOC")
_SELF = {"X", "0", "SELF", "Self"}
_CPU_LIST = re.compile(r"-?[0-9][0-9,-]*")
# Where the columns of devices end: CPU Affinity, NUMA Affinity, GPU NUMA ID.
_COLUMN_END = {"CPU", "NUMA", "GPU", "Affinity", "Affin"}
_LEGEND = re.compile(r"\s*(?:NIC\s+)?Legend\s*:", re.IGNORECASE)
_NIC_NAME = re.compile(r"\s*(NIC[0-9]{1,4})\s*:\s*(\S{1,80})\s*$")
_LINK_TYPES = re.compile(r"link\s*type", re.IGNORECASE)
_AMD_TABLE = re.compile(
    r"^=*[ \t]*(?:(?:ACCESS|WEIGHT|HOPS|LINK TYPE|NUMA BW) TABLE:"
    r"|(?:Weight|Hops|Link Type|Link accessibility) between two GPUs)",
    re.IGNORECASE | re.MULTILINE,
)
_AMD_NUMA = re.compile(r"GPU\[([0-9]{1,4})\]\s*:\s*\(Topology\)\s*Numa Node:\s*(-?[0-9]{1,6})\s*$")
# What rocm-smi prints first and last; amd-smi's last table.
_BANNER = re.compile(r"ROCm System Management Interface", re.IGNORECASE)
_LAST_OF_AMD = re.compile(r"End of ROCm SMI Log|^NUMA BW TABLE:", re.IGNORECASE | re.MULTILINE)
# A NIC is called by a number, which in mlx5_0 is not the 5.
_NIC_NAME_END = re.compile(r"(?<!^mlx)\d$")
_NUMBERED = re.compile(r"NIC[0-9]{1,4}")
_LEGEND_LINE = re.compile(r"(?:[A-Z]+[0-9]*|NV#)\s*=\s")
# The last lines of the legends there were, with the words that end them whole.
_LEGEND_END = re.compile(
    r"X\s*=\s*Self|(?:NV|PIX|SYS)\S*\s*=.*\b(?:NVLinks|hops?|switch|bridge|subsystem)"
)
_TAIL_END = re.compile(r"(?:.*[-,])?\d+|N/A")


def recognises(text: str) -> bool:
    """Whether there is such a table, or the beginning of one, in ``text``."""
    if len(text) > _MAX_CHARS:
        return False
    if _AMD_TABLE.search(text):
        return True
    heading: list[str] | None = None
    for line in text.split("\n"):
        if not line.strip():
            continue
        name = line.split(None, 1)[0]
        if heading is not None and (name in heading or heading[0].startswith(name)):
            return True
        heading = _columns(line)
    # A text that ends with it.
    return heading is not None and len(heading) > 1


def pieces(text: str) -> Iterator[str]:
    """Yield the tables of paths one by one, each with what follows it: a host prints one."""
    lines = text.split("\n")
    reader = _Reader(text)
    begins = [table.begin for table in reader.tables if _of_paths(table)]
    for place, begin in enumerate(begins[1:], start=1):
        yield "\n".join(lines[begins[place - 1] if place > 1 else 0 : begin]) + "\n"
    yield "\n".join(lines[begins[-1] if len(begins) > 1 else 0 :])


def _of_paths(table: "_Table") -> bool:
    """Whether a table is one of paths, not of weights, hops, or what peers can do."""
    if _LINK_TYPES.search(table.title):
        return True
    cells = [cell for row in table.rows.values() for cell in row]
    return any(_PATH.fullmatch(cell) for cell in cells)


def read(text: str) -> GpuMatrix:
    """Return the table of paths; what cannot be read of it is told in ``damage``.

    Raises ``TruncatedTopologyError`` where the text ends within a table, or a line.
    """
    reader = _Reader(text)
    if not reader.tables:
        raise TruncatedTopologyError("cut short: a table of GPUs without a row")
    reader.refuse_cut(text)
    table = next((one for one in reader.tables if _LINK_TYPES.search(one.title)), None)
    if table is None:
        table = reader.tables[0]
        if _AMD_TABLE.search(text):
            if not _LAST_OF_AMD.search(text):
                raise TruncatedTopologyError("cut short: no table of link types")
            table.rows = {name: [] for name in table.columns}
            table.damage = ["no table of link types, so no paths are known"]
            return _matrix(table, reader, tuple(table.damage))
    if not table.rows:
        raise TruncatedTopologyError("cut short: a table of GPUs without a row")
    return _matrix(table, reader, tuple(table.told()))


@dataclass(slots=True)
class _Table:
    """One table: cells and what follows them, by row."""

    title: str
    columns: list[str]
    begin: int
    """Which line heads it."""
    rows: dict[str, list[str]] = field(default_factory=dict)
    tails: dict[str, list[str]] = field(default_factory=dict)
    affinities: str = ""
    damage: list[str] = field(default_factory=list)
    last: str = ""

    def tell(self, line: str) -> None:
        """Add a line of damage, up to a number that somebody would read."""
        if len(self.damage) < _MAX_DAMAGE:
            self.damage.append(line)

    def unfinished(self) -> bool:
        """Whether a column has no row yet."""
        return any(name not in self.rows for name in self.columns)

    def told(self) -> list[str]:
        """Return a line for each thing that could not be read."""
        told = list(self.damage)
        told += [
            f"column {quoted(name)} has no row" for name in self.columns if name not in self.rows
        ]
        for name, cells in self.rows.items():
            if name not in self.columns:
                told.append(f"row {quoted(name)} has no column")
            if len(cells) < len(self.columns) and name in self.columns:
                told.append(f"row {quoted(name)} has {len(cells)} of {len(self.columns)} cells")
        return told


class _Reader:
    """Goes through the lines once."""

    def __init__(self, text: str) -> None:
        self.tables: list[_Table] = []
        self.nic_names: dict[str, str] = {}
        self.numa: dict[str, int | None] = {}
        self._title = ""
        self._strange = False
        self._table: _Table | None = None
        self._place = 0
        lines = text.split("\n")
        for self._place, line in enumerate(lines):
            strange = self._strange
            if line.strip():
                self._take(line)
        if lines[-1].strip():
            self._strange = strange

    def _take(self, line: str) -> None:
        table, self._table = self._table, None
        if match := _NIC_NAME.match(line):
            if len(self.nic_names) < _MAX_DEVICES:
                self.nic_names.setdefault(match[1], match[2])
        elif match := _AMD_NUMA.search(line):
            self.numa[f"GPU{int(match[1])}"] = int(match[2])
        elif _LEGEND.match(line):
            return
        elif table is not None and _row(table, line):
            self._table = table
        elif (columns := _columns(line)) is not None:
            if len(self.tables) >= _MAX_TABLES:
                raise NotATopologyError(f"more than {_MAX_TABLES} tables in one file")
            self._begin(columns, line)
        elif table is not None and table.unfinished() and len(table.damage) < _MAX_DAMAGE:
            table.tell(f"no row: {quoted(line)}")
            self._table = table
        else:
            begin = line.lstrip()
            own = begin.startswith("=") or _AMD_TABLE.match(begin) or _LEGEND_LINE.match(begin)
            self._strange = self._strange or not own
            self._title = line.strip(" =\t")[:80]

    def refuse_cut(self, text: str) -> None:
        """Raise if the text ends within a table, or in a line that may have gone on."""
        cut = open_line(text)
        if self._table is not None:
            _refuse_cut_table(self._table, cut)
        elif cut and not self._strange and not self._is_end(cut):
            raise TruncatedTopologyError(f"cut short: it ends with {quoted(cut)}")
        if _BANNER.search(text) and not _LAST_OF_AMD.search(text):
            raise TruncatedTopologyError("cut short: it ends before the end of the log")

    def _is_end(self, line: str) -> bool:
        """Whether a line after the tables is one that a text may end with."""
        if match := _NIC_NAME.match(line):
            names = [name for name in self.nic_names.values() if name == match[2]]
            columns = self.tables[-1].columns
            named = all(name in self.nic_names for name in columns if _NUMBERED.fullmatch(name))
            return named and len(names) == 1 and bool(_NIC_NAME_END.search(match[2]))
        return bool(_LEGEND_END.fullmatch(line) or _LAST_OF_AMD.search(line))

    def _begin(self, columns: list[str], line: str) -> None:
        self._strange = False
        self._table = _Table(self._title, columns[:_MAX_DEVICES], self._place, affinities=line)
        if len(columns) > _MAX_DEVICES:
            self._table.tell(f"more than {_MAX_DEVICES} columns: the rest is left out")
        self.tables.append(self._table)


def _columns(line: str) -> list[str] | None:
    """Return the devices a heading names; ``None`` if the line is none."""
    columns: list[str] = []
    for token in line.split():
        if token in _COLUMN_END:
            break
        if not columns and not _GPU.fullmatch(token):
            return None
        if _CELL.fullmatch(token):
            return None
        columns.append(token)
    if not columns or len(set(columns)) < len(columns):
        return None
    if len(columns) > 1 and not _is_device(columns[1]):
        return None
    return columns


def _is_device(token: str) -> bool:
    return _GPU.fullmatch(token) is not None or _NIC.fullmatch(token) is not None


def _row(table: _Table, line: str) -> bool:
    """Take a line as a row of ``table``, if it is one."""
    name, *tokens = line.split()
    if len(table.columns) > 1 and tokens and _is_device(tokens[0]):
        return False
    if name not in table.columns:
        known = (_is_device(name) and bool(tokens)) and _CELL.fullmatch(tokens[0]) is not None
        if not known or len(table.rows) >= 2 * _MAX_DEVICES:
            return False
    if name in table.rows:
        table.tell(f"row {quoted(name)} a second time")
        return True
    width = len(table.columns)
    cells = tokens[:width]
    has_cpus = "CPU" in table.affinities
    # Where cells are missing, what follows them has moved into their place.
    for place, token in enumerate(cells):
        if has_cpus and _CPU_LIST.fullmatch(token) and not _CELL.fullmatch(token):
            cells = cells[:place]
            break
    table.rows[name] = cells
    table.tails[name] = tokens[len(cells) :]
    table.last = name
    return True


def _refuse_cut_table(table: _Table, cut: str) -> None:
    """Raise if the text ends within ``table``; ``cut`` is the line it breaks off in."""
    missing = [name for name in table.columns if name not in table.rows]
    if not table.rows or missing:
        raise TruncatedTopologyError(
            f"cut short: the table ends before the row of {quoted(missing[0])}"
        )
    cells, tail = table.rows[table.last], table.tails[table.last]
    others = [name for name in table.rows if name != table.last]
    whole = len(cells) >= len(next(iter(table.rows.values())))
    if cut and whole:
        known = {cell for name in others for cell in table.rows[name]} | _SELF | {"N/A"}
        tails = [len(table.tails[name]) for name in others if _GPU.fullmatch(name)]
        whole = bool(cells) and (cells[-1] in known or not others)
        if _GPU.fullmatch(table.last):
            whole = whole and len(tail) >= min(tails, default=0)
            whole = whole and not (tail and not _TAIL_END.fullmatch(tail[-1]))
    if not whole:
        raise TruncatedTopologyError(
            f"cut short: the table ends inside the row of {quoted(table.last)}"
        )


def _matrix(table: _Table, reader: _Reader, damage: tuple[str, ...]) -> GpuMatrix:
    names = list(dict.fromkeys([*table.columns, *table.rows]))
    cells = [
        MatrixCell(name, column, cell)
        for name, row in table.rows.items()
        for column, cell in zip(table.columns, row, strict=False)
        if name != column
    ]
    numa, affinity = _affinities(table)
    return GpuMatrix(
        gpus=tuple(name for name in names if _GPU.fullmatch(name)),
        nics=tuple(name for name in names if not _GPU.fullmatch(name)),
        cells=tuple(cells),
        nic_names=reader.nic_names,
        numa=reader.numa | numa,
        cpu_affinity=affinity,
        damage=damage,
    )


def _affinities(table: _Table) -> tuple[dict[str, int | None], dict[str, str]]:
    """Return the NUMA node (``None`` for several or none) and the CPUs of each GPU's row."""
    numa: dict[str, int | None] = {}
    affinity: dict[str, str] = {}
    has_cpu = "CPU Affinity" in " ".join(table.affinities.split())
    has_numa = "NUMA Affinity" in " ".join(table.affinities.split())
    for name, tail in table.tails.items():
        if not _GPU.fullmatch(name):
            continue
        rest = list(tail)
        if has_cpu and rest:
            affinity[name] = rest.pop(0)
        if has_numa and rest:
            node = rest[0]
            numa[name] = int(node) if node.isascii() and node.isdigit() and len(node) < 7 else None
    return numa, affinity
