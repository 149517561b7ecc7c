"""What a reader of a whole file is: a format recognised by its first bytes, not line by line."""

from typing import Protocol

from ncdiag.model.log import LogEvidence

# Enough of a file's beginning to recognise any of them.
HEAD_BYTES = 4096


class Document(Protocol):
    """Reads one file of one format; made with the file's path.

    ``kind`` is what ``InputSummary.kinds`` calls the format. After ``finish``, ``error`` says in
    one line why the document could not be read, if so; ``truncated`` that it was not read whole.
    """

    kind: str
    error: str | None

    def __init__(self, path: str) -> None: ...

    @property
    def truncated(self) -> bool:
        """Whether the document was not read whole."""

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Whether a file that begins with ``head`` (``HEAD_BYTES`` of it) is such a document."""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, in pieces of any size."""

    def finish(self, evidence: LogEvidence) -> None:
        """Read what was fed and add it to ``evidence``; never raises."""
