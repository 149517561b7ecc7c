"""A picture of a GPU matrix: a coloured cell for each pair."""

import re
from typing import Final

from ncdiag.model.errors import UsageError
from ncdiag.model.topology import GpuMatrix
from ncdiag.report.topology.drawing import Box, Canvas, Words, cut

_CELL = 0.5
_LABEL_CHARS = 12
_MOST_ROWS = 200
# Near is blue, far is orange to red; after Brewer's RdYlBu, readable with any colour blindness.
_COLOURS: Final = {
    "X": "#f0f0f2",
    "PIX": "#9cc3e2",
    "PXB": "#bcd7ec",
    "C2C": "#9cc3e2",
    "NODE": "#f7dca6",
    "PHB": "#f4bd5a",
    "SYS": "#e58426",
}
_FAST = "#7fb08a"
_UNKNOWN = "#ffffff"
_LINKED = re.compile(r"NV\d|XGMI")


def draw(topology: GpuMatrix) -> Canvas:
    """The table; GPUs first, then NICs."""
    names = [*topology.gpus, *topology.nics]
    if len(names) > _MOST_ROWS:
        raise UsageError(f"a matrix of {len(names)} rows is too much for one picture")
    canvas = Canvas()
    place = {name: number for number, name in enumerate(names)}
    for name, number in place.items():
        label = cut(name, _LABEL_CHARS)
        canvas.words.append(Words(-0.45, -number * _CELL, label, 7, align="right"))
        canvas.words.append(Words(number * _CELL, 0.4, label, 6))
    canvas.words.append(Words(-1.2, 0, ""))  # room for the names
    for cell in topology.cells:
        if cell.a in place and cell.b in place:
            x, y = place[cell.b] * _CELL, -place[cell.a] * _CELL
            text = cut(cell.path, 6)
            canvas.boxes.append(Box(x, y, _CELL * 0.94, _CELL * 0.94, [text], _colour(cell.path)))
    return canvas


def _colour(path: str) -> str:
    if _LINKED.match(path):
        return _FAST
    return _COLOURS.get(path, _UNKNOWN)
