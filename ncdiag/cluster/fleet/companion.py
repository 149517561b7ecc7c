"""Child processes of a worker that can be killed at any moment and are replaced by themselves.

A companion is a program that answers requests: its first line on stdout says that it is ready,
then each line on stdin is answered by one line on stdout. What hangs or crashes lives in there,
so that it costs one request and never the worker. Nothing heavy is imported here, since companions
are started before anything else a worker does.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache

from ncdiag.cluster.fleet.child import Child, ChildError, OutOfTimeError
from ncdiag.model.secrets import without_secrets

# A start that takes longer is taken for hung and begun again. Importing torch takes about 4 s on
# busy cores and far longer from a cold network file system.
START_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class CompanionSpec:
    """What to run under ``name``; ``env`` is added to the worker's own environment.

    A first word ``python`` stands for the interpreter that the worker itself runs with.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    def here(self) -> "CompanionSpec":
        """The same, with the interpreter of this host in it."""
        if self.argv[:1] != ("python",):
            return self
        return replace(self, argv=(sys.executable, *self.argv[1:]))


class CompanionFailed(Exception):  # noqa: N818 - it tells what happened; the caller decides if it is an error
    """A companion did not answer; the message is the reason in one line."""


class _Slot:
    """The place of one companion: its specification, and the child that fills it now."""

    def __init__(self, spec: CompanionSpec, child: "Future[Child]") -> None:
        self.spec = spec
        self.child = child
        self.busy = threading.Lock()
        self.anew = False

    def starting(self) -> bool:
        """Whether the child is not known to be ready yet."""
        return not self.child.done() or (
            self.child.exception() is None and self.child.result().starting
        )

    def not_ready(self, within_s: float) -> str:
        """The reason of a request that came too early."""
        anew = ", started anew after a failure," if self.anew else ""
        return f"{self.spec.name}{anew} was not ready within {within_s:g} s"

    def works(self) -> bool:
        """Whether the child is on its way or alive."""
        if not self.child.done():
            return True
        return self.child.exception() is None and self.child.result().alive()


class Companions:
    """The companions of one worker; every method may be called from any thread."""

    def __init__(self) -> None:
        # The kernel ends a child with the *thread* that started it (PR_SET_PDEATHSIG in prctl(2)),
        # so all are started by this one, which lives as long as the worker.
        self._nursery = ThreadPoolExecutor(max_workers=1, thread_name_prefix="companions")
        self._slots: dict[str, _Slot] = {}
        self._lock = threading.Lock()
        self._closed = False

    def ensure(self, spec: CompanionSpec) -> None:
        """Start the companion, or replace it where it ended or ``spec`` changed; does not wait."""
        spec = spec.here()
        with self._lock:
            slot = self._slots.get(spec.name)
            if slot and slot.spec == spec and slot.works():
                return
            if slot:
                self._nursery.submit(_retire, slot.child)
            self._slots[spec.name] = _Slot(spec, self._start(spec))

    def ready(self, name: str, timeout_s: float) -> bytes:
        """The companion's first line, waiting up to ``timeout_s``; raises CompanionFailed."""
        return self._use(name, None, timeout_s)

    def request(
        self, name: str, payload: bytes, deadline_s: float, start_s: float | None = None
    ) -> bytes:
        """Send one line and return the answering line, within ``deadline_s`` from now.

        Raises CompanionFailed with the reason; the companion and its children are dead then, and
        another one is starting. Only one that is still starting is left in peace: with ``start_s``
        it is waited for no longer than that, so that what is begun has time to end.
        """
        if b"\n" in payload:
            raise ValueError("a request to a companion is one line")
        return self._use(name, payload, deadline_s, start_s)

    def close(self) -> None:
        """Kill every companion with its children; none can be started afterwards."""
        with self._lock:
            self._closed = True
            slots = list(self._slots.values())
            self._slots.clear()
        self._nursery.shutdown(wait=True, cancel_futures=True)
        for slot in slots:
            _retire(slot.child)

    def kill(self) -> None:
        """Kill every companion at once and wait for nothing: the worker is about to end."""
        self._closed = True
        for slot in list(self._slots.values()):
            if slot.child.done() and slot.child.exception() is None:
                slot.child.result().kill_group()

    def _start(self, spec: CompanionSpec) -> "Future[Child]":
        if self._closed:
            raise CompanionFailed(f"{spec.name}: the worker is closing")
        env = {**without_secrets(os.environ), **spec.env}
        return self._nursery.submit(Child, spec.name, spec.argv, env)

    def _use(
        self, name: str, payload: bytes | None, timeout_s: float, start_s: float | None = None
    ) -> bytes:
        now = time.monotonic()
        start_s = timeout_s if start_s is None else min(start_s, timeout_s)
        slot = self._slots.get(name)
        if slot is None:
            raise CompanionFailed(f"no companion is called {name}")
        if not slot.busy.acquire(timeout=max(0.0, start_s)):
            if slot.starting():
                raise CompanionFailed(slot.not_ready(start_s))
            raise CompanionFailed(f"{name} was busy for {start_s:g} s")
        try:
            child = slot.child
            return _exchange(child, payload, now + start_s, now + timeout_s)
        except OutOfTimeError as error:
            if error.age_s > START_LIMIT_S or not error.starting:
                self._replace(slot, child)
            if error.starting:
                raise CompanionFailed(slot.not_ready(start_s)) from None
            raise CompanionFailed(f"{name} {error} within {timeout_s:g} s") from None
        except ChildError as error:
            self._replace(slot, child)
            raise CompanionFailed(f"{name} {error}") from None
        finally:
            slot.busy.release()

    def _replace(self, slot: _Slot, failed: "Future[Child]") -> None:
        with contextlib.suppress(ChildError):
            failed.result().kill()
        with self._lock:
            current = self._slots.get(slot.spec.name) is slot and slot.child is failed
            if current and not self._closed:
                slot.child = self._start(slot.spec)
                slot.anew = True


def _exchange(
    pending: "Future[Child]", payload: bytes | None, start_end: float, end: float
) -> bytes:
    try:
        child = pending.result(timeout=max(0.0, start_end - time.monotonic()))
    except TimeoutError:
        raise OutOfTimeError("did not start", starting=True, age_s=0.0) from None
    except CancelledError:
        raise ChildError("was replaced") from None
    hello = child.hello(start_end)
    return hello if payload is None else child.ask(payload, end)


def _retire(pending: "Future[Child]") -> None:
    if not pending.cancel():
        with contextlib.suppress(ChildError):
            pending.result().kill()


@cache
def companions() -> Companions:
    """The companions of this process: what a function that runs in a worker calls for."""
    return Companions()
