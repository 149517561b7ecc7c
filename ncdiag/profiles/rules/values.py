"""Values: type, range, letter case, choices, and what a release does not know yet."""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from ncdiag.model.environment import (
    LintFinding,
    LintSeverity,
    Reader,
    Setting,
    ValueType,
    Variable,
)
from ncdiag.profiles.context import STANDARD_INPUT, THE_ENVIRONMENT, LintContext
from ncdiag.profiles.rules.look import as_integer, is_before, short, shown
from ncdiag.profiles.rules.places import file_of
from ncdiag.profiles.rules.table import found

_WHOLE_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_OCTAL = re.compile(r"[+-]?0[0-9]+")
_HOST_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:\[\]]+):([0-9]{1,5})")
# Compared letter by letter. Source: NCCL 2.30.7, src/graph/paths.cc and src/misc/socket.cc.
CASE_MATTERS = {
    "NCCL_P2P_LEVEL",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_MERGE_LEVEL",
    "NCCL_SOCKET_FAMILY",
    "NCCL_IB_ADDR_FAMILY",
}
# Where any whole number from 0 on is a path type too. Source: NCCL 2.30.7, src/graph/paths.cc.
_LEVELS = {"NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"}
# The first release that knows a value. Source: NCCL's tags, src/graph/tuning.cc and src/debug.cc.
_VALUE_SINCE = {
    ("NCCL_ALGO", "COLLNETDIRECT"): (2, 14, 3),
    ("NCCL_ALGO", "COLLNETCHAIN"): (2, 14, 3),
    ("NCCL_ALGO", "NVLS"): (2, 17, 1),
    ("NCCL_ALGO", "NVLSTREE"): (2, 18, 1),
    ("NCCL_ALGO", "PAT"): (2, 23, 4),
    ("NCCL_DEBUG_SUBSYS", "ENV"): (2, 7, 3),
    ("NCCL_DEBUG_SUBSYS", "ALLOC"): (2, 9, 9),
    ("NCCL_DEBUG_SUBSYS", "CALL"): (2, 13, 4),
    ("NCCL_DEBUG_SUBSYS", "NVLS"): (2, 17, 1),
    ("NCCL_DEBUG_SUBSYS", "PROXY"): (2, 18, 1),
    ("NCCL_DEBUG_SUBSYS", "BOOTSTRAP"): (2, 21, 5),
    ("NCCL_DEBUG_SUBSYS", "REG"): (2, 21, 5),
    ("NCCL_DEBUG_SUBSYS", "PROFILE"): (2, 22, 3),
    ("NCCL_DEBUG_SUBSYS", "RAS"): (2, 24, 3),
    ("NCCL_DEBUG_SUBSYS", "DESTROY"): (2, 30, 3),
    ("NCCL_DEBUG_SUBSYS", "ALLOC_HOST"): (2, 30, 7),
}
_PER_FUNCTION = {"NCCL_ALGO", "NCCL_PROTO"}
_PER_FUNCTION_SINCE = (2, 24, 3)
# PyTorch 2.14.1, getCvarBool; everything else it throws on.
_PYTORCH_BOOLEANS = {"y", "yes", "1", "t", "true", "n", "no", "0", "f", "false"}
_MEANT_AS_BOOLEAN = {"true": "1", "yes": "1", "on": "1", "y": "1", "t": "1"} | {
    "false": "0",
    "no": "0",
    "off": "0",
    "n": "0",
    "f": "0",
}
_BLANK_IS_A_VALUE = {"NCCL_DEBUG_TIMESTAMP_FORMAT", "NCCL_THREAD_THRESHOLDS"}
# No list has more choices than this; the rest of a longer one is not looked at.
_MOST_ITEMS = 64
_QUOTES = "'\""


