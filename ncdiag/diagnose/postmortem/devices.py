"""Names of devices that mean one device."""

import re
from collections.abc import Iterable, Iterator

from ncdiag.model.log import LogEvidence

_FUNCTION_0 = re.compile(r"\.0\Z")
_DOMAIN = re.compile(r"\A(?:0000)?0000:|\A(?=[0-9a-f]{2}:[0-9a-f]{2}(?:\.|\Z))", re.IGNORECASE)
_NAMESPACE = re.compile(r"\A(nvme\d+)n\d+(?:p\d+)?\Z")
_BUS_ID = re.compile(r"\A[0-9a-f]{3,9}\Z", re.IGNORECASE)


def canonical(name: str) -> str:
    """One name for a device: ``0000:43:00.0`` is ``0000:43:00``, ``nvme2n1`` is ``nvme2``."""
    disk = _NAMESPACE.match(name)
    if disk:
        return disk[1]
    if ":" not in name:
        return name
    return _FUNCTION_0.sub("", _DOMAIN.sub("0000:", name)).lower()


def each_once(names: Iterable[str]) -> list[str]:
    """Every device once, by the name that comes first."""
    known: dict[str, str] = {}
    for name in names:
        known.setdefault(canonical(name), name)
    return list(known.values())


def gpus_of(evidence: LogEvidence) -> set[str]:
    """The PCI addresses at which GPUs are known to be."""
    return {canonical(address) for address in _addresses(evidence)}


def _addresses(evidence: LogEvidence) -> Iterator[str]:
    for event in evidence.events:
        if "xid" in event.attributes and "pci" in event.attributes:
            yield event.attributes["pci"]
    for process in evidence.processes:
        yield from (_address(c.bus_id) for c in process.communicators if c.bus_id)
    for benchmark in evidence.benchmarks:
        yield from (_address(rank.bus_id) for rank in benchmark.ranks)


def _address(bus_id: str) -> str:
    """A ``busId`` of the library (``43000``) as a PCI address; anything else as it is."""
    if not _BUS_ID.match(bus_id):
        return bus_id
    number = int(bus_id, 16)
    return f"{number >> 20:04x}:{number >> 12 & 0xFF:02x}:{number >> 4 & 0xFF:02x}"
