"""A log read by one reader of lines alone, as a scan would hand its lines over."""

from ncdiag.model.log import InputSummary, LogEvidence
from ncdiag.read.line import LineReader
from ncdiag.read.peel import Peeler

PATH = "job.log"


def scanned(reader: LineReader, log: str | bytes) -> LogEvidence:
    """What ``reader`` makes of the lines of ``log`` that hold a needle, or that it waits for."""
    raw = log.encode() if isinstance(log, str) else log
    parts, peeler, evidence = raw.split(b"\n"), Peeler(PATH), LogEvidence()
    wanted = reader.needles | reader.facts
    lines = [line for number, part in enumerate(parts, 1) for line in peeler.feed(part, number)]
    for line in [*lines, *peeler.finish()]:
        searched = parts[line.place.line - 1] + line.text.encode(errors="replace")
        hits = [needle for needle in wanted if needle in searched]
        if hits or reader.open:
            reader.read(line, hits)
    reader.finish(evidence)
    evidence.inputs.append(InputSummary(path=PATH, kinds=sorted(getattr(reader, "kinds", ()))))
    return evidence
