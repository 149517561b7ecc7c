"""XML from a program as elements with text: no entities, no DTD that is read, bounded."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from ncdiag.read.gpu.reading import GpuReportError

# Eight GPUs with every clock they support are 10,000 elements in 400 KB, six deep.
MAX_BYTES = 16 << 20
MAX_ELEMENTS = 250_000
MAX_DEPTH = 32
# What one element may hold as text; the lists of retired pages are longest.
MAX_TEXT_CHARS = 4096
# Names of processes can hold characters that XML cannot.
_NOT_OF_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(slots=True)
class Node:
    """One element; ``text`` is what stands in it outside of other elements."""

    name: str
    text: str = ""
    children: list["Node"] = field(default_factory=list)

    def child(self, name: str) -> "Node | None":
        """The first element of this name right below."""
        return next((one for one in self.children if one.name == name), None)

    def at(self, path: str) -> "Node | None":
        """The element at ``a/b/c`` below this one."""
        found: Node | None = self
        for part in path.split("/"):
            found = found.child(part) if found is not None else None
        return found

    def say(self, *paths: str) -> str:
        """The text at the first of ``paths`` that there is, without blanks around it."""
        for path in paths:
            found = self.at(path)
            if found is not None:
                return found.text.strip()
        return ""

    def walk(self) -> Iterator["Node"]:
        """This element and all below it."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting += one.children


class _Builder:
    """Takes expat's events; what is below an element of ``skipped`` is not kept."""

    def __init__(self, root: str, skipped: Collection[str]) -> None:
        self.root: Node | None = None
        self.open: list[Node] = []
        self._name = root
        self._skipped = skipped
        self._skipping = 0
        self._elements = 0

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise GpuReportError(f"XML of more than {MAX_ELEMENTS} elements: no report on GPUs is")
        if self._skipping or name in self._skipped:
            self._skipping += 1
            return
        if len(self.open) >= MAX_DEPTH:
            raise GpuReportError(f"XML nested deeper than {MAX_DEPTH}: no report on GPUs is")
        node = Node(name)
        if self.open:
            self.open[-1].children.append(node)
        elif name == self._name:
            self.root = node
        else:
            raise GpuReportError(f"XML that does not begin with <{self._name}>")
        self.open.append(node)

    def end(self, _name: str) -> None:
        if self._skipping:
            self._skipping -= 1
        else:
            self.open.pop()

    def text(self, data: str) -> None:
        if self.open and not self._skipping and len(self.open[-1].text) < MAX_TEXT_CHARS:
            self.open[-1].text += data[:MAX_TEXT_CHARS]

    @staticmethod
    def doctype(_name: str, _system: str | None, _public: str | None, internal: int) -> None:
        # The name of a DTD stands in every report, and nobody reads it; one written out is a trap.
        if internal:
            raise GpuReportError("XML with its own DTD, which no report on GPUs has: not read")


def parse(data: bytes, root: str, skipped: Collection[str] = ()) -> Node:
    """The root element, which is called ``root``; raises :class:`GpuReportError`.

    What follows the root is left out.
    """
    if len(data) > MAX_BYTES:
        raise GpuReportError(f"XML larger than {MAX_BYTES >> 20} MiB: no report on GPUs is")
    builder = _Builder(root, skipped)
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    parser.StartDoctypeDeclHandler = builder.doctype
    text = _NOT_OF_XML.sub(" ", data.decode("utf-8", "replace"))
    try:
        parser.Parse(text.encode(), True)  # noqa: FBT003 (expat takes it so)
    except expat.ExpatError as error:
        if builder.root is None or builder.open:
            what = expat.errors.messages.get(error.code, "unknown error")
            raise GpuReportError(f"not well-formed XML: {what} in line {error.lineno}") from None
    if builder.root is None:
        raise GpuReportError("XML without an element")
    return builder.root
