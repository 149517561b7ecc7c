"""Which GPU is next to a NIC, by their ways through PCIe bridges."""

from pathlib import Path

from ncdiag.model.host import Gpu, Nic


def nearest_gpu(nic: Nic, gpus: tuple[Gpu, ...], root: Path = Path("/")) -> int:
    """The index of the GPU that shares most of its way through PCIe bridges with ``nic``; or 0."""

    def shared(gpu: Gpu) -> int:
        ways = [_way(address, root) for address in (nic.pci_address, gpu.pci_address)]
        alike = [one == other for one, other in zip(*ways, strict=False)]
        return alike.index(False) if False in alike else len(alike)

    return max(gpus, key=lambda gpu: (shared(gpu), -gpu.index)).index if gpus else 0


def _way(address: str | None, root: Path) -> tuple[str, ...]:
    return (root / f"sys/bus/pci/devices/{address}").resolve().parts if address else ()
