"""Back-traces of errors: one frame a line, innermost first."""

import re

from ncdiag.read.line import Line
from ncdiag.read.nccl.notes import ProcessNotes, Rule

_FRAME = re.compile(
    r"^(\S{1,512}?\.(?:cc|cpp|cu|c|hpp|h)):(\d{1,7})(?: \([^)]{0,256}\))? -> (\d{1,3})\b"
)
_KEPT_FRAMES = 32


def _note_frame(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    process = notes.process
    source = found[1]
    process.chain.append((source, int(found[2]), int(found[3])))
    del process.chain[:-_KEPT_FRAMES]
    process.chain_bootstrap = process.chain_bootstrap or "bootstrap" in source
    process.chain_socket = process.chain_socket or "net_socket" in source
    process.chain_place = line.place


RULES = (Rule((".cc:", ".h:", ".c:", ".cu:", ".cpp:"), _FRAME, _note_frame, fact=False),)
