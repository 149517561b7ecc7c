"""YAML of several documents as a tree with line numbers, of bounded depth and size.

Scalars stay the text they are written as: ``"1"``, ``1`` and ``yes`` are strings, as values of
environment variables are. An alias is the node it stands for, so a tree may meet itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from ncdiag.model.errors import UsageError

_DEEPEST = 64
_MOST_NODES = 500_000
_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


@dataclass(slots=True, eq=False)
class Scalar:
    """``block`` is whether it is written under a ``|`` or ``>``, so that its text is below."""

    text: str
    line: int
    block: bool = False


@dataclass(slots=True, eq=False)
class Sequence:
    """``- item`` or ``[item]``."""

    line: int
    items: list["Node"] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Mapping:
    """``key: value`` in order; keys that are no scalars are left out."""

    line: int
    entries: list[tuple[Scalar, "Node"]] = field(default_factory=list)

    def get(self, key: str) -> "Node | None":
        """The value of ``key``, or ``None``."""
        return next((value for name, value in self.entries if name.text == key), None)

    def text(self, key: str) -> str | None:
        """The value of ``key`` if it is a scalar."""
        value = self.get(key)
        return value.text if isinstance(value, Scalar) else None


Node = Scalar | Sequence | Mapping


def read(text: str, name: str) -> list[Node]:
    """The documents of ``text``; raises :class:`UsageError` with file and line."""
    builder = _Builder(name)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.add(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        hint = "; render the template first" if "{{" in text else ""
        raise UsageError(f"{name}:{line}: not YAML: {error.problem}{hint}") from None
    except (yaml.YAMLError, ValueError):
        raise UsageError(f"{name}:1: not YAML: it holds characters that no text has") from None
    return builder.documents


def walk(root: Node) -> Iterator[tuple[Mapping, tuple[str, ...]]]:
    """Every mapping of a tree once, from the top, with the lines of those it stands in and its own.

    Two mappings that begin in one line are told apart by a count.
    """
    seen: set[int] = set()
    waiting: list[tuple[Node, tuple[str, ...]]] = [(root, ())]
    while waiting:
        node, within = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Sequence):
            waiting.extend((item, within) for item in reversed(node.items))
        elif isinstance(node, Mapping):
            path = (*within, f"{node.line}.{len(seen)}")
            yield node, path
            waiting.extend((value, path) for _, value in reversed(node.entries))


class _Builder:
    def __init__(self, name: str) -> None:
        self.documents: list[Node] = []
        self._name = name
        self._open: list[Sequence | Mapping] = []
        self._keys: list[Node | None] = []
        self._anchors: dict[str, Node] = {}
        self._count = 0

    def add(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._anchors = {}
        elif isinstance(event, yaml.AliasEvent):
            self._put(self._anchors.get(event.anchor or "") or Scalar("", _line(event)))
        elif isinstance(event, yaml.ScalarEvent):
            self._begin(event, Scalar(event.value, _line(event), event.style in ("|", ">")))
        elif isinstance(event, yaml.SequenceStartEvent):
            self._begin(event, Sequence(_line(event)))
        elif isinstance(event, yaml.MappingStartEvent):
            self._begin(event, Mapping(_line(event)))
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            self._open.pop()
            self._keys.pop()

    def _begin(self, event: yaml.NodeEvent, node: Node) -> None:
        self._count += 1
        if self._count > _MOST_NODES or len(self._open) >= _DEEPEST:
            raise UsageError(f"{self._name}:{_line(event)}: nested too deep, or too large")
        if event.anchor:
            self._anchors[event.anchor] = node
        self._put(node)
        if not isinstance(node, Scalar):
            self._open.append(node)
            self._keys.append(None)

    def _put(self, node: Node) -> None:
        if not self._open:
            self.documents.append(node)
            return
        parent = self._open[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif self._keys[-1] is None:
            self._keys[-1] = node
        else:
            key, self._keys[-1] = self._keys[-1], None
            if isinstance(key, Scalar):
                parent.entries.append((key, node))


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
