"""What the measuring process does with a request."""

import torch

from ncdiag.measure.engines.exchange import exchange, measure_half
from ncdiag.measure.engines.halves import Half
from ncdiag.measure.engines.stream import Channel
from ncdiag.measure.engines.torch.errors import one_line
from ncdiag.measure.engines.torch.gloo import GlooChannel
from ncdiag.measure.engines.torch.memory import TensorMemory
from ncdiag.measure.engines.torch.messages import (
    Backend,
    MeasurePair,
    OpenStore,
    Ready,
    StoreOpened,
)
from ncdiag.measure.engines.torch.rendezvous import CONNECT_S, Stores, connect


class Measurer:
    """The state of a measuring process: stores, memory, and the channel in use."""

    def __init__(self, backend: Backend) -> None:
        torch.set_num_threads(1)
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        nccl = _nccl_version() if gpus else None
        self.ready = Ready(torch=str(torch.__version__), nccl=nccl, gpus=gpus)
        self._backend = backend
        self.stores = Stores()
        # Made now, since the first use of a GPU takes seconds.
        self._memory = TensorMemory(*_nature(backend))
        self._channel: Channel[torch.Tensor] | None = None

    def answer(self, request: OpenStore | MeasurePair) -> StoreOpened | Half:
        """Do what is asked; a failure is part of the answer."""
        if isinstance(request, MeasurePair):
            return self._measure(request)
        try:
            return StoreOpened(port=self.stores.open(request.address, request.port))
        except OSError as error:
            return StoreOpened(error=f"{request.address}: {error.strerror or one_line(error)}")

    def clean_up(self) -> None:
        """Drop the channel of the last pair, which takes longer than its answer should wait."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _measure(self, pair: MeasurePair) -> Half:
        def transfer(half: Half) -> None:
            self._channel = self._open(pair)
            exchange(self._channel, self._memory, pair.timing, half, first=pair.first)

        return measure_half(pair.nic, transfer, one_line)

    def _open(self, pair: MeasurePair) -> Channel[torch.Tensor]:
        where = (pair.store_address, pair.store_port, pair.meeting)
        store = self.stores.own(*where) if pair.first else connect(*where)
        if self._backend is Backend.NCCL:
            from ncdiag.measure.engines.torch.nccl import NcclChannel

            return NcclChannel(store, first=pair.first)
        address = pair.nic.address or pair.store_address
        return GlooChannel(store, address, first=pair.first, connect_s=CONNECT_S)


def _nccl_version() -> str:
    version: tuple[int, ...] = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
    return ".".join(map(str, version))


def _nature(backend: Backend) -> tuple[int, torch.device]:
    if backend is Backend.GLOO:
        return GlooChannel.max_chunk_bytes, GlooChannel.device
    from ncdiag.measure.engines.torch.nccl import NcclChannel

    return NcclChannel.max_chunk_bytes, NcclChannel.device
