"""The part of a worker that needs Dask: find the driver, register with it, work for it."""

import asyncio
import ipaddress
import logging
import os
import ssl
from pathlib import Path

import dask
from distributed import Worker

from ncdiag.cluster.fleet.addresses import bracketed
from ncdiag.cluster.fleet.certificates import HeldCertificate, RunCertificate
from ncdiag.cluster.fleet.protocol import Job
from ncdiag.cluster.fleet.settings import DASHBOARD_ADDRESS, SETTINGS, WORKER_THREADS

# The next address is tried beside the one before after this pause, so the order is a preference
# (as in RFC 8305, section 5).
_HEAD_START_S = 0.25
_PROBE_S = 5.0


class UnreachableDriverError(Exception):
    """No address of the driver answers; the message is for the operator."""


def serve(host: str, job: Job, folder: Path) -> None:
    """Work for the driver until it closes us; raises UnreachableDriverError."""
    logging.getLogger("distributed").setLevel(logging.WARNING)
    with (
        dask.config.set(SETTINGS),
        HeldCertificate(RunCertificate(job.certificate, job.key)) as certificate,
    ):
        asyncio.run(_serve(host, job, folder, certificate))


async def _serve(host: str, job: Job, folder: Path, certificate: HeldCertificate) -> None:
    driver, own = await _find_driver(job, certificate.context())
    worker = Worker(
        f"tls://{bracketed(driver)}:{job.driver_port}",
        name=host,
        # Only towards the driver, never on all addresses.
        host=bracketed(own),
        nthreads=WORKER_THREADS,
        memory_limit=0,
        security=certificate.security(),
        local_directory=str(folder),
        dashboard=False,
        dashboard_address=DASHBOARD_ADDRESS,
        death_timeout=job.connect_s,
    )
    async with worker:
        await worker.finished()  # type: ignore[no-untyped-call] # distributed leaves it out


async def _find_driver(job: Job, context: ssl.SSLContext) -> tuple[str, str]:
    """The first address at which the driver itself answers, and our own address towards it."""
    known = () if job.exact else _ssh_client()
    addresses = dict.fromkeys((*known, *job.driver_addresses))
    probes = [
        asyncio.create_task(_probe(address, job.driver_port, context, number * _HEAD_START_S))
        for number, address in enumerate(addresses)
    ]
    failures: dict[str, None] = {}
    try:
        for probe in asyncio.as_completed(probes):
            try:
                return await probe
            except OSError as error:
                failures[_why(error)] = None
    finally:
        for task in probes:
            task.cancel()
        await asyncio.gather(*probes, return_exceptions=True)
    where = ", ".join(addresses)
    why = "; ".join(failures)
    raise UnreachableDriverError(
        f"it cannot reach the driver at {where}, port {job.driver_port}: {why} "
        "(see --driver-address, and the firewall of the driver)"
    )


def _why(error: OSError) -> str:
    text = error.strerror or str(error)
    if error.errno and text.startswith("Connect call failed"):  # asyncio's own words
        return os.strerror(error.errno)
    return text


async def _probe(
    address: str, port: int, context: ssl.SSLContext, wait_s: float
) -> tuple[str, str]:
    await asyncio.sleep(wait_s)
    try:
        async with asyncio.timeout(_PROBE_S):
            # Something else may listen there: only the driver has the run's certificate.
            _, writer = await asyncio.open_connection(address, port, ssl=context)
    except TimeoutError:
        raise OSError(f"{address} timed out") from None
    own: str = writer.get_extra_info("sockname")[0]
    writer.transport.abort()
    return address, own


def _ssh_client() -> tuple[str, ...]:
    """Where our ssh connection came from: an address that is known to work, behind no gateway."""
    address = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
    try:
        return () if ipaddress.ip_address(address).is_link_local else (address,)
    except ValueError:
        return ()
