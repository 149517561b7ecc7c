"""Tables of paths between GPUs and NICs: links missing, GPUs far from every NIC, damage."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from ncdiag.diagnose.topology.findings import degraded, fatal, info, sides
from ncdiag.diagnose.topology.peers import ONE_ODD_OF, below_the_usual, by, listed
from ncdiag.model.topology import GpuMatrix, TopologyFinding

_MISSING = "nvlink_missing"
_NVLINK = re.compile(r"NV([0-9]{1,3})")
# B200 and all before have 18 NVLinks at most, a part of two halves 36.
_MOST_NVLINKS = 36
_XGMI = "XGMI"
# What nvidia-smi, rocm-smi and amd-smi write into their legends.
_PATHS = frozenset(
    {"X", "SYS", "NODE", "PHB", "PXB", "PIX", "PSB", "SOC", "NVB", "C2C", "PXN", "XGMI", "PCIE"}
    | {"0", "SELF", "PCI", "QPI", "P2C"}
)
_NEAR = frozenset({"PIX", "PXB"})
_INDEXED = re.compile(r"GPU([0-9]{1,4})")
_LEAST_GPUS = 3
_SHOWN_CHARS = 120

Cells = Mapping[tuple[str, str], str]


def check_matrix(matrix: GpuMatrix) -> Iterator[TopologyFinding]:
    """Yield what is wrong with one table."""
    cells = {(cell.a, cell.b): cell.path for cell in matrix.cells}
    yield from _links(matrix, cells)
    yield from _lopsided(matrix, cells)
    yield from _impossible(cells)
    yield from _gaps(matrix)
    yield from _far(matrix, cells)
    yield from _numa(matrix)
    yield from _damage(matrix, cells)
    yield from _unknown(matrix)


@lru_cache(maxsize=1024)
def links_of(path: str | None) -> int | None:
    """Return how many links a cell states: none for PCIe paths, ``None`` where it is unknown."""
    if path is None or not _is_known(path):
        return None
    match = _NVLINK.fullmatch(path)
    return int(match[1]) if match else int(path.upper() == _XGMI)


@lru_cache(maxsize=1024)
def _is_known(path: str) -> bool:
    return path.upper() in _PATHS or _NVLINK.fullmatch(path) is not None


def _row(matrix: GpuMatrix, cells: Cells, gpu: str) -> list[int] | None:
    """Return the links of ``gpu`` to each other GPU; ``None`` where a cell is unknown."""
    found = []
    for other in matrix.gpus:
        if other != gpu:
            count = links_of(_path(cells, gpu, other))
            if count is None:
                return None
            found.append(count)
    return found


def _path(cells: Cells, a: str, b: str) -> str | None:
    """Return the path between two GPUs: of two that contradict each other, that of more links.

    The contradiction is told by itself, and is no sign that either GPU has lost a link.
    """
    there, back = cells.get((a, b)), cells.get((b, a))
    if there is None or back is None:
        return there or back
    counts = links_of(there), links_of(back)
    return back if None not in counts and (counts[0] or 0) < (counts[1] or 0) else there


def _links(matrix: GpuMatrix, cells: Cells) -> Iterator[TopologyFinding]:
    rows = {gpu: row for gpu in matrix.gpus if (row := _row(matrix, cells, gpu)) is not None}
    result = below_the_usual([(gpu, float(sum(row))) for gpu, row in rows.items()])
    if result is None:
        return
    usual = next(gpu for gpu, row in rows.items() if sum(row) >= result.usual)
    paired = all(sum(map(bool, row)) <= 1 for row in rows.values())
    for gpu, total in result.odd:
        text = (
            f"{gpu} has {_written(matrix, cells, gpu)}; {result.agree} of the {result.total} GPUs "
            f"have more, such as {usual} with {_written(matrix, cells, usual)}"
        )
        if total:
            yield degraded(_MISSING, gpu, text)
        elif paired:
            yield info(_MISSING, gpu, f"{text} (by bridges between pairs; one may not be fitted)")
        else:
            yield fatal(_MISSING, gpu, text)
    if not result.odd and not paired:
        yield from _unclear(cells, rows)


def _written(matrix: GpuMatrix, cells: Cells, gpu: str) -> str:
    """Write a row by how often each path stands in it."""
    paths = Counter(_path(cells, gpu, other) or "?" for other in matrix.gpus if other != gpu)
    return ", ".join(f"{count} x {_shown(path)}" for path, count in paths.most_common())


def _unclear(cells: Cells, rows: Mapping[str, Sequence[int]]) -> Iterator[TopologyFinding]:
    """Yield an odd pair of GPUs where no majority of rows agrees, or that the rows differ."""
    gpus = list(rows)
    pairs = [
        ((a, b), float(count))
        for at, a in enumerate(gpus)
        for b in gpus[at + 1 :]
        if (count := links_of(_path(cells, a, b))) is not None
    ]
    result = below_the_usual(pairs)
    if result is not None and result.odd and result.usual:
        for (a, b), _ in result.odd:
            yield degraded(
                _MISSING,
                a,
                f"{a} and {b} are joined by {_shown(_path(cells, a, b) or '?')}; "
                f"{result.agree} of the {result.total} pairs of GPUs by {int(result.usual)} links",
            )
        return
    groups = by(gpus, lambda gpu: sum(rows[gpu]))
    yield info(
        _MISSING,
        min(gpus, key=lambda gpu: sum(rows[gpu])),
        "GPUs differ in links and no majority says what is right: "
        + sides(groups, lambda count: f"{count} in all", str),
    )


def _lopsided(matrix: GpuMatrix, cells: Cells) -> Iterator[TopologyFinding]:
    """Yield cells that differ from the cell of the other direction."""
    order = {name: at for at, name in enumerate((*matrix.gpus, *matrix.nics))}
    gpus = set(matrix.gpus)
    for (a, b), there in cells.items():
        back = cells.get((b, a))
        if back is None or back == there or order.get(a, 0) > order.get(b, 0):
            continue
        if not _is_known(there) or not _is_known(back):
            continue
        text = f"{a} to {b} is {there}, {b} to {a} is {back}"
        if {a, b} <= gpus and (links_of(there) or links_of(back)):
            fewer = a if (links_of(there) or 0) < (links_of(back) or 0) else b
            yield degraded("nvlink_asymmetric", fewer, text)
        else:
            yield info("matrix_damaged", a, f"{text}; a path is the same both ways")


def _impossible(cells: Cells) -> Iterator[TopologyFinding]:
    for (a, _), path in cells.items():
        if (count := links_of(path)) is not None and count > _MOST_NVLINKS:
            yield info(
                "nvlink_count_impossible",
                a,
                f"{a} states {path}; no GPU has more than {_MOST_NVLINKS} NVLinks",
            )
            return


def _gaps(matrix: GpuMatrix) -> Iterator[TopologyFinding]:
    numbers = {int(match[1]) for name in matrix.gpus if (match := _INDEXED.fullmatch(name))}
    if len(numbers) < _LEAST_GPUS:
        return
    missing = [number for number in range(max(numbers)) if number not in numbers]
    if missing and len(missing) * ONE_ODD_OF <= max(numbers) + 1:
        yield degraded(
            "gpu_missing",
            f"GPU{missing[0]}",
            f"no row for {listed([f'GPU{number}' for number in missing])} among the {len(numbers)} "
            f"GPUs up to GPU{max(numbers)}",
        )


def _far(matrix: GpuMatrix, cells: Cells) -> Iterator[TopologyFinding]:
    paths = {
        gpu: [cells.get((gpu, nic), cells.get((nic, gpu))) for nic in matrix.nics]
        for gpu in matrix.gpus
    }
    near = [gpu for gpu, found in paths.items() if any(path in _NEAR for path in found)]
    # Fewer NICs than pairs of GPUs: some GPU is far by design.
    if len(near) * 2 <= len(paths) or len(matrix.nics) * 2 < len(paths):
        return
    for gpu, found in paths.items():
        if gpu not in near and all(path is not None and _is_known(path) for path in found):
            yield degraded(
                "gpu_nic_far",
                gpu,
                f"{gpu} has no NIC at PIX or PXB; {len(near)} of the {len(paths)} GPUs have one",
            )


def _numa(matrix: GpuMatrix) -> Iterator[TopologyFinding]:
    known = [matrix.numa.get(gpu) for gpu in matrix.gpus]
    if matrix.numa and all(node is None or node < 0 for node in known):
        yield info(
            "numa_unknown",
            matrix.gpus[0],
            f"none of the {len(known)} GPUs has a NUMA node in the table",
        )


def _damage(matrix: GpuMatrix, cells: Cells) -> Iterator[TopologyFinding]:
    lost = [
        f"{a} to {b}"
        for at, a in enumerate(matrix.gpus)
        for b in matrix.gpus[at + 1 :]
        if (a, b) not in cells and (b, a) not in cells
    ]
    said = [_shown(line) for line in matrix.damage]
    if not lost and not said:
        return
    where = lost[0].split(" ", 1)[0] if lost else "the table"
    if lost:
        said.append(f"nothing is known of {listed(lost)}")
        yield degraded("matrix_damaged", where, listed(said))
    else:
        yield info("matrix_damaged", where, f"{listed(said)}; all paths between GPUs are there")


def _unknown(matrix: GpuMatrix) -> Iterator[TopologyFinding]:
    odd = [cell for cell in matrix.cells if not _is_known(cell.path)]
    if odd:
        words = sorted({_shown(cell.path) for cell in odd})
        yield info(
            "matrix_cell_unknown",
            odd[0].a,
            f"{len(odd)} of {len(matrix.cells)} cells say {listed(words)}, the first "
            f"{odd[0].a} to {odd[0].b}",
        )


def _shown(text: str) -> str:
    return text[:_SHOWN_CHARS]
