"""The post-mortem of a log that a test spells out."""

from pathlib import Path

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.logs.read_logs import read_logs
from ncdiag.model.finding import Postmortem
from ncdiag.read.log_reader import LogReader


def post(text: str) -> Postmortem:
    """What is said of the lines of ``text``, without a file."""
    reader = LogReader("job.log")
    wanted = sorted(reader.needles | reader.facts)
    for number, line in enumerate(text.splitlines(), 1):
        raw = line.encode()
        reader.take(raw, number, tuple(needle for needle in wanted if needle in raw))
    return diagnose(reader.finish())


def answer(folder: Path, *lines: str) -> Postmortem:
    """What is said of a file of these lines, put into ``folder``."""
    path = folder / "job.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return diagnose(read_logs([str(path)]))