def check(setting: Setting, row: Variable, context: LintContext) -> Iterator[LintFinding]:
    """What is wrong with the value of ``setting``, which is a row of the catalogue and known."""
    value = setting.value or ""
    if not value:
        if row.name not in _BLANK_IS_A_VALUE:
            yield found("empty_value", setting, f"{row.name} is set to nothing")
        return
    if value.endswith("\r"):
        # C stops reading a number there, and has it right.
        read_right = row.reader is Reader.NCCL and row.type in (
            ValueType.INTEGER,
            ValueType.BOOLEAN,
        )
        yield found(
            "carriage_return",
            setting,
            f"carriage return at the end of the value {short(value)}",
            _without_carriage_return(setting),
            LintSeverity.WARNING if read_right and as_integer(value) is not None else None,
        )
        return
    if value[0] in _QUOTES and (len(value) == 1 or value[-1] == value[0]):
        yield found(
            "quotes_in_value",
            setting,
            f"the quotes belong to the value {short(value)}",
            f"write {row.name}={short(value.strip(_QUOTES))}",
        )
        return
    if value != value.strip() and row.type is not ValueType.DEVICE_LIST:
        if row.name not in _BLANK_IS_A_VALUE:
            yield found(
                "blanks_in_value",
                setting,
                f"the blanks belong to the value {short(value)!r}",
                f"write {row.name}={short(value.strip())}",
                LintSeverity.WARNING if row.type is ValueType.INTEGER else None,
            )
        return
    yield from _OF_TYPE.get(row.type, _nothing)(setting, row, context)


def _without_carriage_return(setting: Setting) -> str:
    file = file_of(setting.place)
    if file in (THE_ENVIRONMENT, STANDARD_INPUT):
        return f"set {setting.name} without it; dos2unix mends the file that sets it"
    return f"run dos2unix {short(file)}"


def _nothing(_: Setting, __: Variable, ___: LintContext) -> Iterator[LintFinding]:
    yield from ()


def _integer(setting: Setting, row: Variable, _: LintContext) -> Iterator[LintFinding]:
    value = setting.value or ""
    number = as_integer(value)
    if number is None:
        known = _MEANT_AS_BOOLEAN.get(value.lower())
        fix = f"write {known}" if known else f"write {_allowed(row)}"
        yield found("not_an_integer", setting, f"{short(value)} is no number", fix)
        return
    if not _WHOLE_INTEGER.fullmatch(value):
        yield found(
            "trailing_text",
            setting,
            f"{short(value)} is read as {number}",
            f"write the number only, in {row.unit}" if row.unit else None,
        )
    elif _OCTAL.fullmatch(value):
        yield found("octal", setting, f"{value} is octal and read as {number}")
    if row.name == "NCCL_IB_TIMEOUT" and not 1 <= number <= 31:
        yield found("ib_timeout_infinite", setting, f"{number} makes the NIC wait for ever")
    elif not _in_range(number, row):
        yield found(
            "out_of_range", setting, f"{number} is not {_allowed(row)}", f"write {_allowed(row)}"
        )


def _in_range(number: int, row: Variable) -> bool:
    if row.values:
        return str(number) in row.values
    if row.minimum is not None and number < row.minimum and not (number == -2 and _is_auto(row)):
        return False
    return row.maximum is None or number <= row.maximum


def _is_auto(row: Variable) -> bool:
    return row.default == "auto"


def _allowed(row: Variable) -> str:
    unit = f" {row.unit}" if row.unit else ""
    if row.values:
        return "one of " + ", ".join(row.values)
    if row.minimum is not None and row.maximum is not None:
        return f"a number from {row.minimum} to {row.maximum}{unit}"
    if row.minimum is not None:
        return f"a number from {row.minimum} on{unit}"
    return f"a number{unit}"


def _boolean(setting: Setting, row: Variable, _: LintContext) -> Iterator[LintFinding]:
    value = setting.value or ""
    meant = _MEANT_AS_BOOLEAN.get(value.lower())
    if row.reader is Reader.PYTORCH:
        if value.lower() not in _PYTORCH_BOOLEANS:
            message = f"PyTorch takes no {short(value)}, and ends the process over it"
            fix = f"write {meant}" if meant else None
            yield found("not_a_boolean", setting, message, fix, LintSeverity.ERROR)
        return
    if row.reader is not Reader.NCCL and meant:
        return
    number = as_integer(value)
    if number is None:
        message = f"{short(value)} is no number, so the default is used"
        yield found(
            "not_an_integer", setting, message, f"write {meant}" if meant else "write 0 or 1"
        )
    elif number not in (0, 1):
        # NCCL compares this one with 1. Source: NCCL 2.30.7, src/graph/paths.cc.
        does_nothing = row.name == "NCCL_P2P_DISABLE"
        message = f"{short(value)} is neither 0 nor 1"
        if does_nothing:
            message = f"{short(value)} does nothing: only 1 disables peer access"
        yield found(
            "not_a_boolean", setting, message, None, LintSeverity.ERROR if does_nothing else None
        )
    elif not _WHOLE_INTEGER.fullmatch(value):
        yield found("trailing_text", setting, f"{short(value)} is read as {number}")


