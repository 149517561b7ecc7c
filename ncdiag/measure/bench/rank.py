"""One rank of a collective: its group, and what it measures."""

import time
from datetime import timedelta
from typing import Any

import msgspec
import torch
from torch import distributed

from ncdiag.expect.traffic import Collective
from ncdiag.measure.bench.collectives import OPERATIONS, Operation
from ncdiag.measure.bench.messages import Answer, Measure, OpenGroup, Request
from ncdiag.measure.engines.torch.errors import one_line
from ncdiag.measure.engines.torch.messages import Backend, OpenStore, StoreOpened
from ncdiag.measure.engines.torch.rendezvous import Stores, connect

# How long ranks wait for each other to come. The longest an operation may take is the driver's to
# say: it kills this process.
_MEET_S = 60.0
_FOR_EVER = timedelta(days=1)
# torch's own stubs leave out most of what is used here.
_Gloo: Any = distributed.ProcessGroupGloo


class Rank:
    """The state of a rank's process."""

    def __init__(self, backend: Backend, stores: Stores | None = None) -> None:
        torch.set_num_threads(1)
        self._backend = backend
        self._stores = stores or Stores()
        self._group: Any = None
        self._place = OpenGroup(0, 1, "", "", 0, "")
        self._device = torch.device("cpu")

    def answer(self, request: Request) -> msgspec.Struct:
        """Do what is asked; a failure is part of the answer."""
        try:
            return self.carry_out(request)
        except Exception as error:  # noqa: BLE001 - whatever torch raises costs this run alone
            if isinstance(request, OpenStore):
                return StoreOpened(error=one_line(error))
            return Answer(error=one_line(error))

    def carry_out(self, request: Request) -> msgspec.Struct:
        """Do what is asked; raises whatever torch raises."""
        match request:
            case OpenStore():
                return StoreOpened(port=self._stores.open(request.address, request.port))
            case OpenGroup():
                self._open(request)
                return Answer()
            case Measure():
                return self._measure(request)
        raise ValueError(f"a rank does not know {type(request).__name__}")

    def _open(self, place: OpenGroup) -> None:
        self._group, self._place = None, place
        where = (place.store_address, place.store_port, place.meeting)
        store = self._stores.own(*where) if place.rank == 0 else connect(*where)
        if self._backend is Backend.NCCL:
            self._device = torch.device("cuda", place.gpu or 0)
            torch.cuda.set_device(self._device)
            nccl: Any = distributed.ProcessGroupNCCL
            self._group = nccl(store, place.rank, place.ranks, nccl.Options())
            return
        # Without a device gloo asks for the address of the host's own name, which may be loopback.
        options = _Gloo._Options()  # noqa: SLF001 - no public name exists
        options._devices = [_Gloo.create_device(hostname=place.address)]  # noqa: SLF001
        options._timeout = timedelta(seconds=_MEET_S)  # noqa: SLF001
        self._group = _Gloo(store, place.rank, place.ranks, options)

    def _measure(self, asked: Measure) -> Answer:
        place = self._place
        operation = OPERATIONS[Collective(asked.collective)](
            self._group, place.rank, place.ranks, asked.size_bytes, self._device
        )
        operation.fill()
        self._once(operation)
        wrong = operation.wrong()
        for _ in range(asked.warmup):
            self._once(operation)
        times = []
        for _ in range(asked.iterations):
            self._meet()
            began_s = time.perf_counter()
            self._once(operation)
            times.append((time.perf_counter() - began_s) * 1e6)
        self._meet()
        return Answer(size_bytes=operation.size_bytes, times_us=tuple(times), wrong=wrong)

    def _once(self, operation: Operation) -> None:
        for work in operation.begin():
            work.wait(_FOR_EVER)
        self.synchronize()

    def synchronize(self) -> None:
        """Wait for what the GPU still does."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _meet(self) -> None:
        """Start an iteration together: who comes late would be timed less.

        By a collective of one number: NCCL's barrier has its own mind about which GPU to use.
        """
        self._group.allreduce([torch.zeros(1, device=self._device)]).wait(_FOR_EVER)
        self.synchronize()
