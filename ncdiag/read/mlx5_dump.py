"""Failed completions as the adapter's own library prints them, in words of the hardware.

    mlx5: node7: got completion with error:
    00000000 00000000 00000000 00000000
    00000000 00000000 00000000 00000000
    00000000 00000000 00000000 00000000
    00000000 00008813 08002a11 0001c5d2

The last line holds the vendor's code and the syndrome. Collectors drop lines that repeat, so
lines are told by what they hold and not counted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.model.log import Event, LogEvidence, Speaker
from ncdiag.read.events import EventLog
from ncdiag.read.line import Line

_HEAD = re.compile(r"\bmlx5: (?P<host>[^\s:]{1,256}): got completion with error:")
# The opcode in the last byte is that of a failed request (d) or response (e).
_TELLING = re.compile(
    r"^\s{0,8}0{8} [0-9a-f]{4}(?P<vendor>[0-9a-f]{2})(?P<syndrome>[0-9a-f]{2}) [0-9a-f]{8} "
    r"[0-9a-f]{6}[de][0-9a-f]\s{0,8}$"
)
# MLX5_CQE_SYNDROME_* of rdma-core providers/mlx5, and the status of <infiniband/verbs.h>.
STATUS_OF_SYNDROME = {
    0x01: 1,
    0x02: 2,
    0x04: 4,
    0x05: 5,
    0x06: 6,
    0x10: 7,
    0x11: 8,
    0x12: 9,
    0x13: 10,
    0x14: 11,
    0x15: 12,
    0x16: 13,
    0x22: 16,
}
FLUSHED = 5
_PATIENCE = 24
_MOST = 1024


@dataclass(slots=True)
class _Dump:
    """A head whose words have not come yet."""

    head: Line
    host: str
    age: int = 0


class Mlx5DumpReader:
    """Reads completion dumps of libmlx5."""

    needles = frozenset({b"got completion with error:"})
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self._dumps: dict[Speaker, _Dump] = {}
        self._events = EventLog()

    @property
    def open(self) -> bool:
        """Whether a dump has not come to its end."""
        return bool(self._dumps)

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take the head of a dump or one of its lines."""
        del hits
        if head := _HEAD.search(line.text):
            if len(self._dumps) < _MOST:
                self._dumps[line.speaker] = _Dump(line, head["host"])
            return
        dump = self._dumps.get(line.speaker)
        told = _TELLING.search(line.text) if dump else None
        if dump and told:
            del self._dumps[line.speaker]
            self._add(dump, int(told["syndrome"], 16), int(told["vendor"], 16), line)
        self._age()

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the events; a dump without its last line tells nothing."""
        evidence.events.extend(self._events.all())

    def _add(self, dump: _Dump, syndrome: int, vendor: int, line: Line) -> None:
        status = STATUS_OF_SYNDROME.get(syndrome)
        if status is None:
            return
        flushed = status == FLUSHED
        class_ = FindingClass.IB_FLUSH_ERROR if flushed else FindingClass.IB_COMPLETION_ERROR
        self._events.add(
            Event(
                class_name=class_,
                form="mlx5-dump",
                place=dump.head.place,
                text=dump.head.shown or dump.head.text,
                speaker=dump.head.speaker._replace(host=dump.host),
                attributes={"status": str(status), "vendor_err": str(vendor)},
                role=Role.CONSEQUENCE if flushed else None,
                severity=Severity.INFO if flushed else None,
                count=1 + line.repeats,
            )
        )

    def _age(self) -> None:
        for speaker in list(self._dumps):
            dump = self._dumps[speaker]
            dump.age += 1
            if dump.age > _PATIENCE:
                del self._dumps[speaker]
