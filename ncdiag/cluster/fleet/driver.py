"""The driver's side of the fleet: a thread with an event loop, the scheduler and the launches."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Coroutine, Sequence
from concurrent import futures
from typing import Any

import dask

from ncdiag import __version__
from ncdiag.cluster.fleet import calls, reasons
from ncdiag.cluster.fleet.addresses import driver_addresses, listen_address
from ncdiag.cluster.fleet.calls import CallFailed, CallTimeout, Function, HostLost
from ncdiag.cluster.fleet.certificates import HeldCertificate, RunCertificate, make_certificate
from ncdiag.cluster.fleet.companion import CompanionSpec
from ncdiag.cluster.fleet.log import FleetLog
from ncdiag.cluster.fleet.members import Member
from ncdiag.cluster.fleet.open_files import allow_many_files
from ncdiag.cluster.fleet.options import Change, FleetOptions
from ncdiag.cluster.fleet.protocol import WORKER_MODULE, Hello, Job, encode_job
from ncdiag.cluster.fleet.running import Running
from ncdiag.cluster.fleet.scheduler import CLOSE_S, scheduling
from ncdiag.cluster.fleet.scratch import Scratch
from ncdiag.cluster.fleet.settings import BEAT_S, SETTINGS
from ncdiag.cluster.launchers import Launch, Launcher, RemoteJob, StartEnds
from ncdiag.cluster.launchers.attribution import named_hosts
from ncdiag.model.host import Host
from ncdiag.model.text import visible

# After the end of a worker's connection, how long its command may take to tell why.
_REASON_S = 0.5
# A worker ends within milliseconds of its input; a host that is cut off never tells.
_END_S = 3.0


class Driver:
    """Runs in a thread of its own; ``submit`` and ``stop`` may be called from any other."""

    def __init__(
        self,
        hosts: Sequence[Host],
        launcher: Launcher,
        companions: Sequence[CompanionSpec],
        options: FleetOptions,
        tell: Callable[[Change], None],
    ) -> None:
        self._hosts = hosts
        self._launcher = launcher
        self._companions = tuple(companions)
        self._options = options
        self._tell = tell
        self.versions: dict[str, str] = {}
        self._members: dict[str, Member] = {host.name: Member(host.name) for host in hosts}
        self._running: set[Running] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._client: Any = None

    def run(self) -> None:
        """Run the fleet until ``stop``: the body of the thread."""
        error: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._main())
        except BaseException as raised:  # noqa: BLE001 - handed to the thread that waits for us
            error = raised
        finally:
            # Without an error nobody waits any more; this is for one before all were settled.
            self._tell(Change(None, error=error))

    def stop(self) -> None:
        """Begin to close."""
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._stopping.set)

    def up(self) -> tuple[str, ...]:
        """The hosts that can be called now."""
        return tuple(name for name, member in self._members.items() if member.up)

    def unreachable(self) -> dict[str, str]:
        """The hosts that cannot, with the reason."""
        return {name: member.reason for name, member in self._members.items() if member.reason}

    def submit(
        self, host: str, function: Function, payload: bytes, timeout_s: float
    ) -> "futures.Future[bytes]":
        """Start a call."""
        call = self._call(host, function, payload, timeout_s)
        try:
            return asyncio.run_coroutine_threadsafe(call, self._loop)
        except RuntimeError:  # the loop is closed
            call.close()
            failed: futures.Future[bytes] = futures.Future()
            failed.set_exception(HostLost("the fleet was closed"))
            return failed

    async def _main(self) -> None:
        allow_many_files(len(self._hosts))
        certificate = make_certificate()
        with (
            FleetLog(self._options.log_path) as self._log,
            Scratch() as scratch,
            dask.config.set(SETTINGS | {"temporary-directory": str(scratch.path)}),
            HeldCertificate(certificate) as held,
        ):
            exact = self._options.driver_address
            self._addresses = (exact,) if exact else driver_addresses(self._hosts)
            listen = listen_address(self._addresses)
            async with scheduling(listen, held, self._came, self._went) as (self._client, port):
                try:
                    await self._start_all(certificate, port)
                    await self._stopping.wait()
                finally:
                    self._stopping.set()
                    await self._end_all()

    async def _start_all(self, certificate: RunCertificate, port: int) -> None:
        job = Job(
            driver_addresses=self._addresses,
            driver_port=port,
            exact=self._options.driver_address is not None,
            certificate=certificate.certificate,
            key=certificate.key,
            companions=self._companions,
            connect_s=self._options.ready_s,
        )
        remote = RemoteJob(module=WORKER_MODULE, stdin=encode_job(job))
        launches = self._launcher.launches(self._hosts, remote)
        self._spawn(self._beat())
        starts = asyncio.Semaphore(self._launcher.starts_at_a_time)
        for launch in launches:
            self._spawn(self._supervise(launch, starts, remote))
        stopping = asyncio.create_task(self._stopping.wait())
        settled = asyncio.gather(*(member.settled.wait() for member in self._members.values()))
        await asyncio.wait((stopping, settled), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        settled.cancel()
        self._tell(Change(None))

    async def _end_all(self) -> None:
        for running in self._running:
            running.end()
        exits = [running.exited for running in self._running]
        if exits:
            await asyncio.wait(exits, timeout=_END_S)
        for running in self._running:
            running.kill()
        if exits:
            await asyncio.wait(exits, timeout=CLOSE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _beat(self) -> None:
        while True:
            for running in self._running:
                running.beat()
            await asyncio.sleep(BEAT_S)

    async def _supervise(self, launch: Launch, starts: asyncio.Semaphore, job: RemoteJob) -> None:
        members = [self._members[name] for name in launch.hosts]
        async with starts:
            if self._stopping.is_set():
                return
            for member in members:
                self._tell(Change(member.name, "starting"))
            try:
                running = await Running.start(launch, self._heard, self._log.write, self._said)
            except OSError as error:
                self._fail(members, f"cannot start {launch.argv[0]}: {error.strerror}")
                return
            self._running.add(running)
            for member in members:
                member.running = running
            end = self._loop.time() + self._options.ready_s
            early = self._launcher.start_ends is StartEnds.CONNECTED
            await self._wait(running, [m.connected if early else m.settled for m in members], end)
        await self._wait(running, [member.settled for member in members], end)
        if running.exited.done() and (rest := self._without_refusers(running)):
            self._running.discard(running)
            await self._start_again(rest, starts, job)
            return
        for member in members:
            self._fail([member], self._why_not_up(running, member))
        if not any(member.up for member in members):
            running.kill()
        code = await running.exited
        self._running.discard(running)
        for member in members:
            self._lose(member, reasons.why_lost(code, running.said_about(member.name)))

    def _without_refusers(self, running: Running) -> list[Member]:
        """Fail the hosts for which the launcher gave up on all; the others, if it did."""
        refused = {
            name
            for line in running.said
            if reasons.tells_of_no_launch(line)
            for name in named_hosts(running.launch, line)
        }
        if not refused:
            return []
        for name in refused:
            self._fail([self._members[name]], self._why_not_up(running, self._members[name]))
        names = [name for name in running.launch.hosts if name not in refused]
        return [self._members[name] for name in names]

    async def _start_again(
        self, members: Sequence[Member], starts: asyncio.Semaphore, job: RemoteJob
    ) -> None:
        for member in members:
            member.begin_again()
        names = {member.name for member in members}
        hosts = [host for host in self._hosts if host.name in names]
        for launch in self._launcher.launches(hosts, job):
            await self._supervise(launch, starts, job)

    async def _wait(self, running: Running, events: Sequence[asyncio.Event], end: float) -> None:
        """Wait for all events, the end of the command, or the time ``end``."""
        all_set = asyncio.gather(*(event.wait() for event in events))
        await asyncio.wait(
            (all_set, running.exited),
            timeout=max(0.0, end - self._loop.time()),
            return_when=asyncio.FIRST_COMPLETED,
        )
        all_set.cancel()

    def _why_not_up(self, running: Running, member: Member) -> str:
        said = running.said_about(member.name)
        if running.exited.done():
            return reasons.why_not_started(running.exited.result(), said)
        within = f"within {self._options.ready_s:g} s"
        if member.connected.is_set():
            return f"timed out: its worker started, but was not ready {within}"
        return f"timed out: it did not start {within}"

    def _heard(self, hello: Hello) -> None:
        member = self._members[hello.host]
        member.connected.set()
        version = visible(hello.version)
        self.versions[member.name] = version
        if hello.failed is not None:
            reason = visible(hello.failed)
            self._lose(member, reason)
            self._fail([member], reason)
        elif version != __version__:
            self._tell(Change(member.name, f"runs ncdiag {version}, not {__version__} as here"))

    def _said(self, launch: Launch, line: str) -> None:
        """Of a command for many hosts: one can be over while it still runs for the others."""
        if reasons.tells_of_an_end(line):
            for name in named_hosts(launch, line):
                self._spawn(self._over_soon(self._members[name]))

    async def _over_soon(self, member: Member) -> None:
        running = member.running
        # Its own last words come beside those of the launcher.
        await asyncio.sleep(_REASON_S)
        if running is None or running is not member.running:
            return
        # Where it gave up on all, these are not to blame, and are started again.
        if not any(map(reasons.tells_of_no_launch, running.said)):
            said = running.said_about(member.name)
            self._fail([member], reasons.why_not_started(1, said))
            self._lose(member, reasons.why_lost(None, said))

    def _came(self, name: str, address: str) -> None:
        member = self._members.get(name)
        if member and not member.settled.is_set():
            member.address = address
            member.settled.set()
            self._tell(Change(name, "up"))

    def _went(self, address: str) -> None:
        for member in self._members.values():
            if member.address == address and member.up:
                self._spawn(self._lose_soon(member, address))

    async def _lose_soon(self, member: Member, address: str) -> None:
        # Its command mostly ends as well, and then tells more.
        await asyncio.sleep(_REASON_S)
        if member.address == address:  # else it was started again
            said = member.running.said_about(member.name) if member.running else ()
            self._lose(member, reasons.why_lost(None, said))

    def _fail(self, members: Sequence[Member], reason: str) -> None:
        for member in members:
            if not member.settled.is_set():
                member.reason = reason
                member.settled.set()
                self._tell(Change(member.name, f"unreachable: {reason}"))

    def _lose(self, member: Member, reason: str) -> None:
        if not member.up or self._stopping.is_set():
            return
        member.reason = f"lost: {reason}"
        member.lost.set()
        running = member.running
        if running and not any(self._members[name].up for name in running.launch.hosts):
            running.kill()

    async def _call(self, host: str, function: Function, payload: bytes, timeout_s: float) -> bytes:
        end = self._loop.time() + timeout_s
        member = self._members[host]
        if self._stopping.is_set():
            raise HostLost("the fleet was closed")
        if not member.up:
            raise HostLost(member.reason or "it is not up yet")
        future = self._client.submit(
            calls.run,
            function,
            payload,
            key=f"call-{next(self._numbers)}",
            workers=[member.address],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )
        # Not client.gather: given up, it leaves tasks behind that fail and complain.
        answer = asyncio.ensure_future(future)
        lost = asyncio.ensure_future(member.lost.wait())
        try:
            await asyncio.wait(
                (answer, lost), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if answer.done() and answer.exception():
                # The scheduler's own error: mostly that the worker is gone, which is about to be
                # known in better words.
                await asyncio.wait((lost,), timeout=min(2 * _REASON_S, end - self._loop.time()))
            if lost.done():
                raise HostLost(str(member.reason))
            if not answer.done():
                raise CallTimeout(f"no answer within {timeout_s:g} s")
            if error := answer.exception():
                raise CallFailed(calls.one_line(error))
            return calls.unwrap(answer.result())
        finally:
            answer.cancel()
            lost.cancel()
            future.release()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
