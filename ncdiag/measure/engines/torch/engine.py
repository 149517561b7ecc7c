"""The driver's side of the torch engine: a fleet, one measuring process a host or rail, pairs."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec

from ncdiag.cluster.fleet import Call, CallError, Fleet, HostLost
from ncdiag.cluster.fleet.calls import Function
from ncdiag.measure.engines.base import Endpoint, PairOrder, Timing
from ncdiag.measure.engines.halves import Blame, Failure, Half
from ncdiag.measure.engines.merge import merge
from ncdiag.measure.engines.torch import task
from ncdiag.measure.engines.torch.messages import (
    Backend,
    Collected,
    CollectTask,
    MeasurePair,
    MeasureTask,
    OpenStore,
    PrepareTask,
    StoreOpened,
)
from ncdiag.measure.engines.torch.placement import Place, choose_backend, place, without_nics
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.measurement import Measurement
from ncdiag.model.text import visible

# From the start of a host's worker: importing torch takes 4 s on busy cores, and far longer from
# a cold network file system.
_READY_S = 60.0
# Listening takes a moment; NCCL's processes are only started then, and wake a GPU first.
_PREPARE_S = {Backend.GLOO: 10.0, Backend.NCCL: 90.0}
# What a pair may need besides the planned time: waiting for a process that is being replaced, a
# slow link's longer windows, counters that lag. NCCL sets up a communicator in seconds.
_SLACK_S = {Backend.GLOO: 5.0, Backend.NCCL: 20.0}
# How much of that is for a process that takes the place of a failed one; the rest is enough for a
# pair, which would otherwise be cut off by its deadline, and cost another process.
_START_S = {Backend.GLOO: 4.0, Backend.NCCL: 10.0}
# What a host's answer may need besides: the worker keeps the deadline, this only bounds waiting.
_ANSWER_S = 2.0


_Key = tuple[str, str]  # a host and the name of its NIC


class TorchEngine:
    """Measures pairs with torch.distributed in a process of its own on each host."""

    name = "torch"

    def __init__(
        self,
        hosts: Sequence[Host],
        fleet: Fleet,
        timing: Timing,
        backend: Backend | None = None,
        variables: Mapping[str, str] | None = None,
        *,
        ready_s: float = _READY_S,
    ) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._fleet = fleet
        self._timing = timing
        self._variables = dict(variables or {})
        self._wanted_backend = backend
        self._backend = backend or Backend.GLOO
        self._unusable: dict[str, str] = {}
        self._places: dict[_Key, Place] = {}
        self._preparing: dict[Call, _Key] = {}
        self._ready_s = ready_s
        self.collected: Mapping[str, Collected] = {}

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that cannot be measured, with the reason."""
        return {**self._unusable, **self._fleet.unreachable}

    @property
    def rails_together(self) -> bool:
        """Over NCCL each rail has a process and a GPU of its own; over gloo all share one."""
        return self._backend is Backend.NCCL

    def start(self, on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        """Start the fleet and a measuring process on each host, and have all of them listen."""
        self._fleet.start(on_change)
        collected = self._collect()
        self._backend, without = choose_backend(collected, self._wanted_backend)
        self._unusable.update(without)
        for host in without:
            del collected[host]
        self.collected = collected
        facts = self._place(collected)
        for host, why in self._unusable.items():
            on_change(host, why)
        return facts

    def measure(self, orders: Sequence[PairOrder]) -> Iterator[Measurement]:
        """Measure disjoint pairs at the same time; see :class:`Engine`."""
        self._note_prepared(call for call in list(self._preparing) if call.done())
        halves: list[dict[int, Half]] = [{} for _ in orders]
        calls = {
            self._call(end.host, task.measure, half, half.deadline_s): (number, side)
            for number, order in enumerate(orders)
            for side, (end, half) in enumerate(self._halves(order))
        }
        for call in self._fleet.as_completed(calls):
            number, side = calls[call]
            halves[number][side] = _half(call)
            if len(halves[number]) == 2:
                order, first, second = orders[number], halves[number][0], halves[number][1]
                self._mend(order.first, first)
                self._mend(order.second, second)
                yield from merge(order, first, second, self.name)

    def listen_again(self) -> None:
        """Have all processes listen once more: others may have taken their places since."""
        for key, where in self._places.items():
            if key[0] in self._fleet.up:
                self._prepare(key, where)
        self._note_prepared(list(self._preparing))

    def close(self) -> None:
        """End the fleet, and with it every measuring process."""
        self._fleet.close()

    def _call(
        self, host: str, function: Function, question: msgspec.Struct, limit_s: float
    ) -> Call:
        payload = msgspec.json.encode(question)
        return self._fleet.call(host, function, payload, timeout_s=limit_s + _ANSWER_S)

    def _collect(self) -> dict[str, Collected]:
        """Ask each host what it is; one that cannot measure at all is noted as unusable."""
        calls = []
        for name in self._fleet.up:
            host = self._hosts[name]
            question = CollectTask(
                nics=host.nics,
                address=host.address,
                timeout_s=self._ready_s,
                variables=self._variables,
            )
            calls.append(self._call(name, task.collect, question, self._ready_s))
        collected = {}
        for call in self._fleet.as_completed(calls):
            answer, why = _answer(call, Collected)
            if answer is None or answer.ready.error:
                self._unusable[call.host] = visible((answer and answer.ready.error) or why)
            else:
                collected[call.host] = answer
        return {name: collected[name] for name in self._hosts if name in collected}

    def _place(self, collected: Mapping[str, Collected]) -> dict[str, HostFacts]:
        """Have a process listen for each NIC; return the facts of hosts with one to measure."""
        facts = {}
        for name, answer in collected.items():
            facts[name], places = place(self._hosts[name], answer, self._backend)
            for nic, where in places.items():
                self._prepare((name, nic), where)
        for (name, nic), why in self._note_prepared(self._preparing).items():
            facts[name] = without_nics(facts[name], {nic: why})
        for name, found in facts.items():
            if not found.nics:
                why = "; ".join(f"{nic}: {reason}" for nic, reason in found.missing_nics.items())
                self._unusable[name] = visible(f"no NIC to measure: {why}")
        return {name: found for name, found in facts.items() if found.nics}

    def _prepare(self, key: _Key, where: Place) -> None:
        """Begin to have a process listen; ``_note_prepared`` learns how that went."""
        question = PrepareTask(
            process=where.process,
            open=OpenStore(address=where.address, port=where.port),
            timeout_s=_PREPARE_S[self._backend],
            settings=where.settings,
            variables=self._variables,
        )
        self._places[key] = where
        self._preparing[self._call(key[0], task.prepare, question, question.timeout_s)] = key

    def _note_prepared(self, calls: Iterable[Call]) -> dict[_Key, str]:
        """Note the ports where processes listen; return why some do not."""
        failed = {}
        for call in self._fleet.as_completed(calls):
            key = self._preparing.pop(call)
            answer, why = _answer(call, StoreOpened)
            if answer is None or answer.error:
                failed[key] = visible((answer and answer.error) or why)
            else:
                self._places[key] = replace(self._places[key], port=answer.port)
        return failed

    def _mend(self, end: Endpoint, half: Half) -> None:
        """Have a process that took the place of a failed one listen, while others go on."""
        if half.failure and half.failure.blame in {Blame.PROCESS, Blame.LOCAL}:
            # It keeps to the port that is known, unless that was taken meanwhile.
            self._prepare(_key(end), self._places[_key(end)])

    def _halves(self, order: PairOrder) -> list[tuple[Endpoint, MeasureTask]]:
        """What each side of a pair is to do."""
        ends = (order.first, order.second)
        places = [self._places[_key(end)] for end in ends]
        meeting = secrets.token_hex(16)
        return [
            (
                end,
                MeasureTask(
                    process=where.process,
                    request=MeasurePair(
                        first=end is order.first,
                        nic=end.nic,
                        store_address=places[0].address,
                        store_port=places[0].port,
                        meeting=meeting,
                        timing=self._timing,
                    ),
                    deadline_s=self._timing.pair_s + _SLACK_S[self._backend],
                    start_s=_START_S[self._backend],
                ),
            )
            for end, where in zip(ends, places, strict=True)
        ]


def _key(end: Endpoint) -> _Key:
    return end.host, end.nic.name


_Answer = TypeVar("_Answer")


def _answer(call: Call, kind: type[_Answer]) -> tuple[_Answer | None, str]:
    """What a host answered, or the reason why it did not."""
    try:
        return msgspec.json.decode(call.result(), type=kind), ""
    except CallError as error:
        return None, str(error)
    except msgspec.MsgspecError as error:
        return None, f"its answer makes no sense: {error}"


def _half(call: Call) -> Half:
    try:
        return msgspec.json.decode(call.result(), type=Half)
    except HostLost as error:
        return Half(failure=Failure(Blame.HOST, str(error)))
    except CallError as error:
        return Half(failure=Failure(Blame.PROCESS, str(error)))
    except msgspec.MsgspecError as error:
        return Half(failure=Failure(Blame.LOCAL, f"its answer makes no sense: {error}"))
