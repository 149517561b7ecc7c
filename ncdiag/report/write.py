"""Writes the report directory: each file whole, or not at all."""

from collections.abc import Callable, Mapping
from pathlib import Path

from ncdiag.model.errors import UndecidedError
from ncdiag.model.text import visible
from ncdiag.model.verdict import SweepReport
from ncdiag.report.presentable import presentable
from ncdiag.store.whole_file import replacing


def write_all(report: SweepReport, directory: Path) -> None:
    """Write every file of the report into ``directory``, which is made where it is missing.

    What programs and tickets need comes first, the picture last. Files of an earlier report are
    replaced one by one; an interrupted write leaves the old file. Raises :class:`UndecidedError`
    with one line where a file cannot be written.
    """
    report = presentable(report)
    for name, render in _renderers().items():
        write_file(directory / name, render(report))


def _renderers() -> Mapping[str, Callable[[SweepReport], str | bytes]]:
    # Some of these import matplotlib, numpy or jinja2, which only the writing command needs.
    from ncdiag.report import (
        heatmap,
        html_report,
        json_report,
        links_csv,
        node_lists,
        prometheus,
        summary,
    )

    return {
        "hosts.isolate.txt": lambda report: node_lists.render(report.diagnosis.isolate),
        "hosts.good.txt": lambda report: node_lists.render(report.diagnosis.good),
        "summary.txt": summary.render,
        "report.json": json_report.render,
        "links.csv": links_csv.render,
        "metrics.prom": prometheus.render,
        "report.html": html_report.render,
        "heatmap.png": heatmap.render,
    }


def write_file(path: Path, content: str | bytes) -> None:
    """Put ``content`` at ``path`` in one step, in a folder that is made where it is missing.

    Whoever reads meanwhile sees the old file whole. Devices, pipes and links stay what they are and
    are written into. Raises :class:`UndecidedError`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        if path.exists() and (path.is_symlink() or not path.is_file()):
            path.write_bytes(data)
        else:
            _replace(path, data)
    except OSError as error:
        raise UndecidedError(
            f"cannot write {visible(str(path))}: {error.strerror or error}"
        ) from error


def _replace(path: Path, data: bytes) -> None:
    with replacing(path, path.stat() if path.exists() else None) as file:
        file.write(data)
