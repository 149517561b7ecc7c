"""Reads pickles of plain values without unpickling anything that can run.

An interpreter of the opcodes that text, numbers, lists, tuples and dictionaries need, in protocols
0 to 5. Opcodes that import, call, build or look anything up are not in its table, so there is
nothing to guard. Time and memory are bounded by a budget of steps; an index is a key of a
dictionary, never the size of a table; a length is believed only as far as there are bytes.
"""

import struct
from collections.abc import Callable
from typing import Any

# A dump of 20,000 entries takes 5 million steps: one an operation, and three more where that takes
# memory that stays, which 2.5 million can.
MAX_STEPS = 10_000_000
_NEW_VALUE_STEPS = 4
MAX_TEXT_BYTES = 1 << 20
# The recorder's numbers are 64 bits wide.
MAX_NUMBER_BYTES = 16
MAX_DIGITS = 40
MAX_PROTOCOL = 5

_KEYS = (str, int)


class PickleError(ValueError):
    """The bytes are no pickle of plain values, or too large a one; says why in one line."""


class _Machine:
    """The state of one pickle: what is left to read, the stack and the memo."""

    __slots__ = ("at", "data", "marks", "memo", "stack")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def take(self, length: int) -> bytes:
        end = self.at + length
        if end > len(self.data):
            raise PickleError("the pickle ends early")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def line(self, longest: int) -> bytes:
        end = self.data.find(b"\n", self.at, self.at + longest + 1)
        if end < 0:
            raise PickleError("the pickle ends early, or a line of it is too long")
        piece = self.data[self.at : end]
        self.at = end + 1
        return piece

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")

    def text(self, length: int) -> str:
        if length > MAX_TEXT_BYTES:
            raise PickleError(f"the pickle holds a text of more than {MAX_TEXT_BYTES} bytes")
        return self.take(length).decode("utf-8", "replace")

    def pop_mark(self) -> list[Any]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items


def _integer(m: _Machine, length: int) -> None:
    if length > MAX_NUMBER_BYTES:
        raise PickleError(f"the pickle holds a number of more than {MAX_NUMBER_BYTES} bytes")
    m.stack.append(int.from_bytes(m.take(length), "little", signed=True))


def _int_line(m: _Machine) -> None:
    text = m.line(MAX_DIGITS)
    known = {b"00": False, b"01": True}
    m.stack.append(known[text] if text in known else int(text))


def _long_line(m: _Machine) -> None:
    m.stack.append(int(m.line(MAX_DIGITS).removesuffix(b"L")))


def _string_line(m: _Machine) -> None:
    text = m.line(MAX_TEXT_BYTES)
    if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in b"'\"":
        raise PickleError("the pickle holds a text without quotes")
    m.stack.append(text[1:-1].decode("ascii", "replace"))


def _unicode_line(m: _Machine) -> None:
    m.stack.append(m.line(MAX_TEXT_BYTES).decode("raw-unicode-escape", "replace"))


def _append(m: _Machine) -> None:
    value = m.stack.pop()
    _list(m).append(value)


def _appends(m: _Machine) -> None:
    values = m.pop_mark()
    _list(m).extend(values)


