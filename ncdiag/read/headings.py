"""Headings that name the host of the lines below them, as dshbak, clush -b and ansible print."""

import re

from ncdiag.model.nodes import is_host_name
from ncdiag.read.banners import Banners
from ncdiag.read.line import Line

# dshbak rules with sixteen dashes, clush with fifteen; other programs' rules have other lengths.
_RULE = re.compile(r"-{15,16}")
# A word between two rules is a host only with a digit, as hosts have that are one of a list.
_ONE_HOST = re.compile(r"(?=\D{0,200}\d)[A-Za-z][\w.-]{0,252}", re.ASCII)
# Names of files, and addresses.
_NO_HOST = re.compile(r"[\d.]+|.*\.(?:py|sh|log|out|err|txt|json|ya?ml)", re.ASCII)
# What peels wrappers may have taken the name off, as that of a container.
_ANSIBLE = re.compile(
    r"(?:(?P<host>\S{1,253}) {1,4}\| )?"
    r"(?:CHANGED|SUCCESS|FAILED|UNREACHABLE)!? (?:\| rc=-?\d{1,5} >>|=> \{)",
    re.ASCII,
)


class Headings:
    """Knows the host of the block at hand; takes every line of one input, in order."""

    def __init__(self) -> None:
        self._host: str | None = None
        self._named: str | None = None
        self._ruled = False
        self._banners = Banners()

    def under(self, line: Line) -> Line:
        """``line``, as the host's of its block where it names none itself."""
        heading = self._is_heading(line)
        line = self._banners.under(line, ends=heading)
        speaker = line.speaker
        if heading or not self._host or speaker.host or speaker.address:
            return line
        return line._replace(speaker=speaker._replace(host=self._host))

    def _is_heading(self, line: Line) -> bool:
        """Whether ``line`` is a part of a heading; the block ends with whatever is in one."""
        text = line.text.rstrip()
        if found := _ANSIBLE.match(text):
            self._host = _host_of(found["host"] or line.speaker.label or "")
            return True
        if not _RULE.fullmatch(text):
            self._named = text if self._ruled else None
            self._ruled = False
            return False
        if self._named:
            self._host = _host_of(self._named) if _ONE_HOST.fullmatch(self._named) else None
        self._ruled, self._named = not self._named, None
        return True


def _host_of(name: str) -> str | None:
    return name if is_host_name(name) and not _NO_HOST.fullmatch(name) else None
