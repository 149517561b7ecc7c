"""Matplotlib as ncdiag draws with it; every picture takes what it needs of it from here.

It writes nothing to the terminal, such as where it keeps its fonts when the home is read-only, and
takes no style from a ``matplotlibrc`` in the folder or the home of whoever calls.
"""

import io
import logging
from typing import Any

# Before matplotlib is imported, which looks for a home.
logging.getLogger("matplotlib").setLevel(logging.CRITICAL)

import matplotlib as mpl  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.cm import ScalarMappable  # noqa: E402
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, to_rgba  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.patches import FancyBboxPatch, Patch  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: E402

mpl.rcdefaults()

__all__ = [
    "Axes",
    "Colormap",
    "FancyBboxPatch",
    "Figure",
    "FuncFormatter",
    "LinearSegmentedColormap",
    "LogLocator",
    "Normalize",
    "Patch",
    "ScalarMappable",
    "drawable",
    "encoded",
    "new_figure",
    "to_rgba",
]


def new_figure(size_inches: tuple[float, float], dots_per_inch: int, **options: Any) -> Figure:
    """An empty picture that no window system is asked for."""
    figure = Figure(figsize=size_inches, dpi=dots_per_inch, **options)
    FigureCanvasAgg(figure)
    return figure


def encoded(figure: Figure, kind: str) -> bytes:
    """The picture as ``png`` or ``svg``; the same picture gives the same bytes."""
    picture = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": "ncdiag"}
    with mpl.rc_context({"svg.hashsalt": "ncdiag"}):
        figure.savefig(picture, format=kind, metadata=metadata)
    return picture.getvalue()


def drawable(text: str) -> str:
    """Only what the font that comes with matplotlib can draw without a warning."""
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in text)
