"""What the driver and the ranks of the MPI job say to one another.

Down: lines of JSON to the standard input of rank 0, which passes each rank's part on over MPI.
Up: marked lines of JSON on the standard output of every rank, since results must not depend on
another rank; launchers bring them all to the driver, among whatever else is printed on a host.
"""

from typing import Final

import msgspec

from ncdiag.measure.engines.base import Timing
from ncdiag.measure.engines.halves import Half
from ncdiag.model.host import Nic

_MARK: Final = b"ncdiag-mpi: "


class Here(msgspec.Struct, frozen=True, kw_only=True, tag="here"):
    """A rank runs, and MPI is not started yet; ``error`` says why it cannot be.

    ``addresses`` are those of the NIC that it measures on; with ``hostname`` they prove its place.
    """

    rank: int
    hostname: str
    addresses: tuple[str, ...] = ()
    error: str | None = None


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """MPI is started; ``gpu`` where it takes GPU memory and this rank has some."""

    rank: int
    ranks: int
    library: str
    gpu: bool = False
    error: str | None = None


class Passed(msgspec.Struct, frozen=True, kw_only=True, tag="passed"):
    """Rank 0 has passed on what was ordered under ``number``."""

    number: int


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """What one rank has to say of its part of the orders ``number``."""

    rank: int
    number: int
    half: Half


Said = Here | Ready | Passed | Done


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's part of a round: measure with rank ``peer``; ``first`` sends first.

    ``number`` is the round's own, and never used twice in a job. All has to be over
    ``deadline_s`` after it was heard. ``gpu`` has the payload in GPU memory.
    """

    number: int
    peer: int
    first: bool
    nic: Nic
    timing: Timing
    deadline_s: float
    gpu: bool = False


class Orders(msgspec.Struct, frozen=True, kw_only=True, tag="orders"):
    """A round: what each rank that takes part has to do."""

    number: int
    parts: dict[int, Part]


class Beat(msgspec.Struct, frozen=True, tag="beat"):
    """The driver lives."""


class End(msgspec.Struct, frozen=True, tag="end"):
    """Nothing more is to be measured."""


Told = Orders | Beat | End


def encode_said(said: Said) -> bytes:
    """One marked line."""
    return _MARK + msgspec.json.encode(said) + b"\n"


def decode_said(line: bytes) -> Said | None:
    """What a rank said; ``None`` for whatever else is printed."""
    start = line.rfind(_MARK)
    if start < 0:
        return None
    try:
        return msgspec.json.decode(line[start + len(_MARK) :], type=Said)
    except msgspec.MsgspecError:
        return None


def encode_told(told: Told) -> bytes:
    """One line."""
    return msgspec.json.encode(told) + b"\n"


def decode_told(line: bytes) -> Told:
    """What the driver said; raises msgspec.MsgspecError."""
    return msgspec.json.decode(line, type=Told)