def _enum(setting: Setting, row: Variable, _: LintContext) -> Iterator[LintFinding]:
    value = setting.value or ""
    if row.name in _LEVELS and value.isdecimal():
        return
    yield from _choice(setting, row, value)


def _enum_list(setting: Setting, row: Variable, context: LintContext) -> Iterator[LintFinding]:
    value = setting.value or ""
    per_function = row.name in _PER_FUNCTION
    if (
        (per_function and (";" in value or ":" in value))
        and context.nccl is not None
        and is_before(context.nccl, _PER_FUNCTION_SINCE)
    ):
        message = f"lists per function are read from {shown(_PER_FUNCTION_SINCE)} on"
        yield found("value_too_new", setting, message, "write one list")
        return
    parts = value.split(";") if per_function else [value]
    lists = [part.rpartition(":")[2] if per_function else part for part in parts]
    items = [item for listed in lists for item in re.split(r"[,|]", listed.removeprefix("^"))]
    for item in list(dict.fromkeys(items))[:_MOST_ITEMS]:
        if item:
            yield from _choice(setting, row, item)
            yield from _too_new(setting, row, item, context)


def _choice(setting: Setting, row: Variable, value: str) -> Iterator[LintFinding]:
    if value in row.values or (value.upper() in _numbered(row, value)):
        return
    same = [known for known in row.values if known.upper() == value.upper()]
    if same:
        if row.name in CASE_MATTERS:
            yield found(
                "letter_case",
                setting,
                f"{short(value)} is not read: the case of the letters matters",
                f"write {same[0]}",
            )
        return
    by_case = {known.upper(): known for known in row.values}
    close = get_close_matches(value.upper()[:80], by_case, n=1)
    choices = ", ".join(row.values)
    blank = " (the blank belongs to it)" if value != value.strip() else ""
    yield found(
        "unknown_choice",
        setting,
        f"{row.name} knows no {short(value)}{blank}",
        f"did you mean {by_case[close[0]]}?" if close else f"write one of {choices}",
    )


def _numbered(row: Variable, value: str) -> set[str]:
    """The choices with a number in them, such as ``MAX:N``, with the number of ``value``."""
    number = value.rpartition(":")[2]
    return {
        f"{known.removesuffix('N')}{number}"
        for known in row.values
        if known.endswith(":N") and number.isdecimal()
    }


def _too_new(
    setting: Setting, row: Variable, item: str, context: LintContext
) -> Iterator[LintFinding]:
    since = _VALUE_SINCE.get((row.name, item.upper()))
    if since and context.nccl is not None and is_before(context.nccl, since):
        at_hand = shown(context.nccl)
        yield found(
            "value_too_new",
            setting,
            f"NCCL knows {item} from {shown(since)} on, and {at_hand} does not",
            f"use NCCL {shown(since)} or newer, or leave {item} out",
        )


def _address(setting: Setting, row: Variable, _: LintContext) -> Iterator[LintFinding]:
    value = setting.value or ""
    parsed = _HOST_PORT.fullmatch(value[:512])
    if not parsed or int(parsed[1]) > 65535:
        yield found("not_an_address", setting, f"{row.name}: {short(value)} is not host:port")


_OF_TYPE = {
    ValueType.INTEGER: _integer,
    ValueType.BOOLEAN: _boolean,
    ValueType.ENUM: _enum,
    ValueType.ENUM_LIST: _enum_list,
    ValueType.ADDRESS: _address,
}
