"""YAML from strangers as lists, mappings and strings: no aliases, no tags, bounded."""

from typing import Any

import yaml

from ncdiag.model.topology import NotATopologyError, TruncatedTopologyError
from ncdiag.read.topology.text import quoted

PlainValue = Any
"""``str``, ``list`` or ``dict`` of such; every scalar is the text of the file."""

# 10,000 switches of Slurm are 1 MB and 6 deep.
MAX_CHARS = 8 << 20
MAX_DEPTH = 20

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(text: str) -> PlainValue:
    """The first document of ``text``.

    Raises :class:`NotATopologyError` for what is no YAML, too large, too deep or has aliases or
    tags, and :class:`TruncatedTopologyError` where it ends before it is whole.
    """
    if len(text) > MAX_CHARS:
        raise NotATopologyError(f"larger than {MAX_CHARS >> 20} MiB: no topology.yaml is")
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
            if isinstance(event, yaml.DocumentEndEvent):
                break
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at_end = mark is not None and mark.line >= text.rstrip().count("\n")
        if at_end and "nesting" not in (error.problem or ""):
            raise TruncatedTopologyError(f"cut short: {quoted(error.problem or '')}") from None
        line = f"line {mark.line + 1}: " if mark else ""
        raise NotATopologyError(f"{line}no YAML: {quoted(error.problem or '')}") from None
    except yaml.YAMLError as error:
        raise NotATopologyError(f"no YAML: {quoted(str(error))}") from None
    return builder.root


class _Builder:
    """Puts values together from the parser's events."""

    def __init__(self) -> None:
        self.root: PlainValue = None
        self._open: list[tuple[PlainValue, list[str]]] = []

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise NotATopologyError(f"line {line}: anchors and aliases are not taken")
        if getattr(event, "tag", None):
            raise NotATopologyError(f"line {line}: tags are not taken")
        if isinstance(event, yaml.ScalarEvent):
            self._add(event.value)
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            if len(self._open) >= MAX_DEPTH:
                raise NotATopologyError(f"line {line}: more than {MAX_DEPTH} levels deep")
            value: PlainValue = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            self._add(value)
            self._open.append((value, []))
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            self._open.pop()

    def _add(self, value: PlainValue) -> None:
        if not self._open:
            self.root = value
            return
        parent, key = self._open[-1]
        if isinstance(parent, list):
            parent.append(value)
        elif key:
            parent[key.pop()] = value
        else:
            key.append(value if isinstance(value, str) else "")
