"""Version lines, bare and prefixed, several of them glued together, RCCL's banner."""

import re
from collections.abc import Iterator

# 2.21.5+cuda12.4, 2.7.8+hip3.9, 2.8.3a1, 2.22.3-HEAD:1a2b3c4, a plus behind that where the
# source was changed; what follows may be glued to it.
_VERSION = re.compile(
    r"(?<![A-Za-z_])(NCCL|RCCL) version ?:? ?(\d{1,3}\.\d{1,3}\.\d{1,3}(?:a\d|b\d|rc\d|alpha|beta)?"
    r"(?:\+(?:cuda|hip|rocm)\d{1,3}\.\d{1,3}|-[\w./-]{1,40}:[0-9a-f]{6,40}\+?(?!\S)"
    r"|[+-]\w[\w.:-]{0,60})?)"
)
_WHEEL = re.compile(r"\busing nccl==(\d{1,3}\.\d{1,3}\.\d{1,3})")
_WISH = re.compile(r"\s{0,3}(?:or|and) (?:newer|later|higher|above|greater|up)|\+(?:\s|$)")
_BARE = re.compile(r"^\s{0,8}(?:NCCL|RCCL) version ?:? ?\d(?!.* compiled with)")
_BANNER_HOST = re.compile(r"^Hostname\s{0,10}: (\S{1,255})\s*\Z")

NEEDLES = ("NCCL version ", "RCCL version ", "using nccl==")


def versions(text: str) -> Iterator[tuple[str, str]]:
    """Each (library, version) that ``text`` states."""
    for found in _VERSION.finditer(text):
        if not _WISH.match(text, found.end()):
            library = "RCCL" if "+hip" in found[2] or "+rocm" in found[2] else found[1]
            yield library, found[2]
    for found in _WHEEL.finditer(text):
        yield "NCCL", found[1]


def is_bare_version(text: str) -> bool:
    """Whether ``text`` is a version line of the library itself, not a report's or a sentence."""
    return bool(_BARE.match(text))


def banner_host(text: str) -> str | None:
    """The host that RCCL's banner names."""
    found = _BANNER_HOST.match(text)
    return found[1] if found else None
