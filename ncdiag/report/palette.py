"""The colours of the heat maps.

Blue is as expected, orange to dark red is too slow: a scale that stays readable with any kind of
colour blindness (blue against orange, after Brewer's RdYlBu) and whose lightness falls with the
figure, so that it survives a black and white printer. On a dark page bad is bright instead.
"""

from typing import NamedTuple


class Palette(NamedTuple):
    """``scale`` maps a share of what should be reached to a colour, linear in between.

    ``error`` is for a failed measurement, ``empty`` for a cell without one, ``ink`` for the names
    and ``paper`` for what lies between the cells.
    """

    scale: tuple[tuple[float, str], ...]
    error: str
    empty: str
    ink: str
    paper: str


LIGHT = Palette(
    scale=(
        (0.0, "#5c1206"),
        (0.3, "#b8390e"),
        (0.6, "#e58426"),
        (0.8, "#f4bd5a"),
        (0.9, "#9cc3e2"),
        (1.0, "#bcd7ec"),
    ),
    error="#3d3d46",
    empty="#f0f0f2",
    ink="#1a1f2b",
    paper="#ffffff",
)
DARK = Palette(
    scale=(
        (0.0, "#ffe9a8"),
        (0.3, "#ffb545"),
        (0.6, "#e07a1f"),
        (0.8, "#8a5a2b"),
        (0.9, "#2c516d"),
        (1.0, "#234a68"),
    ),
    error="#d6d6de",
    empty="#1b1f27",
    ink="#e4e7ed",
    paper="#161a22",
)
