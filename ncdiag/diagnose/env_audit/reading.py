"""When NCCL reads a variable: only a rank that came to that point can be silent about it.

NCCL reads most variables when it first needs them: a rank that never connects to a NIC never reads
how that is done, and prints nothing of it though it is set. Only what stands here can be missed;
whatever else some ranks print and others do not is undecided. By the source of NCCL 2.18 to 2.30.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ncdiag.model.log import NcclProcess

_IB: Final = "NET/IB"

# Every rank reads these while it starts a communicator, on whatever hardware (src/init.cc,
# src/bootstrap.cc, src/misc/socket.cc, src/plugin, src/graph).
_AT_THE_START: Final = frozenset(
    {
        "NCCL_ALGO",
        "NCCL_BUFFSIZE",
        "NCCL_COMM_BLOCKING",
        "NCCL_CROSS_NIC",
        "NCCL_CUMEM_ENABLE",
        "NCCL_DMABUF_ENABLE",
        "NCCL_GDRCOPY_ENABLE",
        "NCCL_GRAPH_FILE",
        "NCCL_IGNORE_CPU_AFFINITY",
        "NCCL_LL128_BUFFSIZE",
        "NCCL_LL128_NTHREADS",
        "NCCL_LL_BUFFSIZE",
        "NCCL_MAX_CTAS",
        "NCCL_MAX_NCHANNELS",
        "NCCL_MAX_NRINGS",
        "NCCL_MIN_CTAS",
        "NCCL_MIN_NCHANNELS",
        "NCCL_MIN_NRINGS",
        "NCCL_NET",
        "NCCL_NET_PLUGIN",
        "NCCL_NTHREADS",
        "NCCL_NVLS_ENABLE",
        "NCCL_OOB_NET_ENABLE",
        "NCCL_P2P_DISABLE",
        "NCCL_PROFILER_PLUGIN",
        "NCCL_PROTO",
        "NCCL_RAS_ENABLE",
        "NCCL_SOCKET_FAMILY",
        "NCCL_SOCKET_IFNAME",
        "NCCL_TOPO_FILE",
        "NCCL_TUNER_PLUGIN",
    }
)
# Read at the start too, unless P2P is off (src/graph/paths.cc).
_WITH_P2P: Final = frozenset({"NCCL_P2P_LEVEL"})
# Read when the devices of InfiniBand and RoCE are looked for (src/transport/net_ib/init.cc).
_WITH_IB_DEVICES: Final = frozenset(
    {
        "NCCL_IB_ADAPTIVE_ROUTING",
        "NCCL_IB_DISABLE",
        "NCCL_IB_HCA",
        "NCCL_IB_MERGE_NICS",
        "NCCL_IB_MERGE_VFS",
        "NCCL_IB_PCI_RELAXED_ORDERING",
    }
)
# Read at both ends of a connection by InfiniBand or RoCE (src/transport/net_ib/connect.cc).
_WITH_IB_CONNECTIONS: Final = frozenset(
    {
        "NCCL_IB_GID_INDEX",
        "NCCL_IB_PKEY",
        "NCCL_IB_QPS_PER_CONNECTION",
        "NCCL_IB_RETRY_CNT",
        "NCCL_IB_TIMEOUT",
    }
)
# Read by one end alone, or once bytes are sent (same folder): no line tells who has to read these,
# but who prints one has connected.
_AFTER_IB_CONNECTIONS: Final = frozenset(
    {
        "NCCL_IB_AR_THRESHOLD",
        "NCCL_IB_ECE_ENABLE",
        "NCCL_IB_FIFO_TC",
        "NCCL_IB_SL",
        "NCCL_IB_SPLIT_DATA_ON_QPS",
        "NCCL_IB_TC",
        "NCCL_IB_USE_INLINE",
    }
)
# Read for each pair that has no P2P (src/transport/shm.cc).
_WITHOUT_P2P: Final = frozenset({"NCCL_SHM_DISABLE"})
_CONNECTED_BY_IB: Final = _WITH_IB_CONNECTIONS | _AFTER_IB_CONNECTIONS


def comes_to_read(process: NcclProcess, name: str) -> bool:
    """Whether the process, once started up, would have read and printed the variable."""
    if name in _AT_THE_START:
        return True
    trigger = next((needs for names, needs in _TRIGGERS.items() if name in names), None)
    return trigger is not None and trigger(process)


def _may_use_p2p(process: NcclProcess) -> bool:
    return "NCCL_P2P_DISABLE" not in process.environment


def _has_ib_devices(process: NcclProcess) -> bool:
    if process.networks:
        return any(name.upper().startswith("IB") for name in process.networks)
    return (
        _tells_of(process, _WITH_IB_DEVICES)
        or _tells_of(process, _CONNECTED_BY_IB)
        or _has_channels(process, _IB)
    )


def _has_ib_connections(process: NcclProcess) -> bool:
    """Whether it connected to a NIC itself: with PXN another process may have, in its place."""
    if _tells_of(process, _CONNECTED_BY_IB):
        return True
    connected = process.connected is not None and process.pxn is not True
    return connected and _has_channels(process, _IB)


def _tells_of(process: NcclProcess, names: frozenset[str]) -> bool:
    return not names.isdisjoint(process.environment) or not names.isdisjoint(process.defaulted)


def _lacks_p2p(process: NcclProcess) -> bool:
    return _has_channels(process, "SHM") or _has_channels(process, "NET/")


def _has_channels(process: NcclProcess, head: str) -> bool:
    return any(name.startswith(head) for name in process.transports)


_TRIGGERS: Final[Mapping[frozenset[str], Callable[[NcclProcess], bool]]] = {
    _WITH_P2P: _may_use_p2p,
    _WITH_IB_DEVICES: _has_ib_devices,
    _WITH_IB_CONNECTIONS: _has_ib_connections,
    _WITHOUT_P2P: _lacks_p2p,
}