def _set_item(m: _Machine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    _store(_dict(m), [key, value])


def _set_items(m: _Machine) -> None:
    pairs = m.pop_mark()
    _store(_dict(m), pairs)


def _new_dict(m: _Machine) -> None:
    made: dict[Any, Any] = {}
    _store(made, m.pop_mark())
    m.stack.append(made)


def _list(m: _Machine) -> list[Any]:
    if type(target := m.stack[-1]) is not list:
        raise PickleError("the pickle appends to what is no list")
    return target


def _dict(m: _Machine) -> dict[Any, Any]:
    if type(target := m.stack[-1]) is not dict:
        raise PickleError("the pickle sets an item of what is no dictionary")
    return target


def _store(target: dict[Any, Any], pairs: list[Any]) -> None:
    # Only text and numbers of limited size are keys: nobody can choose many that collide.
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        if not isinstance(key, _KEYS):
            raise PickleError("the pickle holds a key that is neither text nor number")
        target[key] = value


def _last(m: _Machine, length: int) -> None:
    if length > len(m.stack):
        raise IndexError
    items = tuple(m.stack[-length:])
    m.stack[-length:] = [items]


def _put(m: _Machine, index: int) -> None:
    m.memo[index] = m.stack[-1]


def _protocol(m: _Machine) -> None:
    if (version := m.number(1)) > MAX_PROTOCOL:
        raise PickleError(f"the pickle is of protocol {version}, known are 0 to {MAX_PROTOCOL}")


_OPERATIONS: dict[int, Callable[[_Machine], object]] = {
    code[0]: run
    for code, run in {
        b"\x80": _protocol,
        b"\x95": lambda m: m.take(8),  # a frame's length: hints at how to read a file
        b"(": lambda m: m.marks.append(len(m.stack)),
        b"N": lambda m: m.stack.append(None),
        b"\x88": lambda m: m.stack.append(True),
        b"\x89": lambda m: m.stack.append(False),
        b"I": _int_line,
        b"L": _long_line,
        b"F": lambda m: m.stack.append(float(m.line(MAX_DIGITS))),
        b"G": lambda m: m.stack.append(struct.unpack(">d", m.take(8))[0]),
        b"J": lambda m: _integer(m, 4),
        b"K": lambda m: m.stack.append(m.number(1)),
        b"M": lambda m: m.stack.append(m.number(2)),
        b"\x8a": lambda m: _integer(m, m.number(1)),
        b"\x8b": lambda m: _integer(m, m.number(4)),
        b"S": _string_line,
        b"V": _unicode_line,
        b"T": lambda m: m.stack.append(m.text(m.number(4))),
        b"U": lambda m: m.stack.append(m.text(m.number(1))),
        b"B": lambda m: m.stack.append(m.text(m.number(4))),
        b"C": lambda m: m.stack.append(m.text(m.number(1))),
        b"\x8e": lambda m: m.stack.append(m.text(m.number(8))),
        b"X": lambda m: m.stack.append(m.text(m.number(4))),
        b"\x8c": lambda m: m.stack.append(m.text(m.number(1))),
        b"\x8d": lambda m: m.stack.append(m.text(m.number(8))),
        b"]": lambda m: m.stack.append([]),
        b"l": lambda m: m.stack.append(m.pop_mark()),
        b"a": _append,
        b"e": _appends,
        b")": lambda m: m.stack.append(()),
        b"t": lambda m: m.stack.append(tuple(m.pop_mark())),
        b"\x85": lambda m: _last(m, 1),
        b"\x86": lambda m: _last(m, 2),
        b"\x87": lambda m: _last(m, 3),
        b"}": lambda m: m.stack.append({}),
        b"d": _new_dict,
        b"s": _set_item,
        b"u": _set_items,
        b"p": lambda m: _put(m, int(m.line(MAX_DIGITS))),
        b"q": lambda m: _put(m, m.number(1)),
        b"r": lambda m: _put(m, m.number(4)),
        b"\x94": lambda m: _put(m, len(m.memo)),
        b"g": lambda m: m.stack.append(m.memo[int(m.line(MAX_DIGITS))]),
        b"h": lambda m: m.stack.append(m.memo[m.number(1)]),
        b"j": lambda m: m.stack.append(m.memo[m.number(4)]),
    }.items()
}
_STOP = ord(".")
# What makes no value, or one that is there already.
_FREE = b"\x80\x95(N\x88\x89Kaesughj."
_STEPS = tuple(1 if code in _FREE else _NEW_VALUE_STEPS for code in range(256))


def load(data: bytes) -> object:
    """The value that ``data`` is a pickle of; raises ``PickleError`` and nothing else."""
    machine = _Machine(data)
    try:
        return _run(machine)
    except PickleError:
        raise
    except (IndexError, KeyError, ValueError, OverflowError):
        raise PickleError(f"the pickle is damaged at byte {machine.at}") from None


def _run(machine: _Machine) -> object:
    data, size = machine.data, len(machine.data)
    operations, steps = _OPERATIONS, _STEPS
    left = MAX_STEPS
    while left > 0:
        at = machine.at
        if at >= size:
            raise PickleError("the pickle ends early")
        code = data[at]
        machine.at = at + 1
        if code == _STOP:
            return machine.stack.pop()
        operation = operations.get(code)
        if operation is None:
            raise PickleError(
                f"the pickle holds opcode {code:#04x} at byte {at}, which plain values do not need"
            )
        operation(machine)
        left -= steps[code]
    raise PickleError(f"the pickle takes more than {MAX_STEPS} steps")
