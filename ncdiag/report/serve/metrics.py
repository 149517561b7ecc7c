"""Several Prometheus textfiles as one: each family once, each series once."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

# Of the format (Prometheus documentation, "Exposition formats").
_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL: Final = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
_VALUE: Final = r"[+-]?(?:[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf|nan)"
_SAMPLE: Final = re.compile(
    rf"({_NAME})(?:\{{((?:{_LABEL}(?:,{_LABEL})*,?)?)\}})?[ \t]+({_VALUE})[ \t]*\Z", re.IGNORECASE
)
_ONE_LABEL: Final = re.compile(_LABEL)
_COMMENT: Final = re.compile(rf"# (HELP|TYPE) ({_NAME})(?: (.*))?\Z")
_TYPES: Final = frozenset({"counter", "gauge", "histogram", "summary", "untyped"})
_PARTS: Final = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
_NO_HELP: Final = "No help was given."


@dataclass(slots=True)
class _Family:
    text: str | None = None
    kind: str | None = None
    samples: dict[tuple[str, str], str] = field(default_factory=dict)


class Joined:
    """Metrics of several textfiles; of a series that several have the first holds.

    What is no metric is left out and counted in ``damaged``, as are time stamps, which scrapes
    of textfiles may not have.
    """

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}
        self.damaged = 0

    def add(self, text: str) -> None:
        """The metrics of one textfile."""
        for line in text.split("\n"):
            line = line.strip(" \t\r")  # noqa: PLW2901 - the same line, trimmed
            if not line:
                continue
            if line.startswith("#"):
                self._comment(line)
            elif found := _SAMPLE.match(line):
                self._sample(*found.groups(default=""))
            else:
                self.damaged += 1

    def _comment(self, line: str) -> None:
        found = _COMMENT.match(line)
        if found is None:  # a comment for people
            return
        what, name, text = found.groups(default="")
        family = self._families.setdefault(name, _Family())
        if what == "HELP":
            family.text = family.text or text
        elif text not in _TYPES:
            self.damaged += 1
        else:
            family.kind = family.kind or text

    def _sample(self, name: str, labels: str, value: str) -> None:
        family = self._families.setdefault(self._family_of(name), _Family())
        # The same labels in another order are the same series.
        pairs = sorted(_ONE_LABEL.findall(labels))
        if len({pair.partition("=")[0] for pair in pairs}) < len(pairs):
            self.damaged += 1
            return
        key = ",".join(pairs)
        family.samples.setdefault((name, key), value)

    def _family_of(self, name: str) -> str:
        for kind, parts in _PARTS.items():
            for part in parts:
                whole = name.removesuffix(part)
                known = self._families.get(whole) if whole != name else None
                if known is not None and known.kind == kind:
                    return whole
        return name

    def lines(self) -> Iterator[str]:
        """All families, in the order of their names."""
        for name, family in sorted(self._families.items()):
            if not family.samples:
                continue
            yield f"# HELP {name} {family.text or _NO_HELP}\n"
            yield f"# TYPE {name} {family.kind or 'untyped'}\n"
            for (series, labels), value in family.samples.items():
                yield f"{series}{{{labels}}} {value}\n" if labels else f"{series} {value}\n"


def join_metrics(texts: Iterable[str]) -> str:
    """The textfiles as one document, with how many of their lines were no metrics."""
    joined = Joined()
    for text in texts:
        joined.add(text)
    if joined.damaged:
        joined.add(
            "# HELP ncdiag_serve_damaged_lines Lines of textfiles that are no metrics.\n"
            "# TYPE ncdiag_serve_damaged_lines gauge\n"
            f"ncdiag_serve_damaged_lines {joined.damaged}\n"
        )
    return "".join(joined.lines())
