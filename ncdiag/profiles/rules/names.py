"""Names: unknown, misspelt, renamed, removed, or too new for the NCCL at hand."""

from collections.abc import Iterator
from dataclasses import replace

from ncdiag.model.environment import LintFinding, LintSeverity, Reader, Setting, Variable
from ncdiag.profiles.catalogue import (
    NEWEST_NCCL,
    begins_a_name,
    belongs,
    is_complete,
    near,
    one_letter_off,
    variable,
)
from ncdiag.profiles.context import LintContext
from ncdiag.profiles.rules.look import is_before, short, shown
from ncdiag.profiles.rules.table import found

# The oldest releases that are still met; what went before them is gone for everybody. NCCL 2.10 is
# of 2021, PyTorch 2.4 is what this project needs at least.
_OLDEST = {Reader.NCCL: (2, 10), Reader.PYTORCH: (2, 4)}
_PREFIX = "NCCL_"
# Last words of names that build files, containers and job scripts give to what is their own; no
# name that NCCL reads ends so, save some that are known.
_OF_SCRIPTS = {
    *("ARGS", "BIN", "BRANCH", "BUILD", "CFLAGS", "CMD", "COMMAND", "COMMIT", "CONTAINER"),
    *("DIR", "DIRECTORY", "DIRS", "EXE", "FLAGS", "HOME", "IMAGE", "INCLUDE", "INCLUDES"),
    *("INSTALL", "LDFLAGS", "LIB", "LIBRARIES", "LIBRARY", "LIBS", "LOG", "LOGS", "OPTIONS"),
    *("OPTS", "OUTPUT", "PATH", "PKG", "PREFIX", "REF", "REPO", "RESULTS", "ROOT", "SOURCE"),
    *("SRC", "TAG", "TEST", "TESTS", "URL", "VER", "VERSION"),
}


def check(setting: Setting, context: LintContext, *, guess: bool = True) -> Iterator[LintFinding]:
    """What is wrong with the name of ``setting``, and with its being set at all.

    ``guess`` is whether to look for the name that was meant, which takes some milliseconds.
    """
    row = variable(setting.name)
    if row is None:
        yield from _unknown(setting, context, guess=guess)
    elif row.reader is Reader.NOBODY:
        yield _read_by_nobody(setting, row)
    elif row.removed is not None and (finding := _removed(setting, row, context)):
        yield finding
    elif row.since is not None and _before(context, row, row.since):
        version = shown(row.since)
        yield found(
            "too_new",
            setting,
            f"{row.reader} reads {row.name} from {version} on, and "
            f"{shown(_at_hand(context, row) or ())} does not",
            f"use {row.reader} {version} or newer, or drop {row.name}",
        )
    elif row.deprecated is not None:
        yield from _deprecated(setting, row, context)
    elif row.internal:
        yield found(
            "undocumented",
            setting,
            f"{row.name} is undocumented and may change without notice",
            f"drop {row.name} unless NVIDIA asked for it",
        )


def _unknown(setting: Setting, context: LintContext, *, guess: bool) -> Iterator[LintFinding]:
    name = setting.name
    words = name.split()
    if words and words != [name] and variable(words[-1]):
        yield replace(_with_blanks(setting, words), variable=name.strip())
    elif name != name.upper() and is_complete(name.upper()) and variable(name.upper()):
        yield found(
            "name_letter_case",
            setting,
            f"nobody reads {short(name)}: names are upper case",
            f"write {name.upper()}",
        )
    elif is_complete(name) or _is_slip(name):
        yield from _misspelt(setting, context, guess=guess)
    elif guess and belongs(name) and (close := one_letter_off(name)):
        message = f"{short(name)} is not known, and {close} is"
        yield found("near_known_name", setting, message, f"did you mean {close}?")


def _with_blanks(setting: Setting, words: list[str]) -> LintFinding:
    if len(words) == 1 and setting.name.rstrip() == words[0]:
        message = f"{words[0]} is not set: a blank stands in front of ="
        value = (setting.value or "").strip()
        return found(
            "name_blanks", setting, message, f"write {words[0]}={short(value)}, without blanks"
        )
    return found(
        "name_blanks",
        setting,
        f"{short(setting.name)!r} is not {words[-1]}: all in front of = belongs to the name",
        f"write {words[-1]}= with nothing round it",
    )


