"""The driver's side of the perftest engine: a fleet, and two programs for each direction."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from ncdiag.cluster.fleet import CallError, Fleet
from ncdiag.cluster.fleet.addresses import driver_addresses
from ncdiag.cluster.fleet.calls import Function
from ncdiag.health.self_report import HostHint, Question
from ncdiag.measure.engines.base import Endpoint, EngineOptions, PairOrder
from ncdiag.measure.engines.perftest import task
from ncdiag.measure.engines.perftest.commands import READS, client_argv, planned_s, side_argv
from ncdiag.measure.engines.perftest.messages import (
    ConnectTask,
    FinishTask,
    Prepared,
    PrepareTask,
    Served,
    ServeTask,
    Side,
)
from ncdiag.measure.engines.perftest.outcome import direction
from ncdiag.measure.engines.perftest.placement import (
    Place,
    can_use_gpus,
    placed_facts,
    places,
    why_not,
)
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.measurement import Measurement
from ncdiag.model.text import visible

# Which GPU is measured is for the engine to say, whatever a profile holds.
OWN_VARIABLES: Final = frozenset({"CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"})

# Looking at NICs and GPUs, and asking the program twice what it can do.
_PREPARE_S = 60.0
# Before it listens, a program has only read its command line and looked for its device.
_LISTEN_S = 10.0
# Beside the time that is measured: memory is registered, queue pairs are made, and one that gets no
# answer gives up after seven tries of up to half a second each. CUDA takes seconds to start.
_SLACK_S = 10.0
_GPU_SLACK_S = 20.0
# The side that waited ends with the other one; it is killed where that one failed.
_GRACE_S = 2.0
# What a host's answer may need besides: the worker keeps the deadline, this only bounds waiting.
_ANSWER_S = 2.0

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a direction: where it is, and what runs there."""

    endpoint: Endpoint
    place: Place

    @property
    def host(self) -> str:
        """The host it is on."""
        return self.endpoint.host


