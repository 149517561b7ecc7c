"""The driver's side of the nccl-tests engine: one launch over two hosts for each pair."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, as_completed
from dataclasses import replace
from typing import Any

import msgspec

from ncdiag.cluster.fleet import reasons
from ncdiag.cluster.launchers import Launch, Launcher, RemoteJob
from ncdiag.cluster.mpi import MpiProgram, MpiStarter, choose_starter
from ncdiag.cluster.processes import Ended, Pool
from ncdiag.health.self_report import SelfReport
from ncdiag.measure import nccl_tests_rank
from ncdiag.measure.engines.base import Endpoint, EngineOptions, PairOrder
from ncdiag.measure.engines.nccl_tests import look
from ncdiag.measure.engines.nccl_tests.placement import rate_gbit_per_s, variables_for
from ncdiag.measure.engines.nccl_tests.programs import program_of
from ncdiag.measure.engines.nccl_tests.results import measurements, silent_hosts
from ncdiag.measure.engines.nccl_tests.shape import Shape, arguments, shape_for
from ncdiag.measure.engines.probe import PROBE_S, probe
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host, HostFacts, Nic
from ncdiag.model.measurement import Measurement
from ncdiag.model.text import visible

# What a pair may need besides the planned time: CUDA, NCCL and MPI start, from a cold network file
# system as well.
START_S = 60.0
# A link so many times slower than its rate is still measured to the end.
SLOWEST = 20
# The program's own time-out comes before ours, and says where it hung; ours before that of the
# command that starts all.
_OWN_S = 5.0
_ANSWER_S = 5.0
# A host that said nothing in a pair is asked once more whether it is there.
_AGAIN_S = 30.0


class NcclTestsEngine:
    """Measures pairs with a program of nccl-tests, as many at a time as ``options`` say."""

    name = "nccl-tests"
    rails_together = True  # each rail has a GPU and a launch of its own

    def __init__(
        self,
        hosts: Sequence[Host],
        launcher: Launcher,
        options: EngineOptions,
        *,
        start_s: float = START_S,
    ) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._launcher, self._options = launcher, options
        self._test = options.settings.pair_test
        self._start_s = start_s
        self._starter: MpiStarter | None = None
        self._pool: Pool | None = None
        self._unusable: dict[str, str] = {}
        self._reports: dict[str, SelfReport] = {}
        self._paths: dict[str, str] = {}
        self._letters: frozenset[str] = frozenset()

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that cannot be measured, with the reason."""
        return dict(self._unusable)

    def start(self, on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        """Ask all hosts what they are, and what their program is."""
        self._starter = choose_starter(self._launcher)
        self._pool = Pool(self._options.settings.at_a_time)
        hosts = list(self._hosts.values())
        probed = probe(
            hosts, self._launcher, on_change, driver_address=self._options.fleet.driver_address
        )
        self._unusable.update(probed.unreachable)
        self._reports.update(probed.reports)
        self._look([self._hosts[name] for name in probed.reports])
        facts = {}
        for name, report in probed.reports.items():
            usable = _with_nics(report, self._hosts[name])
            if not usable.nics:
                missing = "; ".join(f"{nic}: {why}" for nic, why in usable.missing_nics.items())
                self._unusable.setdefault(name, visible(f"no NIC to measure: {missing or 'none'}"))
            if name in self._unusable:
                on_change(name, self._unusable[name])
            else:
                facts[name] = usable
        return facts

    def measure(self, orders: Sequence[PairOrder]) -> Iterator[Measurement]:
        """Measure pairs at the same time, each by a launch of its own; see :class:`Engine`."""
        if self._pool is None:
            raise RuntimeError("measure() before start()")
        running = {}
        for order in orders:
            shape = self._shape(order)
            limit_s = self._deadline_s + _OWN_S + _ANSWER_S
            try:
                launch = self._launch(order, shape)
            except UsageError as error:  # what starts programs was there when we began
                why = f"the program: {error}"
                gone = Ended(launch=Launch(argv=(), hosts=()), code=None, error=why)
                yield from measurements(order, gone, shape, self._test, self.name)
                continue
            running[self._pool.submit(launch, timeout_s=limit_s)] = (order, shape)
        doubtful: set[str] = set()
        for future in as_completed(running):
            order, shape = running[future]
            try:
                ended = future.result()
            except CancelledError:
                continue
            doubtful |= silent_hosts(order, ended)
            yield from measurements(order, ended, shape, self._test, self.name)
        if doubtful:
            self._look_again(doubtful)

    def close(self) -> None:
        """Kill what still runs."""
        if self._pool is not None:
            self._pool.close()

    @property
    def _deadline_s(self) -> float:
        return self._start_s + SLOWEST * self._options.timing.pair_s

    def _look(self, hosts: Sequence[Host]) -> None:
        """Find the program on each host; those without are noted as unusable."""
        found, silent = self._ask(hosts, PROBE_S)
        self._unusable.update(silent)
        for name, answer in found.items():
            if answer.error:
                self._unusable[name] = visible(answer.error)
            else:
                self._paths[name] = answer.path
        known = [frozenset(found[name].options) for name in self._paths if name in found]
        self._letters = frozenset.intersection(*known) if known else frozenset()

    def _look_again(self, names: Iterable[str]) -> None:
        """Note which hosts of failed pairs are lost, so that nobody waits for them again."""
        try:
            _, silent = self._ask([self._hosts[name] for name in names], _AGAIN_S)
        except (UsageError, UndecidedError):
            return  # the launcher itself fails, which says nothing of hosts and ends no sweep
        self._unusable.update({name: f"lost: {why}" for name, why in silent.items()})

    def _ask(
        self, hosts: Sequence[Host], timeout_s: float
    ) -> tuple[dict[str, look.Found], dict[str, str]]:
        """What hosts say of their program, and why others say nothing."""
        settings = self._options.settings
        question = look.LookFor(program_of(self._test), settings.nccl_tests_dir)
        job = RemoteJob(module=look.MODULE, stdin=msgspec.json.encode(question) + b"\n")
        found: dict[str, look.Found] = {}
        silent: dict[str, str] = {}

        def hear(line: bytes) -> None:
            if (answer := look.decode_found(line)) and answer.host in self._hosts:
                found[answer.host] = answer

        with Pool(self._launcher.starts_at_a_time) as pool:
            launches = self._launcher.launches(hosts, job) if hosts else []
            running = [pool.submit(one, timeout_s=timeout_s, on_line=hear) for one in launches]
            for future in running:
                ended = future.result()
                why = _silence(ended, timeout_s)
                silent |= {name: why for name in ended.launch.hosts if name not in found}
        return found, silent

    def _shape(self, order: PairOrder) -> Shape:
        ends = {end.host: end.nic for end in (order.first, order.second)}
        return shape_for(self._test, rate_gbit_per_s(self._hosts, ends), self._options.timing)

    def _launch(self, order: PairOrder, shape: Shape) -> Launch:
        """The command that runs the program on both hosts, each rank in its wrapper."""
        if self._starter is None:
            raise RuntimeError("measure() before start()")
        ends = (order.first, order.second)
        job = {
            "ends": [self._end(end) for end in ends],
            "arguments": arguments(shape, self._letters, self._deadline_s - _OWN_S),
            "variables": dict(self._options.variables),
            "expected_bytes": shape.timed_bytes(self._test),
            "deadline_s": self._deadline_s,
        }
        wrapper = RemoteJob(module=nccl_tests_rank.MODULE).command(
            self._launcher.options, self._starter.rank_variable, json.dumps(job)
        )
        hosts = [self._hosts[end.host] for end in ends]
        return self._starter.launch(hosts, MpiProgram(argv=wrapper))

    def _end(self, end: Endpoint) -> dict[str, Any]:
        return {
            "host": end.host,
            "program": self._paths[end.host],
            "nic": _essentials(end.nic),
            "variables": variables_for(self._reports[end.host], end.nic, self._test),
        }


def _essentials(nic: Nic) -> dict[str, Any]:
    """What it takes to find the counters of a NIC."""
    names = ("name", "kind", "interface", "hca", "hca_port")
    return {name: value for name in names if (value := getattr(nic, name)) is not None}


def _with_nics(report: SelfReport, host: Host) -> HostFacts:
    """The facts of a host; where it names no NIC, the one towards the driver is measured."""
    facts = report.facts
    if not facts.nics and not host.nics and report.routed_nic:
        return replace(facts, nics=(report.routed_nic,))
    return facts


def _silence(ended: Ended, timeout_s: float) -> str:
    """Why a host did not say what program it has."""
    if ended.timed_out:
        return f"timed out: it did not answer within {timeout_s:g} s"
    if ended.code is None:
        return visible(f"cannot start {ended.error}")
    return reasons.why_not_started(ended.code, ended.said)
