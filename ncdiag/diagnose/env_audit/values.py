"""Which variables NCCL prints, and how it prints their values."""

import re
from typing import Final

from ncdiag.model.environment import Reader, ValueType, Variable
from ncdiag.profiles import catalogue
from ncdiag.profiles.placeholders import form_of, placeholders_in
from ncdiag.profiles.rules.values import CASE_MATTERS
from ncdiag.profiles.versions import Version

# Read before there is anything to print it with (NCCL 2.30, src/debug.cc, src/misc/param.cc).
_NEVER_PRINTED: Final = frozenset(
    {
        "NCCL_CONF_FILE",
        "NCCL_DEBUG",
        "NCCL_DEBUG_FILE",
        "NCCL_DEBUG_SUBSYS",
        "NCCL_DEBUG_TIMESTAMP_FORMAT",
        "NCCL_DEBUG_TIMESTAMP_LEVELS",
        "NCCL_SET_THREAD_NAME",
        "NCCL_WARN_ENABLE_DEBUG_INFO",
    }
)
# Only the rank that writes the file, or makes the address known, prints these (NCCL 2.30,
# src/graph/topo.cc, src/graph/search.cc, src/bootstrap.cc).
ONE_RANK: Final = frozenset({"NCCL_COMM_ID", "NCCL_GRAPH_DUMP_FILE", "NCCL_TOPO_DUMP_FILE"})
# These are each process's own affair.
OWN_TO_EACH: Final = frozenset({"NCCL_HOSTID", *ONE_RANK, *_NEVER_PRINTED})
# Names of networks, which are compared as choices are (NCCL 2.30, src/plugin/net.cc).
_CHOICES_OF_TEXT: Final = frozenset({"NCCL_NET"})
_CHOICES: Final = frozenset({ValueType.ENUM, ValueType.ENUM_LIST})
_PRINTING: Final = frozenset({Reader.NCCL, Reader.RCCL, Reader.PLUGIN})
# The numbers that stood for path levels before there were names (NCCL 2.30, src/graph/paths.cc).
_LEGACY_LEVELS: Final = {"0": "LOC", "1": "PIX", "2": "PXB", "3": "PHB", "4": "SYS"}
_LEVELS: Final = frozenset({"NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"})
# As strtoll reads with base 0: a 0x in front is hexadecimal, a 0 octal, the rest is dropped.
_NUMBER = re.compile(r"\s*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9]\d*))", re.ASCII)


def can_be_printed(name: str) -> bool:
    """Whether any release of NCCL prints the variable at some level."""
    if name in _NEVER_PRINTED:
        return False
    known = catalogue.variable(name)
    own = name.startswith(("NCCL_", "RCCL_"))
    return own and (known is None or known.reader in _PRINTING)


def is_unread(name: str, version: Version | None) -> bool:
    """Whether NCCL of that version does not read the variable; not, where that is unknown."""
    known = catalogue.variable(name)
    return bool(known and version and known.reader is Reader.NCCL and _outside(known, version))


def _outside(known: Variable, version: Version) -> bool:
    too_new = known.since is not None and version < known.since
    gone = known.removed is not None and version >= known.removed
    return too_new or gone


def same(name: str, asked: str, told: str) -> bool:
    """Whether ``told`` is how NCCL prints ``asked``."""
    if asked.strip() == told or form_of(asked.strip()).fullmatch(told):
        return True
    if name in _LEVELS and _LEGACY_LEVELS.get(asked.strip(), asked).upper() == told.upper():
        return True
    if _in_any_case(name):
        return asked.strip().upper() == told.upper()
    number = _as_number(asked)
    return number is not None and str(number) == told


def _in_any_case(name: str) -> bool:
    """Whether NCCL reads the value in capital and small letters alike."""
    known = catalogue.variable(name)
    chosen = known is not None and known.type in _CHOICES and name not in CASE_MATTERS
    return chosen or name in _CHOICES_OF_TEXT


def _as_number(text: str) -> int | None:
    found = _NUMBER.match(text)
    if found is None:
        return None
    sign, hexadecimal, octal, decimal = found.groups()
    value = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal[:30])
    return -value if sign == "-" else value


def differs_by_host(value: str) -> bool:
    """Whether ``value`` is another one on each host, by its placeholders."""
    return bool(placeholders_in(value))
