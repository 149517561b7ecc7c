"""One side of a pair: both directions, the NIC's own counters around them, and what went wrong."""

import time
from collections.abc import Callable

from ncdiag.health.counters import Counters, read_counters
from ncdiag.measure.engines.base import Timing
from ncdiag.measure.engines.halves import CROSSED_SHARE, Blame, Failure, Half
from ncdiag.measure.engines.stream import (
    Channel,
    Chunk,
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


def measure_half(
    nic: Nic, transfer: Callable[[Half], None], one_line: Callable[[BaseException], str]
) -> Half:
    """What one side has to say after ``transfer``, which fills it in and may raise anything.

    ``one_line`` turns errors that no engine foresaw into a text.
    """
    half = Half()
    try:
        before = read_counters(nic)
        try:
            transfer(half)
        except Exception as error:  # noqa: BLE001 - whatever a library raises costs this pair alone
            half.failure = _failure(error, one_line)
        moved = _moved(nic, before, half)
        half.tx_bytes, half.rx_bytes = moved.tx_bytes, moved.rx_bytes
    except (OSError, ValueError) as error:
        text = f"the counters of {nic.name} cannot be read: {one_line(error)}"
        half.failure = half.failure or Failure(Blame.LOCAL, text)
    return half


def exchange(
    channel: Channel[Chunk], memory: Memory[Chunk], timing: Timing, half: Half, *, first: bool
) -> None:
    """Both directions, one after the other; what is complete is noted in ``half`` at once."""
    greet(channel, memory.token, first=first)
    for forward in (True, False):
        stream = Stream(channel, memory, timing, forward=forward)
        if forward is first:
            half.sent = stream.send()
        else:
            half.received = stream.receive()
    # Whoever drops a connection first may cut off what the other has not read yet.
    greet(channel, memory.token, first=first)


def _failure(error: Exception, one_line: Callable[[BaseException], str]) -> Failure:
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
