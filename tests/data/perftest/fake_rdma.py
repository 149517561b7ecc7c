"""Mounts a ``/sys/class/infiniband`` with a port for each Ethernet interface, then becomes Python.

Run by ``python_with_rdma`` in a mount namespace of its own; its arguments are Python's.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

CLASS = Path("/sys/class")


def mount_ports() -> None:
    """Cover ``/sys/class`` with a folder that has ``net`` as it was, and RDMA ports."""
    interfaces = sorted(path.name for path in (CLASS / "net").glob("eth*"))
    with tempfile.TemporaryDirectory() as folder:
        mount("--bind", str(CLASS / "net"), folder)
        mount("-t", "tmpfs", "rdma", str(CLASS))
        (CLASS / "net").mkdir()
        mount("--move", folder, str(CLASS / "net"))
    for number, interface in enumerate(interfaces):
        make_port(CLASS / f"infiniband/mlx5_{number}/ports/1", interface)


def make_port(port: Path, interface: str) -> None:
    """What the kernel says of a RoCE port, as far as anybody asks."""
    statistics = CLASS / "net" / interface / "statistics"
    files = {
        "state": "4: ACTIVE",
        "link_layer": "Ethernet",
        "rate": "100 Gb/sec (4X EDR)",
        "gid_attrs/ndevs/0": interface,
        "counters/port_xmit_data": int((statistics / "tx_bytes").read_text()) // 4,
        "counters/port_rcv_data": int((statistics / "rx_bytes").read_text()) // 4,
    }
    for name, content in files.items():
        file = port / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")


def mount(*arguments: str) -> None:
    """Mount something, or fail."""
    subprocess.run(["mount", *arguments], check=True)


if __name__ == "__main__":
    mount_ports()
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])  # noqa: S606 - its own interpreter