class PerftestEngine:
    """Measures directions with a program of perftest on either host."""

    name = "perftest"

    def __init__(
        self, hosts: Sequence[Host], fleet: Fleet, options: EngineOptions | None = None
    ) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._fleet = fleet
        self._options = options or EngineOptions()
        self._unusable: dict[str, str] = {}
        self._places: dict[tuple[str, str], Place] = {}  # by a host and the name of its NIC
        self._gpu_memory = False
        self._pairs = ThreadPoolExecutor(
            max_workers=self._options.settings.at_a_time, thread_name_prefix="perftest pair"
        )

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that cannot be measured, with the reason."""
        return {**self._unusable, **self._fleet.unreachable}

    def start(self, on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        """Start the fleet, and ask each host for its RDMA ports and its program."""
        self._fleet.start(on_change)
        prepared = self._prepare()
        for host, why in self._unusable.items():
            on_change(host, why)
        # Figures out of both kinds of memory would not compare.
        self._gpu_memory = bool(prepared) and all(map(can_use_gpus, prepared.values()))
        facts = {}
        for name, answer in prepared.items():
            found = places(answer, self._options.variables, gpu_memory=self._gpu_memory)
            self._places.update({(name, nic): place for nic, place in found.items()})
            facts[name] = placed_facts(answer)
        return facts

    def measure(self, orders: Sequence[PairOrder]) -> Iterator[Measurement]:
        """Measure pairs, so many at the same time as was said; see :class:`Engine`."""
        running = [self._pairs.submit(self._pair, order) for order in orders]
        try:
            for done in as_completed(running):
                yield from done.result()
        finally:
            for one in running:
                one.cancel()

    def close(self) -> None:
        """End the fleet, and with it every program."""
        self._pairs.shutdown(wait=False, cancel_futures=True)
        self._fleet.close()

    def _prepare(self) -> dict[str, Prepared]:
        """Ask all hosts; one that cannot be measured is noted as unusable."""
        address = self._options.fleet.driver_address
        hosts = list(self._hosts.values())
        known = (address,) if address else driver_addresses(hosts)
        calls = []
        for name in self._fleet.up:
            host = self._hosts[name]
            hint = HostHint(nics=host.nics, address=host.address)
            question = PrepareTask(
                host=name,
                question=Question(hosts={name: hint}, driver_addresses=known),
                program=self._options.settings.perftest,
                variables=dict(self._options.variables),
            )
            encoded = msgspec.json.encode(question)
            calls.append(self._fleet.call(name, task.prepare, encoded, timeout_s=_PREPARE_S))
        prepared = {}
        for call in self._fleet.as_completed(calls):
            try:
                answer = msgspec.json.decode(call.result(), type=Prepared)
                why = why_not(answer)
            except (CallError, msgspec.MsgspecError) as error:
                why = str(error)
            if why is None:
                prepared[call.host] = answer
            else:
                self._unusable[call.host] = visible(why)
        return {name: prepared[name] for name in self._hosts if name in prepared}

    def _pair(self, order: PairOrder) -> list[Measurement]:
        """Both directions, one after the other."""
        first, second = (
            _End(end, self._places[end.host, end.nic.name]) for end in (order.first, order.second)
        )
        return [
            self._direction(order, source, target)
            for source, target in ((first, second), (second, first))
        ]

    def _direction(self, order: PairOrder, source: _End, target: _End) -> Measurement:
        reads = self._options.settings.perftest in READS
        server, client = (source, target) if reads else (target, source)
        waited, connected = self._run(server, client)
        sides = {server.host: (server.endpoint, waited), client.host: (client.endpoint, connected)}
        return direction(order, sides[source.host], sides[target.host], self.name)

    def _run(self, server: _End, client: _End) -> tuple[Side, Side]:
        """Start the side that waits, run the other one, end both."""
        slack_s = _GPU_SLACK_S if self._gpu_memory else _SLACK_S
        deadline_s = planned_s(self._options.timing) + slack_s
        run_id = secrets.token_hex(8)
        wait = ServeTask(
            run_id=run_id,
            nic=server.place.nic,
            argv=self._argv(server),
            variables=dict(server.place.variables),
            start_s=_LISTEN_S,
            lifetime_s=_LISTEN_S + deadline_s + _GRACE_S + 2 * _ANSWER_S,
        )
        # A port that was lost to another program is looked for anew within the same time.
        served, why = self._ask(server, task.serve, wait, _LISTEN_S + _GRACE_S, Served)
        if served is None or served.problem is not None:
            problem = why if served is None else served.problem
            return Side(problem=problem), Side()
        build, address = client.place.build, server.place.address
        go = ConnectTask(
            nic=client.place.nic,
            argv=client_argv(self._argv(client), build, address, served.port),
            variables=dict(client.place.variables),
            deadline_s=deadline_s,
        )
        connected, why = self._ask(client, task.connect, go, deadline_s, Side)
        if connected is None:
            connected = Side(problem=why)
        moved = connected.figures.payload_bytes if connected.figures else 0
        end = FinishTask(run_id=run_id, grace_s=_GRACE_S, payload_bytes=moved)
        waited, why = self._ask(server, task.finish, end, 2 * _GRACE_S, Side)
        return waited or Side(problem=why), connected

    def _argv(self, end: _End) -> tuple[str, ...]:
        return side_argv(
            end.place.build,
            end.place.nic,
            self._options.timing,
            self._options.variables,
            gpu_memory=self._gpu_memory,
        )

    def _ask(
        self,
        end: _End,
        function: Function,
        question: msgspec.Struct,
        limit_s: float,
        kind: type[_Answer],
    ) -> tuple[_Answer | None, str]:
        """What a host answers, or the reason why it did not."""
        payload = msgspec.json.encode(question)
        call = self._fleet.call(end.host, function, payload, timeout_s=limit_s + _ANSWER_S)
        try:
            return msgspec.json.decode(call.result(), type=kind), ""
        except CallError as error:
            return None, str(error)
        except msgspec.MsgspecError as error:
            return None, f"its answer makes no sense: {error}"
