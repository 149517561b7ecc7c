"""What a NIC has sent and received, by its own counters."""

from dataclasses import dataclass
from pathlib import Path

from ncdiag.model.host import Nic

# port_xmit_data and port_rcv_data count 32-bit words (IBTA PortCounters; Linux,
# Documentation/ABI/stable/sysfs-class-infiniband).
_IB_WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Counters:
    """Bytes a NIC has sent and received since it came up, headers included."""

    tx_bytes: int
    rx_bytes: int

    def since(self, before: "Counters") -> "Counters":
        """Bytes moved since ``before``; a counter that was reset in between has moved nothing."""
        return Counters(
            max(0, self.tx_bytes - before.tx_bytes), max(0, self.rx_bytes - before.rx_bytes)
        )


def read_counters(nic: Nic, root: Path = Path("/")) -> Counters:
    """Read the counters of the RDMA port if ``nic`` has one, else of its network interface.

    RDMA traffic bypasses the interface's counters, and TCP those of the port. Raises
    :class:`OSError` or :class:`ValueError` where they cannot be read.
    """
    if nic.hca:
        port = root / f"sys/class/infiniband/{nic.hca}/ports/{nic.hca_port}/counters"
        return Counters(
            _number(port / "port_xmit_data") * _IB_WORD_BYTES,
            _number(port / "port_rcv_data") * _IB_WORD_BYTES,
        )
    statistics = root / f"sys/class/net/{nic.interface}/statistics"
    return Counters(_number(statistics / "tx_bytes"), _number(statistics / "rx_bytes"))


def _number(path: Path) -> int:
    return int(path.read_text())
