"""One list of GPUs out of what several sources tell of the same ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from ncdiag.model.health import GpuHealth, Source

_Record = TypeVar("_Record")
# Who is believed first. What the driver says counts most; what others add fills gaps.
_BELIEVED: Final = (Source.NVML, Source.NVIDIA_SMI, Source.DCGM)
# Whose GPUs are of another maker, with numbers of their own.
_APART: Final = Source.ROCM_SMI
# All that is asked of a lost GPU is which one it is: what others remember of it is from before.
_IDENTITY: Final = ("uuid", "name", "pci_address", "serial", "vbios", "incidents", "last_xid")


def merge(by_source: Mapping[Source, Sequence[GpuHealth]]) -> tuple[GpuHealth, ...]:
    """The GPUs of one host, in the order of their numbers.

    A source joins by uuid, else by PCI address, else by number. The first that told of its GPUs
    has listed them, and others add none: DCGM remembers GPUs that are gone.
    """
    merged: list[GpuHealth] = []
    listed = next((source for source in _BELIEVED if source in by_source), None)
    for source in _BELIEVED:
        for gpu in by_source.get(source, ()):
            at = None if source is listed else _place(merged, gpu)
            if at is not None:
                merged[at] = _joined(merged[at], gpu)
            elif source is listed:
                merged.append(gpu)
    merged.sort(key=lambda gpu: gpu.index)
    return (*merged, *sorted(by_source.get(_APART, ()), key=lambda gpu: gpu.index))


def filled(first: _Record, second: _Record, names: Iterable[str] | None = None) -> _Record:
    """``first`` with what it does not know from ``second``, records within them likewise."""
    changes: dict[str, Any] = {}
    for name in names or [one.name for one in fields(first)]:  # type: ignore[arg-type]
        known, other = getattr(first, name), getattr(second, name)
        if known is None:
            changes[name] = other
        elif is_dataclass(known) and is_dataclass(other):
            changes[name] = filled(known, other)
    return replace(first, **changes)  # type: ignore[type-var]


def _joined(first: GpuHealth, second: GpuHealth) -> GpuHealth:
    if not first.lost and not second.lost:
        return filled(first, second)
    reason = first.reason if first.lost else second.reason
    return replace(filled(first, second, _IDENTITY), lost=True, reason=reason)


def _place(gpus: Sequence[GpuHealth], wanted: GpuHealth) -> int | None:
    """Where the same GPU stands; its number decides only where nothing else tells them apart."""
    for name in ("uuid", "pci_address"):
        value = getattr(wanted, name)
        for at, gpu in enumerate(gpus):
            if value is not None and getattr(gpu, name) == value:
                return at
    nameless = [at for at, gpu in enumerate(gpus) if gpu.lost and not (gpu.uuid or gpu.pci_address)]
    if wanted.lost and len(nameless) == 1:
        # nvidia-smi gives the address of a GPU that is lost, NVML its number.
        return nameless[0]
    for at, gpu in enumerate(gpus):
        if gpu.index == wanted.index and not _differ(gpu, wanted):
            return at
    return None


def _differ(first: GpuHealth, second: GpuHealth) -> bool:
    pairs = ((first.uuid, second.uuid), (first.pci_address, second.pci_address))
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)
