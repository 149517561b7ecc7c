"""Undoes what programs for mail do to a log: quoted-printable bodies, lines broken between words.

A break between words shows nothing by itself. It is believed where the line is a quote, where a
record ends in the middle of a phrase, or where several records of an input without longer lines
of different lengths go on in a line of their own; always only if the next word had not fitted on
the line before.
"""

import re
from collections.abc import Callable, Iterator

from ncdiag.read.peel.wraps import Raw

_ANNOUNCED = re.compile(r"content-transfer-encoding: *quoted-printable\s*$", re.IGNORECASE)
_ENDED = re.compile(r"(?i)content-transfer-encoding: |--\S")
_ESCAPES = re.compile(r"(?:=[0-9A-F]{2})+")
# In such a body, an equals sign of the text is itself written so.
_FOREIGN = re.compile(r"=(?![0-9A-F]{2}|\s*$)")
_QP_NARROWEST, _QP_WIDEST = 60, 76
_QUOTE = re.compile(r"(?:> ?){1,8}")
_WIDEST = 80
# Narrower than this, the next word would have had room.
_NARROWEST = 70
# A record that ends earlier has room for nearly any word.
_SHORT = 58
_UNFINISHED = re.compile(
    r"(?:[,(=]| (?:[Gg]ot|completion|from|peer|remote|with|error|status|opcode|vendor|err|len|to"
    r"|of|on|in|for|by|at|the|a|an|and|is|was|has|been|not|failed to|call|Call|connect))$"
)
# What Slurm ends with three asterisks, on that line or on the next.
_OPEN = "CANCELLED AT "
_OPEN_END = re.compile(r"\*\*\* (?:JOB|STEP) [^*\n]{1,160} CANCELLED AT [\w:-]{4,32}[A-Z ]{0,40}$")
_ITS_REST = re.compile(r"[A-Z][A-Z ,]{1,80}\*\*\*")
_MOST_PARTS = 12
_MOST_WAITING = 64
_PROOF = 3


