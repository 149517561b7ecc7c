"""A flight recorder's dump as it lies in a file."""

import re

import msgspec

from ncdiag.model.log import LogEvidence
from ncdiag.read.bounded_bytes import BoundedBytes
from ncdiag.read.flight import pickled, schema

# 20,000 entries with their frames are about 20 MB.
MAX_BYTES = 64 << 20
# Commas and brackets bound how many values a JSON text can hold.
MAX_JSON_VALUES = 8_000_000

# Protocols 2 to 5, and 0 and 1, which begin with a dictionary.
_PICKLE = re.compile(rb"\x80[\x02-\x05]|\((?:d|\))|\}")
_KEYS = re.compile(
    rb"pg_config|pg_status|nccl_comm_state|comm_lib_version|nccl_version|collective_seq_id"
    rb"|profiling_name|record_id"
)
_JSON = re.compile(rb"\s*\{")
_JSON_KEYS = re.compile(
    rb'"(?:pg_config|pg_status|comm_lib_version|collective_seq_id|profiling_name|nccl_comm_state)"'
)


class FlightDocument:
    """Reads a dump, pickle or JSON, of one rank."""

    kind = "flight-recorder"

    def __init__(self, path: str) -> None:
        self.error: str | None = None
        self._path = path
        self._pieces = BoundedBytes(MAX_BYTES)

    @property
    def truncated(self) -> bool:
        """Whether the file is larger than is read."""
        return self._pieces.too_large

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Whether a file that begins with ``head`` is a dump."""
        if _JSON.match(head):
            return bool(_JSON_KEYS.search(head))
        # Pickles are of many programs: a recorder's begins with its version or its groups.
        return bool(_PICKLE.match(head) and _KEYS.search(head))

    def feed(self, chunk: bytes) -> None:
        """Keep the next bytes, up to the limit."""
        self._pieces.add(chunk)

    def finish(self, evidence: LogEvidence) -> None:
        """Add the dump to ``evidence``, or say in ``error`` why not."""
        if self._pieces.too_large:
            self.error = f"flight-recorder dump of more than {MAX_BYTES >> 20} MiB: not read"
            return
        try:
            evidence.dumps.append(schema.flight_dump(_values(self._pieces.whole()), self._path))
        except (pickled.PickleError, schema.SchemaError) as error:
            self.error = f"flight-recorder dump cannot be read: {error}"


def _values(data: bytes) -> object:
    if not _JSON.match(data):
        return pickled.load(data)
    if sum(data.count(mark) for mark in (b",", b"[", b"{")) > MAX_JSON_VALUES:
        raise schema.SchemaError(f"the JSON holds more than {MAX_JSON_VALUES} values")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise schema.SchemaError(f"the JSON is damaged: {error}") from None
