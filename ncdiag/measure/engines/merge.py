"""Two halves of a pair become two measurements, or errors that say why not."""

from dataclasses import replace

from ncdiag.measure.engines.base import Endpoint, PairOrder
from ncdiag.measure.engines.halves import CROSSED_SHARE, Blame, Failure, Half
from ncdiag.measure.engines.windows import MIN_WINDOWS
from ncdiag.model.measurement import Measurement
from ncdiag.model.text import visible
from ncdiag.model.units import format_share


def merge(order: PairOrder, first: Half, second: Half, engine: str) -> tuple[Measurement, ...]:
    """The measurements of both directions, in the order in which they were made.

    A direction that was complete before the pair failed stands on its own. Damage is found by
    whoever receives, so it is told of that direction alone; the other was not measured.
    """
    ends = ((order.first, first), (order.second, second))
    failure = _most_telling(*ends)
    return tuple(
        _direction(order, source, target, failure, engine) for source, target in (ends, ends[::-1])
    )


def _most_telling(*ends: tuple[Endpoint, Half]) -> str | None:
    failures = [(half.failure, end) for end, half in ends if half.failure]
    if not failures:
        return None
    failure, end = min(failures, key=lambda found: found[0].blame)
    return _text(failure, end.host)


def _text(failure: Failure, host: str) -> str:
    joint = " was " if failure.text.startswith("lost") else ": "
    return visible(f"{host}{joint}{failure.text}")


def _direction(
    order: PairOrder,
    source: tuple[Endpoint, Half],
    target: tuple[Endpoint, Half],
    failure: str | None,
    engine: str,
) -> Measurement:
    sent, received = source[1].sent, target[1].received
    error: str | None = failure or "one of the hosts gave no result"
    damage = None if received else _damage(target)
    if sent and received:
        error = (
            _not_crossed(source[0], source[1].tx_bytes, sent.payload_bytes)
            or _not_crossed(target[0], target[1].rx_bytes, received.payload_bytes)
            or _too_little(received.windows)
        )
    result = Measurement(
        source=source[0].host,
        target=target[0].host,
        rail=order.rail,
        round=order.round,
        purpose=order.purpose,
        engine=engine,
        error=damage or error,
        damaged=damage is not None,
    )
    if not sent or not received or error:
        return result
    idle = [share for share in (sent.idle, received.idle) if share is not None]
    return replace(
        result,
        bytes=received.bytes,
        seconds=received.seconds,
        measured_gbit_per_s=received.median_gbit_per_s,
        min_gbit_per_s=received.worst_gbit_per_s,
        idle=min(idle, default=None),
    )


def _damage(target: tuple[Endpoint, Half]) -> str | None:
    end, half = target
    if half.failure is None or half.failure.blame is not Blame.PAYLOAD:
        return None
    return _text(half.failure, end.host)


def _not_crossed(end: Endpoint, moved_bytes: int | None, payload_bytes: int) -> str | None:
    """Whether the NIC's own counters account for the payload."""
    if moved_bytes is None:
        return f"{end.host}: the counters of {end.nic.name} cannot be read"
    if moved_bytes >= payload_bytes * CROSSED_SHARE:
        return None
    share = moved_bytes / payload_bytes
    return (
        f"did not cross {end.nic.name} of {end.host}: its counters show "
        f"{format_share(share)} of the payload"
    )


def _too_little(windows: int) -> str | None:
    if windows >= MIN_WINDOWS:
        return None
    return f"too little data: {windows} whole windows, {MIN_WINDOWS} are needed"
