"""A collective by torch.distributed: a fleet, and on each host a process for each GPU."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final, TypeVar

import msgspec

from ncdiag.cluster.fleet import CallError, Fleet, FleetOptions
from ncdiag.cluster.fleet.protocol import WORKER_MODULE
from ncdiag.cluster.launchers import Launcher
from ncdiag.expect.traffic import bus_factor
from ncdiag.measure.bench import torch_task
from ncdiag.measure.bench.base import BenchPlan
from ncdiag.measure.bench.messages import Answer, Measure, OpenGroup, Request, Task
from ncdiag.measure.bench.sizes import Sizes
from ncdiag.measure.engines.torch import task as engine_task
from ncdiag.measure.engines.torch.messages import (
    Backend,
    Collected,
    CollectTask,
    OpenStore,
    StoreOpened,
)
from ncdiag.measure.engines.torch.placement import choose_backend
from ncdiag.measure.engines.torch.processes import shared_process
from ncdiag.model.bench import BenchRun
from ncdiag.model.benchmark import Benchmark, IterationTimes, TableRow
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.place import Place
from ncdiag.model.text import visible

_SIZES: Final = {Backend.GLOO: Sizes(1 << 10, 64 << 20, 2), Backend.NCCL: Sizes(8, 8 << 30, 2)}
# Importing torch takes 4 s on busy cores, and far longer from a cold network file system.
_READY_S: Final = 60.0
_OPEN_S: Final = 90.0
# What a host's answer may need besides: the worker keeps the deadline, this only bounds waiting.
_ANSWER_S: Final = 2.0
_WARMUP: Final = 3
# A size is timed for about so long, at least so often: a slow network would take hours else.
_SIZE_S: Final = 3.0
_LEAST_ITERATIONS: Final = 5
# A size may take so many times what the one before it makes likely.
_SPARE: Final = 2.0

_Asked = TypeVar("_Asked")


class TorchBench:
    """Runs the collective in processes that stay; one that fails ends the run it is in."""

    name = "torch"
    first_module = WORKER_MODULE

    def __init__(
        self,
        hosts: Sequence[Host],
        launcher: Launcher,
        plan: BenchPlan,
        fleet: Fleet | None = None,
    ) -> None:
        """``fleet`` is one that runs measuring processes for pairs, and is used for this too."""
        self._hosts = {host.name: host for host in hosts}
        self._plan = plan
        options = FleetOptions(driver_address=plan.driver_address)
        companions = (shared_process(plan.variables),)
        self._fleet = fleet or Fleet(hosts, launcher, companions=companions, options=options)
        self._lent = fleet is not None
        self._unusable: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        self._backend = Backend.GLOO
        self._generation = 0
        self.partial: BenchRun | None = None
        self.sizes = plan.sizes or _SIZES[Backend.GLOO]
        self.ranks_per_host = plan.gpus_per_node or 1

    @property
    def compares(self) -> bool:
        """What CPUs exchange says nothing of GPUs."""
        return self._backend is Backend.NCCL

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that cannot take part, with the reason."""
        return {**self._unusable, **self._fleet.unreachable}

    @property
    def versions(self) -> Mapping[str, str]:
        """What the hosts say of torch and NCCL."""
        return self._versions

    def start(self, on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        """Start the fleet, and learn what each host has."""
        self._fleet.start(on_change)
        return self.join(self._collect(), on_change)

    def join(
        self, collected: Mapping[str, Collected], on_change: Callable[[str, str], None]
    ) -> Mapping[str, HostFacts]:
        """The same with a fleet that is up, whose hosts said what they have."""
        self._backend, without = choose_backend(collected, None)
        self._unusable.update(without)
        usable = {name: one for name, one in collected.items() if name not in without}
        for name, one in usable.items():
            address = one.own_address or next(
                (nic.address for nic in one.facts.nics if nic.address), None
            )
            if address is None:
                self._unusable[name] = "it has no address that the other hosts can reach"
            else:
                self._addresses[name] = address
        for host, why in self._unusable.items():
            on_change(host, why)
        facts = {name: one.facts for name, one in usable.items() if name in self._addresses}
        self.sizes = self._plan.sizes or _SIZES[self._backend]
        if self._backend is Backend.NCCL and not self._plan.gpus_per_node:
            self.ranks_per_host = min((usable[name].ready.gpus for name in facts), default=1)
        for found in facts.values():
            self._versions |= {
                name: found.versions[name] for name in ("torch", "nccl") if name in found.versions
            }
        return facts

    def ranks(self, hosts: Sequence[str]) -> list[tuple[str, int]]:
        """The ranks of ``hosts`` in their order: a host, and the number of a GPU there."""
        return [(host, local) for host in hosts for local in range(self.ranks_per_host)]

    def run(self, hosts: Sequence[str], *, within_s: float | None = None) -> BenchRun:
        """All sizes once; what was measured before something failed is kept.

        ``within_s`` bounds it all, setting up the group as well: sizes too large for that are left
        out.
        """
        ranks = self.ranks(hosts)
        end_s = None if within_s is None else time.monotonic() + within_s
        benchmark = Benchmark(place=Place(f"{self._backend} of torch", 0))
        try:
            error = self.meet(ranks, within_s) or self._measure_all(ranks, benchmark, end_s)
        except KeyboardInterrupt:
            self.partial = self._run(hosts, benchmark, "interrupted")
            raise
        benchmark.complete = error is None
        if error is not None:  # the other ranks still wait for the one that failed
            self.renew()
        return self._run(hosts, benchmark, error)

    def job(self, _hosts: Sequence[str], _ranks_per_host: int) -> None:
        """No command: the workers run it."""

    def close(self) -> None:
        """End the fleet, and with it every process; one that was lent stays as it is."""
        if not self._lent:
            self._fleet.close()

    def _run(self, hosts: Sequence[str], benchmark: Benchmark, error: str | None) -> BenchRun:
        return BenchRun(
            hosts=tuple(hosts),
            ranks_per_host=self.ranks_per_host,
            benchmark=benchmark if benchmark.rows else None,
            error=error,
        )

    def _collect(self) -> dict[str, Collected]:
        questions = {
            name: CollectTask(
                nics=self._hosts[name].nics,
                address=self._hosts[name].address,
                timeout_s=_READY_S,
                variables=dict(self._plan.variables),
            )
            for name in self._fleet.up
        }
        collected = {}
        calls = [
            self._fleet.call(
                name, engine_task.collect, msgspec.json.encode(one), timeout_s=_READY_S + _ANSWER_S
            )
            for name, one in questions.items()
        ]
        for call in self._fleet.as_completed(calls):
            try:
                answer = msgspec.json.decode(call.result(), type=Collected)
            except (CallError, msgspec.MsgspecError) as error:
                self._unusable[call.host] = visible(str(error))
                continue
            if answer.ready.error:
                self._unusable[call.host] = visible(answer.ready.error)
            else:
                collected[call.host] = answer
        return {name: collected[name] for name in self._hosts if name in collected}

    def renew(self) -> None:
        """Have new processes take the places of those that may still wait for a lost one."""
        self._generation += 1

    def meet(self, ranks: Sequence[tuple[str, int]], within_s: float | None = None) -> str | None:
        """Have all ranks make a group; returns why they could not."""
        limit_s = min(_OPEN_S, within_s or _OPEN_S)
        address = self._addresses[ranks[0][0]]
        opened, error = self._ask([(ranks[0], OpenStore(address=address))], StoreOpened, limit_s)
        if error or opened[0].error:
            return error or f"{ranks[0][0]}: {opened[0].error}"
        meeting = secrets.token_hex(16)
        requests = [
            (
                one,
                OpenGroup(
                    rank=number,
                    ranks=len(ranks),
                    address=self._addresses[one[0]],
                    store_address=address,
                    store_port=opened[0].port,
                    meeting=meeting,
                    gpu=one[1] if self._backend is Backend.NCCL else None,
                ),
            )
            for number, one in enumerate(ranks)
        ]
        _, error = self._ask(requests, Answer, limit_s)
        return error

    def _measure_all(
        self, ranks: Sequence[tuple[str, int]], benchmark: Benchmark, end_s: float | None
    ) -> str | None:
        last_s = end_s or time.monotonic() + self._plan.timeout_s
        iterations, factor = self._plan.iterations, bus_factor(self._plan.collective, len(ranks))
        took_s = 0.0
        for size in self.sizes.each():
            left_s = last_s - time.monotonic()
            if end_s and benchmark.rows and _SPARE * took_s * (iterations + _WARMUP + 1) > left_s:
                return None  # one that is begun and cut off would look like one that hangs
            if left_s <= 0:
                return f"it did not end within {self._plan.timeout_s:g} s (--timeout)"
            request = Measure(self._plan.collective.value, size, iterations, _WARMUP)
            answers, error = self._ask([(one, request) for one in ranks], Answer, left_s)
            if error:
                return error
            row = _row(answers, factor, each_process=self._backend is Backend.NCCL)
            benchmark.rows.append(row)
            took_s = (row.out_of_place_time_us or 0.0) / 1e6 * self.sizes.factor
            likely = int(_SIZE_S / took_s) if took_s else self._plan.iterations
            iterations = min(self._plan.iterations, max(_LEAST_ITERATIONS, likely))
        return None

    def _ask(
        self,
        requests: Sequence[tuple[tuple[str, int], Request]],
        kind: type[_Asked],
        limit_s: float,
    ) -> tuple[list[_Asked], str | None]:
        """Ask ranks at the same time; their answers in order, or what went wrong first."""
        answers: dict[int, _Asked] = {}
        for number, answer, error in self.ask_each(requests, kind, limit_s):
            if answer is None or error:
                return [], f"{requests[number][0][0]}: {error}"
            answers[number] = answer
        return [answers[number] for number in range(len(requests))], None

    def ask_each(
        self,
        requests: Sequence[tuple[tuple[str, int], Request]],
        kind: type[_Asked],
        limit_s: float,
    ) -> Iterator[tuple[int, _Asked | None, str | None]]:
        """Ask ranks at the same time: which of the requests, its answer, or why there is none."""
        calls = {}
        for number, ((host, local), request) in enumerate(requests):
            question = Task(
                local_rank=local,
                backend=self._backend.value,
                generation=self._generation,
                request=request,
                deadline_s=limit_s,
                variables=dict(self._plan.variables),
                shared=self._lent and self._backend is Backend.GLOO,
            )
            payload = msgspec.json.encode(question)
            call = self._fleet.call(host, torch_task.answer, payload, timeout_s=limit_s + _ANSWER_S)
            calls[call] = number
        for call in self._fleet.as_completed(calls):
            try:
                one = msgspec.json.decode(call.result(), type=kind)
            except (CallError, msgspec.MsgspecError) as error:
                yield calls[call], None, visible(str(error))
                continue
            # A store that could not be opened is told of by who asked for it.
            why = None if isinstance(one, StoreOpened) else getattr(one, "error", None)
            yield calls[call], (None if why else one), (visible(why) if why else None)


def _row(answers: Sequence[Answer], factor: float, *, each_process: bool) -> TableRow:
    """One size: the slowest rank of each iteration counts."""
    slowest = [max(at_once) for at_once in zip(*(one.times_us for one in answers), strict=True)]
    time_us = fmean(slowest)
    size = answers[0].size_bytes
    algbw = size / time_us / 1e3
    return TableRow(
        size=size,
        type="float",
        redop="",
        out_of_place_busbw=algbw * factor,
        in_place_busbw=None,
        out_of_place_wrong=sum(one.wrong for one in answers),
        in_place_wrong=None,
        out_of_place_time_us=time_us,
        out_of_place_algbw=algbw,
        out_of_place_iterations=IterationTimes(
            min_us=min(slowest),
            max_us=max(slowest),
            avg_us=time_us,
            times_us=tuple(slowest),
            # The times of CPUs that share their cores with others say nothing of a rank.
            process_max_us=tuple(one.times_us for one in answers) if each_process else (),
        ),
    )