def _misspelt(setting: Setting, context: LintContext, *, guess: bool) -> Iterator[LintFinding]:
    """A name of NCCL's or PyTorch's that no release reads, or one that a script gave its own."""
    name = setting.name
    close = (near(name) or near(_PREFIX + name.partition("_")[2])) if guess else ()
    first, _, last = name.rpartition("_")
    message = f"no program that is known reads {short(name)}"
    own = last in _OF_SCRIPTS and not (guess and (one_letter_off(name) or _is_of_nccl(first)))
    if own:
        message += "; by its name it is a script's own"
        fix = "give it a name that does not begin with NCCL_, if it is"
        yield found("unknown_name", setting, message, fix, LintSeverity.INFO)
        return
    # PyTorch's names were taken from some of its releases, NCCL's from all.
    newer = name.startswith("TORCH_") or (context.nccl or ()) > NEWEST_NCCL
    yield found(
        "unknown_name",
        setting,
        message,
        f"did you mean {' or '.join(close)}?" if close else f"drop {short(name)}",
        LintSeverity.WARNING if newer and not close else None,
    )


def _is_of_nccl(first: str) -> bool:
    """Whether the words in front of the last one are those of a variable: NCCL_DEBUG in _LOG."""
    return "_" in first and begins_a_name(first)


def _is_slip(name: str) -> bool:
    """Whether ``name`` is a known one but for a slip in its NCCL_, such as NCLL_DEBUG."""
    start, _, rest = name.upper().partition("_")
    if start == "NCCL" or not (3 <= len(start) <= 6 and start[0] == "N"):
        return False
    return set(start) == set("NCL") and variable(_PREFIX + rest) is not None


def _read_by_nobody(setting: Setting, row: Variable) -> LintFinding:
    if row.replaced_by is None:
        return found(
            "read_by_nobody",
            setting,
            f"{row.name} is read by neither NCCL nor PyTorch",
            row.meaning,
        )
    return found(
        "read_by_nobody",
        setting,
        f"{row.name} is read by neither NCCL nor PyTorch",
        f"use {row.replaced_by}. {row.meaning}",
    )


def _removed(setting: Setting, row: Variable, context: LintContext) -> LintFinding | None:
    removed = row.removed or ()
    at_hand = _at_hand(context, row)
    if _before(context, row, removed):
        return None
    certain = at_hand is not None or removed <= _OLDEST[Reader.NCCL]
    instead = f"use {row.replaced_by}" if row.replaced_by else f"drop {row.name}"
    return found(
        "renamed" if row.replaced_by else "removed",
        setting,
        f"{row.reader} does not read {row.name} from {shown(removed)} on",
        instead,
        None if certain else LintSeverity.WARNING,
    )


def _deprecated(setting: Setting, row: Variable, context: LintContext) -> Iterator[LintFinding]:
    deprecated = row.deprecated or ()
    if _before(context, row, deprecated):
        return
    if row.reader is Reader.PYTORCH and row.replaced_by and row.name.startswith(_PREFIX):
        yield found(
            "pytorch_alias",
            setting,
            f"{row.name} is PyTorch's deprecated alias of {row.replaced_by}; NCCL does not read it",
            f"use {row.replaced_by}",
        )
        return
    certain = _at_hand(context, row) is not None or deprecated <= _OLDEST.get(row.reader, ())
    yield found(
        "deprecated",
        setting,
        f"{row.name} is deprecated since {row.reader} {shown(deprecated)}",
        f"use {row.replaced_by}" if row.replaced_by else f"drop {row.name}",
        None if certain else LintSeverity.INFO,
    )


def _at_hand(context: LintContext, row: Variable) -> tuple[int, ...] | None:
    return {Reader.NCCL: context.nccl, Reader.PYTORCH: context.pytorch}.get(row.reader)


def _before(context: LintContext, row: Variable, version: tuple[int, ...]) -> bool:
    at_hand = _at_hand(context, row)
    return at_hand is not None and is_before(at_hand, version)
