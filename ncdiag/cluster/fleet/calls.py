"""A call of a function on a host: what comes back, or the one line that says why nothing did."""

from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from dataclasses import dataclass

from ncdiag.model.text import visible

Function = Callable[[bytes], bytes]

_MAX_REASON = 500
_RESULT, _FAILURE = b"+", b"-"
# The driver's event loop ends a call in time; this is only for a loop that does not run any more.
_LATE_S = 10.0


class CallError(Exception):
    """A call gave no result; the message is the reason in one line."""


class HostLost(CallError):  # noqa: N818 - says what happened, like the two below
    """The host is not, or no longer, part of the fleet."""


class CallTimeout(CallError):  # noqa: N818
    """The function did not end in time; it may still run."""


class CallFailed(CallError):  # noqa: N818
    """The function raised."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One function at work on one host."""

    host: str
    timeout_s: float
    future: "futures.Future[bytes]"

    def done(self) -> bool:
        """Whether ``result`` returns or raises at once."""
        return self.future.done()

    def result(self) -> bytes:
        """What the function returned; raises HostLost, CallTimeout or CallFailed."""
        try:
            return self.future.result(timeout=self.timeout_s + _LATE_S)
        except futures.TimeoutError:
            raise CallTimeout(f"no answer within {self.timeout_s:g} s") from None
        except futures.CancelledError:
            raise HostLost("the fleet was closed") from None


def as_completed(calls: Iterable[Call]) -> Iterator[Call]:
    """Each call once, as soon as it has ended."""
    by_future = {call.future: call for call in calls}
    for future in futures.as_completed(by_future):
        yield by_future[future]


def check_function(function: Function) -> None:
    """Raise ValueError for a function that another process could not import by its name."""
    name = function.__qualname__
    if function.__module__ == "__main__" or "<" in name:
        raise ValueError(f"only a function of a module can be called on a host, not {name}")


def run(function: Function, payload: bytes) -> bytes:
    """Call the function, on the host; an exception becomes a line of text.

    So nothing but bytes ever comes back, and no exception of a host is made again in the driver.
    """
    try:
        return _RESULT + function(payload)
    except BaseException as error:  # noqa: BLE001 - the driver is told, whatever it is
        return _FAILURE + one_line(error).encode("utf-8", "backslashreplace")


def unwrap(envelope: object) -> bytes:
    """The result in what ``run`` returned; raises CallFailed."""
    if isinstance(envelope, bytes):
        if envelope[:1] == _RESULT:
            return envelope[1:]
        if envelope[:1] == _FAILURE:
            raise CallFailed(visible(envelope[1:].decode("utf-8", "replace"))[:_MAX_REASON])
    raise CallFailed("it answered something that is no answer")


def one_line(error: BaseException) -> str:
    """The error's kind and the first line of what it says, safe to print."""
    text = str(error).strip().partition("\n")[0].rstrip("\r")
    kind = type(error).__name__
    return visible(f"{kind}: {text}" if text else kind)[:_MAX_REASON]
