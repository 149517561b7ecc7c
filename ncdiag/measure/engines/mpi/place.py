"""Which NIC each rank measures on, and what stands in its environment so that MPI uses no other.

Transports read their NIC once, when MPI starts, and insist on reaching every other rank by it: so
each rail has a job of its own. A rank knows its place by its number alone, as ranks go in the order
of the hosts, and sets its own variables before it loads MPI.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ncdiag.model.host import Nic

# Which NIC and which transport is measured is for the engine to say, whatever a profile holds.
OWN_VARIABLES: Final = frozenset(
    {
        "CUDA_DEVICE_ORDER",
        "CUDA_VISIBLE_DEVICES",
        "FI_PROVIDER",
        "FI_TCP_IFACE",
        "FI_VERBS_DEVICE_NAME",
        "MPIR_CVAR_CH4_NETMOD",
        "MPIR_CVAR_NOLOCAL",
        "OMPI_MCA_btl",
        "OMPI_MCA_btl_tcp_if_include",
        "OMPI_MCA_pml",
        "UCX_NET_DEVICES",
        "UCX_TLS",
    }
)
# Devices as the argument names them: eth0, mlx5_0:1, and the GPU beside it after an @.
_PLACE = re.compile(r"(?P<device>[\w.\-]+)(?P<port>:\d+)?(?:@(?P<gpu>\d+))?", re.ASCII)
# UCX reaches nobody by it, where libfabric does: this machine's loopback addresses as hosts.
_LOOPBACK = "lo"


@dataclass(frozen=True, slots=True)
class Place:
    """The NIC of a rank, by the name that UCX gives it, and the GPU next to it."""

    device: str
    gpu: int | None = None

    @property
    def is_rdma(self) -> bool:
        """UCX names RDMA ports with their number, interfaces without."""
        return ":" in self.device

    @property
    def interface(self) -> str:
        """The device without its port."""
        return self.device.partition(":")[0]


def place_on(nic: Nic, gpu: int | None) -> Place:
    """The place of a rank that measures on ``nic``."""
    device = f"{nic.hca}:{nic.hca_port}" if nic.hca else nic.interface or nic.name
    return Place(device, gpu)


def describe(places: Iterable[Place]) -> tuple[str, ...]:
    """The arguments that tell every rank its place: places alike, one after the other, are one."""
    return tuple(f"{len(list(alike))}*{word}" for word, alike in groupby(map(_word, places)))


def find_place(rank: int, described: Sequence[str]) -> Place:
    """The place of ``rank``; raises ValueError."""
    for text in described:
        count, _, word = text.partition("*")
        if rank < int(count):
            return _read(word)
        rank -= int(count)
    raise ValueError("more ranks were started than there are places")


def _word(place: Place) -> str:
    return place.device if place.gpu is None else f"{place.device}@{place.gpu}"


def _read(word: str) -> Place:
    match = _PLACE.fullmatch(word)
    if not match:
        raise ValueError(f"{word!r} is no place")
    gpu = None if match["gpu"] is None else int(match["gpu"])
    return Place(match["device"] + (match["port"] or ""), gpu)


def variables_of(place: Place) -> Mapping[str, str]:
    """What keeps UCX, libfabric and Open MPI's own TCP to the NIC of ``place``.

    Left to themselves they use shared memory where two hosts share a kernel, and whichever NIC
    they like best. Each library reads its own and ignores the rest.
    """
    found = {"MPIR_CVAR_NOLOCAL": "1", "UCX_NET_DEVICES": place.device}
    if place.gpu is not None:
        found |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(place.gpu)}
    if place.is_rdma:
        return found | {
            # The copies between GPU and host memory carry nothing to another host.
            "UCX_TLS": "rc,ud,dc,self,cuda_copy,gdr_copy",
            "OMPI_MCA_pml": "ucx",
            "FI_PROVIDER": "verbs;ofi_rxm",
            "FI_VERBS_DEVICE_NAME": place.interface,
        }
    if place.device == _LOOPBACK:
        found["MPIR_CVAR_CH4_NETMOD"] = "ofi"
    return found | {
        "UCX_TLS": "tcp,self",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_btl_tcp_if_include": place.device,
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": place.device,
    }
