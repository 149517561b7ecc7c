"""Dask's scheduler, and our client of it, for one fleet."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from distributed import Client, Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin

from ncdiag.cluster.fleet.addresses import LOOPBACK, bracketed
from ncdiag.cluster.fleet.certificates import HeldCertificate
from ncdiag.cluster.fleet.settings import DASHBOARD_ADDRESS
from ncdiag.model.errors import UsageError

CLOSE_S = 1.0


class _Registry(SchedulerPlugin):
    """Tells which worker came and went."""

    name = "ncdiag-fleet"

    def __init__(self, came: Callable[[str, str], None], went: Callable[[str], None]) -> None:
        self._came = came
        self._went = went

    def add_worker(self, scheduler: Any, worker: str) -> None:
        """Called by the scheduler."""
        self._came(str(scheduler.workers[worker].name), worker)

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        """Called by the scheduler."""
        del scheduler
        self._went(worker)


@contextlib.asynccontextmanager
async def scheduling(
    listen: str,
    held: HeldCertificate,
    came: Callable[[str, str], None],
    went: Callable[[str], None],
) -> AsyncIterator[tuple[Any, int]]:
    """A client, and the port that workers connect to; raises UsageError.

    ``came`` is told the name and the address of each worker, ``went`` the address of one that is
    gone.
    """
    security = held.security()
    client: Any = None
    scheduler = Scheduler(
        host=bracketed(listen),
        port=0,
        protocol="tls",
        security=security,
        dashboard=False,
        dashboard_address=DASHBOARD_ADDRESS,
    )
    try:
        await _listen(scheduler, listen)
        scheduler.add_plugin(_Registry(came, went))
        # Before any worker is launched: else the client waits behind them for the CPU.
        client = Client(  # type: ignore[no-untyped-call] # distributed leaves it out
            f"tls://{bracketed(listen or LOOPBACK)}:{scheduler.port}",
            asynchronous=True,
            security=security,
            set_as_default=False,
            # What a host sends is never unpickled here.
            deserializers=["dask", "msgpack"],
        )
        await client
        yield client, scheduler.port
    finally:
        for closing in (client, scheduler):
            if closing:
                await _close(closing)


async def _listen(scheduler: Scheduler, address: str) -> None:
    try:
        await scheduler
    except OSError as error:
        raise UsageError(f"cannot listen for the hosts on {address}: {error}") from None


async def _close(closing: Any) -> None:
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_S):
            await closing.close()