class Mail:
    """Takes raw lines in order and gives them back as they were written.

    ``begins`` tells whether a text begins as a record does, ``holds`` whether one is in it.
    """

    def __init__(self, begins: Callable[[str], bool], holds: Callable[[str], bool]) -> None:
        self._begins = begins
        self._holds = holds
        self._encoded = False
        self._soft: Raw | None = None
        self._wide = False
        self._proved = False
        self._held: Raw | None = None
        self._last = ""
        self._next = 0
        self._parts = 0
        self._waiting: list[Raw] = []
        self._lengths: set[int] = set()

    def passes(self, raw: Raw) -> bool:
        """Whether ``raw`` is as it was written for sure, as most lines are; else push it."""
        text = raw.text
        if len(text) > _WIDEST and text[:1] != ">":
            self._wide = True
        busy = self._soft or self._held or self._waiting or self._encoded
        if busy or text[-1:] == "=" or text[:1] in {">", "C", "c"} or _OPEN in text:
            return False
        return self._wide or len(text) < _SHORT

    def push(self, raw: Raw) -> Iterator[Raw]:
        """The lines that are whole now."""
        for whole in self._unescaped(raw):
            if self._waiting:
                yield from self._wait(whole)
            else:
                yield from self._take(whole)

    def finish(self) -> Iterator[Raw]:
        """What was held back."""
        if self._soft:
            soft, self._soft = self._soft, None
            yield from self.push(soft._replace(text=f"{soft.text} "))
        yield from self._replayed()
        if self._held:
            yield self._held
            self._held = None

    # Quoted-printable.

    def _unescaped(self, raw: Raw) -> Iterator[Raw]:
        text = raw.text
        soft, self._soft = self._soft, None
        if _ANNOUNCED.match(text):
            self._encoded = True
        elif self._encoded and (_ENDED.match(text) or _FOREIGN.search(text)):
            self._encoded = False
        broken = self._is_broken(text)
        if soft:
            if not broken and not text.strip():
                # The end of an ordinary line, by chance.
                yield soft
                yield raw
                return
            text = soft.text[:-1] + text
        number = soft.number if soft else raw.number
        if broken and len(text) < _QP_WIDEST * _MOST_PARTS * 4:
            self._soft = Raw(text, number)
            return
        if self._encoded or (soft and "=3D" in text and not _FOREIGN.search(text)):
            self._encoded = True
            text = _ESCAPES.sub(_decoded, text)
        yield Raw(text, number)

    def _is_broken(self, text: str) -> bool:
        if text[-1:] != "=" or text[-2:-1] in {"=", "", " ", "-", "#"}:
            return False
        return self._encoded or _QP_NARROWEST <= len(text) <= _QP_WIDEST

    # Breaks between words.

    def _take(self, raw: Raw) -> Iterator[Raw]:
        held, self._held = self._held, None
        if held is None:
            yield from self._begin(raw)
            return
        rest = self._rest(raw)
        if rest is None:
            yield held
            yield from self._begin(raw)
        elif self._believed(held):
            yield from self._join(held, rest, raw)
        else:
            self._waiting = [held, raw]
            self._lengths = {len(held.text.rstrip())}

    def _begin(self, raw: Raw) -> Iterator[Raw]:
        self._next = raw.number + 1
        text = raw.text
        quote = _QUOTE.match(text)
        bare = text[quote.end() :] if quote else text
        narrow = _SHORT <= len(bare) <= _WIDEST and (quote or not self._wide)
        if (narrow and self._holds(bare)) or _OPEN_END.search(text):
            self._held, self._parts = raw, 1
            self._last = text
        else:
            yield raw

    def _rest(self, raw: Raw) -> str | None:
        """What of ``raw`` goes on with the line before it, if anything may."""
        quote, again = _QUOTE.match(self._last), _QUOTE.match(raw.text)
        if raw.number != self._next or (quote and quote[0].strip()) != (again and again[0].strip()):
            return None
        bare = raw.text[again.end() :] if again else raw.text
        before = self._last[quote.end() :] if quote else self._last
        if _OPEN in before:
            return bare if _ITS_REST.match(bare) and _OPEN_END.search(before) else None
        word = bare.split(" ", 1)[0]
        fits = len(before.rstrip()) + 1 + len(word) <= _NARROWEST
        if not word or fits or len(bare) > _WIDEST or bare[0] in "-#*=|`" or self._begins(bare):
            return None
        return bare

    def _believed(self, held: Raw) -> bool:
        if self._parts > 1 or _UNFINISHED.search(held.text.rstrip()) or _OPEN in held.text:
            return True
        # A terminal cuts all lines at one width, and between letters.
        return self._proved or (held.text[:1] == ">" and len(held.text) != _WIDEST)

    def _join(self, held: Raw, rest: str, raw: Raw) -> Iterator[Raw]:
        whole = Raw(f"{held.text.rstrip()} {rest}", held.number)
        self._next, self._last = raw.number + 1, raw.text
        self._parts += 1
        if self._parts < _MOST_PARTS:
            self._held = whole
        else:
            yield whole

    def _wait(self, raw: Raw) -> Iterator[Raw]:
        """Look for another record that goes on, before the first is believed to."""
        before = self._waiting[-1]
        self._waiting.append(raw)
        self._last, self._next = before.text, before.number + 1
        if not self._wide and self._holds(before.text) and self._rest(raw) is not None:
            self._lengths.add(len(before.text.rstrip()))
        if self._wide or len(self._lengths) >= _PROOF or len(self._waiting) >= _MOST_WAITING:
            yield from self._replayed()

    def _replayed(self) -> Iterator[Raw]:
        """Go on from the lines that waited."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        self._proved = len(self._lengths) >= _PROOF and not self._wide
        if not self._proved:
            self._wide = True
        for raw in waiting:
            yield from self._take(raw)


def _decoded(escapes: re.Match[str]) -> str:
    return bytes.fromhex(escapes[0].replace("=", "")).decode("utf-8", "replace")
