"""Environment variables as ncdiag speaks of them: what is known of one, and what is set where."""

from dataclasses import dataclass
from enum import StrEnum


class Reader(StrEnum):
    """Which program reads a variable."""

    NCCL = "NCCL"
    PYTORCH = "PyTorch"
    TORCHRUN = "torchrun"
    NCCL_TESTS = "nccl-tests"
    PLUGIN = "an NCCL plugin"
    OFI = "aws-ofi-nccl"
    LIBFABRIC = "libfabric"
    UCX = "UCX"
    RCCL = "RCCL"
    BUILD = "build scripts"
    NOBODY = "nobody"


class ValueType(StrEnum):
    """What a variable's value must look like."""

    INTEGER = "integer"
    BOOLEAN = "boolean"
    TEXT = "text"
    ENUM = "enum"
    ENUM_LIST = "list of enum"
    DEVICE_LIST = "device list"
    PATH = "path"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class Variable:
    """One row of the catalogue. Versions are NCCL's (or the reader's) as tuples, ``(2, 18, 1)``.

    ``since`` is the first release that reads the name, ``removed`` the first that no longer does.
    ``replaced_by`` names the variable to use instead. ``source`` says where this is known from.
    """

    name: str
    reader: Reader
    type: ValueType
    meaning: str
    source: str
    default: str | None = None
    values: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    unit: str | None = None
    since: tuple[int, ...] | None = None
    removed: tuple[int, ...] | None = None
    deprecated: tuple[int, ...] | None = None
    replaced_by: str | None = None
    internal: bool = False
    same_on_all_ranks: bool = False


class LintSeverity(StrEnum):
    """An error does not do what it says; a warning is probably not wanted."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class LintFinding:
    """What is wrong with one setting, and what to write instead.

    ``rule`` is the stable id of the rule (``unknown_name``); ``place`` is ``file:line``, a profile,
    ``the environment`` or a host.
    """

    rule: str
    severity: LintSeverity
    variable: str
    place: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable that is given a value, and where; ``value`` ``None`` unsets it.

    ``scope`` is what it holds for, from the outside in: a container, a stage, one command. What is
    set in a scope holds in those within it too, and in no other. A part that begins with ``?`` is
    a branch: if it is run, what it sets holds for what follows as well.
    """

    name: str
    value: str | None
    place: str
    reason: str | None = None
    scope: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile with everything it extends already laid over each other, in order of names.

    ``nccl`` is the range of versions it is meant for (``>=2.18``), ``source`` where it comes from.
    Values may hold ``{nic.socket}`` and the like, which ``ncdiag.profiles`` fills in for a host.
    """

    name: str
    title: str
    source: str
    settings: tuple[Setting, ...]
    nccl: str | None = None
    extends: tuple[str, ...] = ()
    path: str | None = None
