"""NCCL Inspector's lines: what each operation of each communicator took, summed up."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ncdiag.model.log import InspectorRecord, LogEvidence
from ncdiag.read.line import Line

# Sums kept for one input: a communicator has some operations of some sizes.
MAX_SUMS = 20_000
MAX_TEXT = 200


class _Header(msgspec.Struct):
    id: str | int = ""
    rank: int = -1
    n_ranks: int = 0


class _Metadata(msgspec.Struct):
    hostname: str = ""
    pid: int = 0


class _Collective(msgspec.Struct):
    coll: str
    coll_msg_size_bytes: int = 0
    coll_exec_time_us: float = 0.0
    coll_busbw_gbs: float = 0.0


class _Transfer(msgspec.Struct):
    p2p: str
    p2p_msg_size_bytes: int = 0
    p2p_exec_time_us: float = 0.0
    p2p_busbw_gbs: float = 0.0


class _Record(msgspec.Struct):
    header: _Header
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    coll_perf: _Collective | None = None
    p2p_perf: _Transfer | None = None


class _Key(NamedTuple):
    host: str
    pid: str
    comm_id: str
    op: str
    size: int
    rank: int
    ranks: int


class InspectorReader:
    """Sums up the lines of one input by process, communicator, operation and size.

    Sizes are put together by powers of two: ``size`` is the largest power that is not above them.
    """

    needles: frozenset[bytes] = frozenset({b'"coll_perf"', b'"p2p_perf"'})
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._decoder = msgspec.json.Decoder(_Record)
        # Of each key: how many, the sum of their times and the sum of their bandwidths.
        self._sums: dict[_Key, tuple[int, float, float]] = {}

    @property
    def open(self) -> bool:
        """Every record is one line."""
        return False

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Add one measured operation."""
        del hits
        start, end = line.text.find("{"), line.text.rfind("}")
        if start < 0 or end < start:
            return
        try:
            record = self._decoder.decode(line.text[start : end + 1])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return
        if perf := record.coll_perf:
            self._add(
                record,
                perf.coll,
                perf.coll_msg_size_bytes,
                perf.coll_exec_time_us,
                perf.coll_busbw_gbs,
            )
        elif transfer := record.p2p_perf:
            self._add(
                record,
                transfer.p2p,
                transfer.p2p_msg_size_bytes,
                transfer.p2p_exec_time_us,
                transfer.p2p_busbw_gbs,
            )

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the sums."""
        evidence.inspector.extend(
            InspectorRecord(
                host=key.host,
                pid=key.pid,
                rank=key.rank,
                ranks=key.ranks,
                comm_id=key.comm_id,
                op=key.op,
                size=key.size,
                count=count,
                mean_time_us=time / count,
                mean_busbw_gb_per_s=busbw / count,
            )
            for key, (count, time, busbw) in self._sums.items()
        )

    def _add(self, record: _Record, op: str, size: int, time_us: float, busbw: float) -> None:
        header, metadata = record.header, record.metadata
        if header.rank < 0 or size < 0:
            return
        self.kinds.add("inspector")
        key = _Key(
            metadata.hostname[:MAX_TEXT],
            str(metadata.pid),
            str(header.id)[:MAX_TEXT],
            op[:MAX_TEXT],
            1 << (size.bit_length() - 1) if size else 0,
            header.rank,
            header.n_ranks,
        )
        if key not in self._sums and len(self._sums) >= MAX_SUMS:
            return
        count, times, rates = self._sums.get(key, (0, 0.0, 0.0))
        self._sums[key] = (count + 1, times + time_us, rates + busbw)
