"""Bytes of one raw line to text without what terminals left in it."""

import re

LONGEST = 65536
_CONTROL = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # OSC and other strings
    r"|\x1b[ -/]{0,4}[0-~]?"
)
# Colours whose escape was dropped or spelt out.
_MAIMED = re.compile(
    r"(?:\^\[|\\x1[bB]|\\e|\\0?33|\\u001[bB]|ESC|\u241b|\u2190)?"
    r"\[(?:\d{1,3}(?:;\d{1,3}){0,8}m(?!\])|m(?![\w ,.:/=-]{0,80}\])"
    r"|(?<=[\[eEbBC3\u241b\u2190]\[)[0-2]?[KJ])"
)
_HINT = re.compile(r"\[(?:[\d;]{0,40}m|[0-2]?[KJ])")
_MAIMED_START = re.compile(rf"(?:{_MAIMED.pattern})+ ?")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&amp;", "&"))
# What chats and word processors put for blanks and plain quotation marks.
_TYPESET = str.maketrans("\u00a0\u202f\u2018\u2019\u201c\u201d", "  ''\"\"")
# "[10.1.2.3](http://10.1.2.3/)", as mail is shown on pages that make addresses links.
_LINK = re.compile(r"\[([^\s\[\]()]{1,200})\]\((?:https?|mailto)[^\s()]{1,300}\)")
# What makes a piece before a carriage return worth keeping.
_WORTH = re.compile(r"NCCL|ProcessGroup|NVRM|[Ee]rror|\[rank\d|Traceback|Xid")


def decode(raw: bytes) -> str:
    """The text of a raw line, without its line end, byte order mark and NUL bytes."""
    if len(raw) > LONGEST:
        raw = raw[:LONGEST]
    text = raw.decode("utf-8", "replace").rstrip("\r\n").removeprefix("\ufeff")
    if not text.isascii():
        text = text.translate(_TYPESET)
    if "](http" in text or "](mailto" in text:
        text = _LINK.sub(r"\1", text)
    return text.replace("\0", "") if "\0" in text else text


def is_plain(text: str) -> bool:
    """Whether a line is as its process wrote it, without anything for a terminal or a page."""
    terminal = "\r" in text or "\x1b" in text or _HINT.search(text) is not None
    return not terminal and "&" not in text


def without_colours(text: str) -> str:
    """``text`` without escape sequences, whole or maimed."""
    if "\x1b" in text:
        text = _CONTROL.sub("", text)
    if _HINT.search(text):
        start = _MAIMED_START.match(text)
        if start:
            text = text[start.end() :]
        text = _MAIMED.sub("", text)
    return text


def without_entities(text: str) -> str:
    """``text`` as it was before it stood in a web page."""
    if "&lt;" in text or "&gt;" in text or "&#39;" in text or "&quot;" in text:
        for spelt, meant in _ENTITIES:
            text = text.replace(spelt, meant)
    return text


def after_returns(text: str) -> list[str]:
    """What stays of a line that was printed over itself: its last state, and real records."""
    pieces = [piece for piece in text.split("\r") if piece.strip()]
    kept = [piece for piece in pieces[:-1] if _WORTH.search(piece)]
    return [*kept, *pieces[-1:]] or [""]
