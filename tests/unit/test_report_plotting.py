"""Matplotlib says nothing on the terminal, wherever it is run and whatever home there is."""

import os
import re
import subprocess
import sys
from pathlib import Path

from ncdiag.report.plotting import encoded, new_figure

ROOT = Path(__file__).parents[2]
DRAW = (
    "import sys\n"
    "from ncdiag.report.plotting import encoded, new_figure\n"
    "figure = new_figure((2, 1), 50)\n"
    "figure.suptitle('title')\n"
    "sys.stdout.buffer.write(encoded(figure, sys.argv[1]))\n"
)


def drawn(folder: Path, kind: str, **variables: str) -> tuple[bytes, bytes]:
    unset = {"MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MATPLOTLIBRC"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-c", DRAW, kind],
        capture_output=True,
        check=True,
        timeout=120,
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), **variables},
    )
    return done.stdout, done.stderr


def test_a_home_that_cannot_be_written_is_no_reason_for_a_message(tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.touch()
    picture, err = drawn(tmp_path, "png", HOME=str(home))
    assert picture.startswith(b"\x89PNG")
    assert err == b""


def test_a_style_that_lies_about_changes_nothing(tmp_path: Path) -> None:
    style = "font.size: 40\nfigure.facecolor: red\nno.such.key: 1\nsvg.fonttype: nonsense\n"
    (tmp_path / "matplotlibrc").write_text(style)
    figure = new_figure((2, 1), 50)
    figure.suptitle("title")
    assert drawn(tmp_path, "svg") == (encoded(figure, "svg"), b"")


def test_no_other_module_imports_matplotlib() -> None:
    importing = {
        path.name
        for path in ROOT.glob("ncdiag/**/*.py")
        if re.search(r"^\s*(?:from|import) matplotlib\b", path.read_text(), re.MULTILINE)
    }
    assert importing == {"plotting.py"}
