"""The fleet as its users see it: hosts that are up, hosts that are not, and calls."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ncdiag.cluster.fleet import calls
from ncdiag.cluster.fleet.calls import Call, Function
from ncdiag.cluster.fleet.companion import CompanionSpec
from ncdiag.cluster.fleet.options import Change, FleetOptions
from ncdiag.cluster.launchers import Launcher
from ncdiag.model.host import Host

if TYPE_CHECKING:
    from ncdiag.cluster.fleet.driver import Driver

# The driver closes within about 5 s whatever the hosts do.
_CLOSE_S = 10.0


class Fleet:
    """One worker on each host, for as long as this object is open.

    ``start`` once, then ``call``; ``close`` leaves no process on any host and may be called twice,
    at any time. A process that dies without closing leaves none either.
    """

    def __init__(
        self,
        hosts: Sequence[Host],
        launcher: Launcher,
        *,
        companions: Sequence[CompanionSpec] = (),
        options: FleetOptions | None = None,
    ) -> None:
        self._hosts = hosts
        self._launcher = launcher
        self._companions = companions
        self._options = options or FleetOptions()
        self._driver: Driver | None = None
        self._thread: threading.Thread | None = None

    def start(self, on_change: Callable[[str, str], None] | None = None) -> None:
        """Start every host; return once each is up or has failed.

        ``on_change(host, text)`` is told about progress, in the caller's own thread. Raises
        UsageError where the launcher cannot start these hosts or the driver cannot listen.
        """
        from ncdiag.cluster.fleet.driver import Driver

        if self._driver:
            raise RuntimeError("a fleet is started once")
        changes: queue.SimpleQueue[Change] = queue.SimpleQueue()
        self._driver = Driver(
            self._hosts, self._launcher, self._companions, self._options, changes.put
        )
        self._thread = threading.Thread(target=self._driver.run, name="fleet", daemon=True)
        self._thread.start()
        while (change := changes.get()).host is not None:
            if on_change:
                on_change(change.host, change.text)
        if change.error:
            raise change.error

    @property
    def up(self) -> tuple[str, ...]:
        """The hosts that can be called now, in the order in which they were given."""
        return self._driver.up() if self._driver else ()

    @property
    def unreachable(self) -> dict[str, str]:
        """Hosts that did not come up, or were lost since ("lost: ..."), with the reason."""
        return self._driver.unreachable() if self._driver else {}

    @property
    def versions(self) -> dict[str, str]:
        """The version of ncdiag on each host that answered."""
        return dict(self._driver.versions) if self._driver else {}

    def call(self, host: str, function: Function, payload: bytes, *, timeout_s: float) -> Call:
        """Run ``function(payload)`` in a thread of the worker on ``host``; does not wait.

        The function is imported there by its name. A host that is not up makes the call fail.
        """
        calls.check_function(function)
        if self._driver is None:
            raise RuntimeError("the fleet is not started")
        return Call(host, timeout_s, self._driver.submit(host, function, payload, timeout_s))

    @staticmethod
    def as_completed(calls_made: Iterable[Call]) -> Iterator[Call]:
        """Each call once, as soon as it has ended."""
        return calls.as_completed(calls_made)

    def close(self) -> None:
        """End every worker and wait for that, for about 5 s at most."""
        if self._driver and self._thread:
            self._driver.stop()
            self._thread.join(_CLOSE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
