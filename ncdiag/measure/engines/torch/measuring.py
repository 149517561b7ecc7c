"""What the measuring process does with a request."""

import time

import torch

from ncdiag.health.counters import Counters, read_counters
from ncdiag.measure.engines.torch.errors import one_line
from ncdiag.measure.engines.torch.gloo import GlooChannel
from ncdiag.measure.engines.torch.messages import (
    CROSSED_SHARE,
    Backend,
    Blame,
    Failure,
    Half,
    MeasurePair,
    OpenStore,
    Ready,
    StoreOpened,
)
from ncdiag.measure.engines.torch.rendezvous import CONNECT_S, Stores, connect
from ncdiag.measure.engines.torch.transfer import (
    Channel,
    DamagedError,
    Memory,
    PeerLostError,
    StalledError,
    Stream,
    greet,
)
from ncdiag.model.host import Nic

# Drivers that fetch counters from the card once a second show a transfer only afterwards.
_COUNTER_LAG_S = 1.2
_COUNTER_RETRY_S = 0.05


class Measurer:
    """The state of a measuring process: stores, memory, and the channel in use."""

    def __init__(self, backend: Backend) -> None:
        torch.set_num_threads(1)
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        nccl = _nccl_version() if gpus else None
        self.ready = Ready(torch=str(torch.__version__), nccl=nccl, gpus=gpus)
        self._backend = backend
        self._stores = Stores()
        # Made now, since the first use of a GPU takes seconds.
        self._memory = Memory(*_nature(backend))
        self._channel: Channel | None = None

    def answer(self, request: OpenStore | MeasurePair) -> StoreOpened | Half:
        """Do what is asked; a failure is part of the answer."""
        if isinstance(request, MeasurePair):
            return self._measure(request)
        try:
            return StoreOpened(port=self._stores.open(request.address, request.port))
        except OSError as error:
            return StoreOpened(error=f"{request.address}: {error.strerror or one_line(error)}")

    def clean_up(self) -> None:
        """Drop the channel of the last pair, which takes longer than its answer should wait."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _measure(self, pair: MeasurePair) -> Half:
        half = Half()
        try:
            before = read_counters(pair.nic)
            try:
                self._channel = self._open(pair)
                self._exchange(self._channel, pair, half)
            except Exception as error:  # noqa: BLE001 - whatever torch raises costs this pair alone
                half.failure = _failure(error)
            moved = _moved(pair.nic, before, half)
            half.tx_bytes, half.rx_bytes = moved.tx_bytes, moved.rx_bytes
        except (OSError, ValueError) as error:
            text = f"the counters of {pair.nic.name} cannot be read: {one_line(error)}"
            half.failure = half.failure or Failure(Blame.LOCAL, text)
        return half

    def _open(self, pair: MeasurePair) -> Channel:
        where = (pair.store_address, pair.store_port, pair.meeting)
        store = self._stores.own(*where) if pair.first else connect(*where)
        if self._backend is Backend.NCCL:
            from ncdiag.measure.engines.torch.nccl import NcclChannel

            return NcclChannel(store, first=pair.first)
        address = pair.nic.address or pair.store_address
        return GlooChannel(store, address, first=pair.first, connect_s=CONNECT_S)

    def _exchange(self, channel: Channel, pair: MeasurePair, half: Half) -> None:
        greet(channel, first=pair.first)
        for forward in (True, False):
            stream = Stream(channel, self._memory, pair.timing, forward=forward)
            if forward is pair.first:
                half.sent = stream.send()
            else:
                half.received = stream.receive()
        # Whoever drops a connection first may cut off what the other has not read yet.
        greet(channel, first=pair.first)


def _nccl_version() -> str:
    version: tuple[int, ...] = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
    return ".".join(map(str, version))


def _nature(backend: Backend) -> tuple[int, torch.device]:
    if backend is Backend.GLOO:
        return GlooChannel.max_chunk_bytes, GlooChannel.device
    from ncdiag.measure.engines.torch.nccl import NcclChannel

    return NcclChannel.max_chunk_bytes, NcclChannel.device


def _failure(error: Exception) -> Failure:
    match error:
        case DamagedError():
            return Failure(Blame.PAYLOAD, str(error))
        case StalledError():
            return Failure(Blame.STALLED, str(error))
        case PeerLostError():
            return Failure(Blame.PEER, str(error))
        case _:
            return Failure(Blame.LOCAL, one_line(error))


def _moved(nic: Nic, before: Counters, half: Half) -> Counters:
    """How far the counters moved over the whole pair.

    Payload leaves a host in one direction of the pair only and arrives in the other, so the two
    need no reading in between: what the other direction adds are acknowledgements.
    """
    sent = half.sent.payload_bytes if half.sent else 0
    received = half.received.payload_bytes if half.received else 0
    end_s = time.monotonic() + _COUNTER_LAG_S
    while True:
        moved = read_counters(nic).since(before)
        late = moved.tx_bytes < sent * CROSSED_SHARE or moved.rx_bytes < received * CROSSED_SHARE
        if not late or half.failure or time.monotonic() > end_s:
            return moved
        time.sleep(_COUNTER_RETRY_S)
