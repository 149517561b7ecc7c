"""Single questions to NVML, each of which may go unanswered without harm to the others."""

import ctypes
from typing import Any, Final

from ncdiag.model.text import visible
from ncdiag.read.gpu import values

# What the Python module does with a library that is older or newer than itself.
_MISFITS: Final = (AttributeError, TypeError, ValueError, OSError, ctypes.ArgumentError)
# nvmlValueType_t: which member of the union of a field holds its value.
_MEMBERS: Final = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
# nvmlReturn_t, for bindings that lack the constant.
_CODES: Final = {
    "NOT_SUPPORTED": 3,
    "NO_PERMISSION": 4,
    "DRIVER_NOT_LOADED": 9,
    "LIBRARY_NOT_FOUND": 12,
    "GPU_IS_LOST": 15,
    "RESET_REQUIRED": 16,
    "UNKNOWN": 999,
}


class LostError(Exception):
    """The GPU cannot be reached; the message says how, ``needs_reset`` that a reset may help."""

    def __init__(self, reason: str, *, needs_reset: bool = False) -> None:
        super().__init__(reason)
        self.needs_reset = needs_reset


class Nvml:
    """Asks the module; counts in ``unknown`` how often the driver answered with no known error."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.unknown = 0

    def ask(self, function: str, *arguments: Any) -> Any:
        """What the function gives; ``None`` where it is not supported, not there or fails.

        Raises :class:`LostError` where the whole GPU cannot be reached.
        """
        called = getattr(self.module, function, None)
        if called is None:
            return None
        try:
            return called(*arguments)
        except self.module.NVMLError as error:
            self.check(error)
        except _MISFITS:
            pass
        return None

    def check(self, error: Any) -> None:
        """Raise :class:`LostError` if the error is one of the whole GPU."""
        needs_reset = self.is_error(error, "RESET_REQUIRED")
        if needs_reset or self.is_error(error, "GPU_IS_LOST"):
            raise LostError(self.words(error), needs_reset=needs_reset) from None
        self.unknown += self.is_error(error, "UNKNOWN")

    def is_error(self, error: Any, name: str) -> bool:
        """Whether the error has the code ``NVML_ERROR_...``."""
        code = getattr(self.module, f"NVML_ERROR_{name}", _CODES[name])
        return bool(getattr(error, "value", None) == code)

    def words(self, error: Any) -> str:
        """The driver's own words for an error, in one line."""
        try:
            text = str(error)
        except (*_MISFITS, self.module.NVMLError):
            text = ""
        return visible(" ".join(text.split())[:200]) or "unknown error"

    def constant(self, name: str, otherwise: int) -> int:
        """A constant of nvml.h, with its value for bindings that lack it."""
        value = getattr(self.module, name, otherwise)
        return value if isinstance(value, int) else otherwise

    def number(self, function: str, *arguments: Any) -> float | None:
        """A finite number."""
        return values.figure(self.ask(function, *arguments))

    def count(self, function: str, *arguments: Any) -> int | None:
        """A whole number, not negative; what stands for "not available" is none."""
        value = self.ask(function, *arguments)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
            return None
        return value

    def switch(self, function: str, *arguments: Any) -> bool | None:
        """On or off; of a pair of the present and the pending, the present."""
        value = self.ask(function, *arguments)
        if isinstance(value, list | tuple):
            value = value[0] if value else None
        return None if not isinstance(value, int) else value != 0

    def text(self, function: str, *arguments: Any) -> str | None:
        """A name or version."""
        value = self.ask(function, *arguments)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        return values.name(value)

    def field(self, handle: Any, number: int, scope: int | None = None) -> float | None:
        """One of the values that NVML has by number instead of by function."""
        wanted = number if scope is None else (number, scope)
        listed = self.ask("nvmlDeviceGetFieldValues", handle, [wanted])
        try:
            one = listed[0]
            if one.nvmlReturn:
                return None
            return values.figure(getattr(one.value, _MEMBERS[one.valueType]))
        except (IndexError, *_MISFITS):
            return None
