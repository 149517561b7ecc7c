"""XML from strangers as a small tree of elements: no DTD, no entities, bounded."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from xml.parsers import expat

from ncdiag.model.topology import NotATopologyError, TruncatedTopologyError
from ncdiag.read.topology.text import MAX_VALUE_CHARS, quoted

# The largest real ones known are a fiftieth of each: a rack of 72 GPUs is 5,000 elements in 1 MB
# and 12 deep.
MAX_CHARS = 16 << 20
MAX_ELEMENTS = 250_000
MAX_ATTRIBUTES = 1_000_000
MAX_DEPTH = 64
MAX_TAG_CHARS = 64 << 10

# Input that ends where more must follow (expat.h).
_ENDS_EARLY = {
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}
# An attribute's value holds no ``<``, so this finds the tag that holds too much, or the text after.
_LONG_TAG = re.compile(rf"<[A-Za-z][^<]{{{MAX_TAG_CHARS}}}")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HTML = re.compile(r"(?:<!doctype\s+html|<html)\b", re.IGNORECASE)
_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);)")


@dataclass(slots=True)
class Element:
    """One element; text between elements is not kept."""

    name: str
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)

    def get(self, name: str) -> str | None:
        """Return an attribute's value, cut where NCCL cuts it; ``None`` if it is not given."""
        value = self.attributes.get(name)
        return None if value is None else value[:MAX_VALUE_CHARS]


def beginning(text: str, roots: Collection[str]) -> str | None:
    """Return ``text`` from where XML begins in it; ``None`` if it is no XML.

    Lines before a known root (a prompt, the command) are left out.
    """
    stripped = text.lstrip("\ufeff \t\n\v\f")
    if stripped.startswith("<"):
        return stripped
    names = "|".join(map(re.escape, roots))
    match = re.search(rf"^[ \t]*(?=<(?:{names})[\s/>])", text, re.MULTILINE)
    return None if match is None else text[match.end() :]


def documents(text: str, roots: Collection[str]) -> list[tuple[str, str]]:
    """Return the documents that follow each other in ``text``, each with the text after its root.

    A root that is never closed takes in what follows it, and is cut short.
    """
    if sum(text.count(f"<{root}") for root in roots) < 2 and text.rstrip().endswith(">"):
        return [(text, "")]
    plain = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)
    tag = re.compile(rf"<(/?)({'|'.join(map(re.escape, roots))})(?=[\s/>])[^<>]*>?")
    found: list[tuple[str, str]] = []
    begin, name, end, depth = 0, "", 0, 0
    for match in tag.finditer(plain):
        closes, ends_itself = bool(match[1]), match[0].endswith("/>")
        if depth:
            if match[2] == name and not ends_itself:
                depth += -1 if closes else 1
                end = match.end()
        elif not closes:
            if name:
                found.append((text[begin:end], text[end : match.start()]))
                begin = match.start()
            name, end, depth = match[2], match.end(), 0 if ends_itself else 1
    end = len(text) if depth or not name else end
    return [*found, (text[begin:end], text[end:])]


def parse(text: str, roots: Collection[str]) -> Element:
    """Return the root element of ``text``, whose name is one of ``roots``.

    What follows the root is left out, and an ``&`` that begins no entity stands for itself, as
    NCCL's own parser takes them. Raises ``TruncatedTopologyError`` where the text ends inside the
    root, ``NotATopologyError`` for everything else that is no such document.
    """
    if len(text) > MAX_CHARS:
        raise NotATopologyError(f"XML larger than {MAX_CHARS >> 20} MiB: no topology dump is")
    if _HTML.match(text):
        raise NotATopologyError("a web page, not a dump")
    if _LONG_TAG.search(text):
        raise NotATopologyError(
            f"XML with a tag of over {MAX_TAG_CHARS >> 10} KiB: no topology dump"
        )
    try:
        return _parse(text, roots)
    except expat.ExpatError as error:
        again = _AMPERSAND.sub("&amp;", text)
        if again == text:
            raise _refusal(error) from None
    try:
        return _parse(again, roots)
    except expat.ExpatError as error:
        raise _refusal(error) from None


def _refusal(error: expat.ExpatError) -> NotATopologyError:
    what = expat.errors.messages.get(error.code, "unknown error")
    return NotATopologyError(f"not well-formed XML: {what} in line {error.lineno}")


class _Builder:
    """Takes expat's events and keeps to the bounds."""

    def __init__(self, roots: Collection[str]) -> None:
        self.root: Element | None = None
        self.open: list[Element] = []
        self._roots = roots
        self._elements = 0
        self._attributes = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        self._attributes += len(attributes)
        if self._elements > MAX_ELEMENTS or self._attributes > MAX_ATTRIBUTES:
            raise NotATopologyError(f"XML of more than {MAX_ELEMENTS} elements, which no dump has")
        if len(self.open) >= MAX_DEPTH:
            raise NotATopologyError(f"XML nested deeper than {MAX_DEPTH}, which no dump is")
        element = Element(name, attributes)
        if self.open:
            self.open[-1].children.append(element)
        elif name in self._roots:
            self.root = element
        else:
            known = ", ".join(f"<{root}>" for root in self._roots)
            raise NotATopologyError(
                f"XML whose root is <{quoted(name)}>; topologies begin with {known}"
            )
        self.open.append(element)

    def end(self, _name: str) -> None:
        self.open.pop()

    @staticmethod
    def doctype(name: str, _system: str | None, _public: str | None, internal: int) -> None:
        # lstopo names its own DTD, which nobody fetches.
        if internal or name != "topology":
            raise NotATopologyError("XML with a DTD, which no topology dump has: not read")


def _parse(text: str, roots: Collection[str]) -> Element:
    builder = _Builder(roots)
    # The text is decoded already, whatever its declaration says.
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.StartDoctypeDeclHandler = builder.doctype
    data = text.encode("utf-8", "replace")
    try:
        parser.Parse(data, True)  # noqa: FBT003 (expat takes it by position)
    except expat.ExpatError as error:
        if builder.root is not None and not builder.open:
            return builder.root
        if error.code not in _ENDS_EARLY:
            raise
        if builder.root is not None:
            where = f"<{quoted(builder.open[-1].name)}>"
            raise TruncatedTopologyError(
                f"cut short: ends inside {where} in line {error.lineno}"
            ) from None
        cut = data[parser.ErrorByteIndex :][:80].decode("utf-8", "replace")
        if cut.startswith(tuple(f"<{root} " for root in roots)):
            raise TruncatedTopologyError("cut short: ends inside its first element") from None
        raise NotATopologyError("XML without an element") from None
    if builder.root is None:
        raise NotATopologyError("XML without an element")
    return builder.root
