"""Takes apart the commonest lines fast: one record of one process, with the library's prefix.

What is not quite so plain is left to the peeler, which understands everything.
"""

import re
from typing import NamedTuple

from ncdiag.model.log import Speaker
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.peel import clean, library, quotes, records

# The library's own prefix, as far as its level; what stands before it are wrappers.
_PREFIX = re.compile(
    r"([^\s:\[\]<>(){}|\"'`,;=\\]{1,255}):(\d{1,10}):\d{1,10} \[(-?\d{1,4})\]"
    r"(?: (\S{1,256}:\d{1,7})(?: \(([^()]{0,200})\))?)?\Z",
    re.ASCII,
)
_LEVEL = " NCCL "
_LEVELS = frozenset({"WARN", "INFO", "TRACE"})
_FARTHEST_LEVEL = 400
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?")
_SHOWN_MAX = 1000


_MOST_KNOWN = 50_000


class Voice:
    """Who speaks, at which level and from where in the source, behind which wrappers.

    ``wrapper`` is what stands before the library's prefix, its time as ``T``. ``known`` means that
    such a line was read in full before, ``tries`` counts the attempts. Each voice exists once, so
    that it may be part of a key.
    """

    __slots__ = (
        "device",
        "function",
        "host",
        "known",
        "level",
        "location",
        "pid",
        "speaker",
        "tries",
        "wrapper",
    )

    def __init__(self, parts: tuple[str | None, ...], wrapper: str, level: str) -> None:
        host, pid, self.device, self.location, self.function = parts
        self.host, self.pid = str(host), str(pid)
        self.speaker = Speaker(self.host, self.pid, None, self.device)
        self.wrapper = wrapper
        self.level = level
        self.known = False
        self.tries = 0


class PlainLine(NamedTuple):
    """A line of one process: who speaks, the message, and the text from the prefix on."""

    voice: Voice
    body: str
    text: str

    def line(self, path: str, number: int) -> Line:
        """The line as the peeler would make it, if there is no wrapper."""
        voice = self.voice
        return Line(
            text=self.body,
            place=Place(path, number),
            shown=self.text[:_SHOWN_MAX].rstrip(),
            speaker=voice.speaker,
            level=voice.level,
            location=voice.location,
            function=voice.function,
        )


class PlainLines:
    """Takes lines of one input apart; a prefix that came before is not looked at again."""

    def __init__(self) -> None:
        self._prefixes: dict[str, Voice] = {}
        self._voices: dict[tuple[str | None, ...], Voice] = {}

    def parts(self, raw: bytes) -> PlainLine | None:
        """The parts of a raw line; ``None`` if there is any doubt about them."""
        if b"\x1b" in raw or b"\r" in raw or b"\0" in raw:
            return None
        text = raw.decode(errors="replace")
        # Behind the level: " NCCL WARN ".
        start = text.find(" ", text.find(_LEVEL, 0, _FARTHEST_LEVEL) + len(_LEVEL)) + 1
        voice = self._prefixes.get(text[:start])
        if voice is None:
            voice = self._voice(text, start)
            if voice is None:
                return None
        body = text[start:].rstrip()
        if quotes.closed(body) and quotes.end_of(body, 0, 0, len(body)) < len(body):
            return None
        if ("[" in body or "CCL" in body or "NVRM" in body or body[-1:] == "$") and (
            body[-1] in "])$" or records.hinted(body) or not clean.is_plain(body)
        ):
            return None
        return PlainLine(voice, body, text)

    def _voice(self, text: str, start: int) -> Voice | None:
        """Who speaks by what stands before ``start``."""
        head, _, level = text[: start - 1].rpartition(_LEVEL)
        found = _PREFIX.search(head)
        if start < len(_LEVEL) or level not in _LEVELS or not found:
            return None
        before = head[: found.start()]
        if quotes.opened(before) or library.in_file(found[1]):
            return None
        wrapper = _TIME.sub("T", before)
        key = (*found.groups(), wrapper, level)
        voice = self._voices.get(key)
        if voice is None:
            if len(self._voices) >= _MOST_KNOWN:
                return None
            voice = self._voices[key] = Voice(found.groups(), wrapper, level)
        if not wrapper and len(self._prefixes) < _MOST_KNOWN:
            self._prefixes[text[:start]] = voice
        return voice
