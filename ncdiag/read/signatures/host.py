"""Rows for settings of the host that the library warns about, and the tests' own time limit."""

from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Severity
from ncdiag.read.signatures.fragments import TOLD, caution, signature
from ncdiag.read.signatures.row import OUTSIDE

_HOST = (
    caution(
        "host-kernel-parameter",
        C.HOST_CONFIG_WARNING,
        "from kernel command line",
        r'Missing "(?P<setting>[^"\n]{1,80})" from kernel command line',
        sample='Missing "amd_iommu=on" from kernel command line which can lead to system '
        "instablity "
        "or hang!",
        near_miss="Kernel command line: iommu=pt",
        source="RCCL init.cc",
    ),
    caution(
        "host-environment",
        C.HOST_CONFIG_WARNING,
        "from environment which can lead",
        r'Missing "(?P<setting>[^"\n]{1,80})" from environment which can lead',
        sample='Missing "HSA_FORCE_FINE_GRAIN_PCIE=1" from environment which can lead to low RCCL '
        "performance, system instablity or hang!",
        near_miss="HSA_FORCE_FINE_GRAIN_PCIE set by environment to 1.",
        source="RCCL init.cc",
    ),
    caution(
        "host-numa-balancing",
        C.HOST_CONFIG_WARNING,
        "NUMA auto balancing enabled",
        r"(?P<setting>NUMA auto balancing) enabled",
        sample="NUMA auto balancing enabled which can lead to variability in the RCCL performance! "
        'Disable by "sudo sysctl kernel.numa_balancing=0"',
        near_miss="NUMA auto balancing disabled",
        source="RCCL init.cc",
    ),
    caution(
        "host-acs",
        C.HOST_CONFIG_WARNING,
        "ACS",
        r"\b(?:PCIe? )?(?P<setting>ACS|Access Control Services)\b[^\n]{0,40}\b(?:is|are) "
        r"(?:enabled|on)\b"
        r"(?! which would)",
        sample="PCI ACS is enabled on 0000:3a:00.0: GPU Direct RDMA will be slow",
        near_miss="HINT: In many cases this error occurs when ACS is enabled which would break GPU "
        "Direct RDMA protocol.",
        source="plug-ins and programs that check the host",
        levels=TOLD,
        further=("Access Control Services",),
    ),
    caution(
        "host-relaxed-ordering",
        C.HOST_CONFIG_WARNING,
        "elaxed ordering",
        r"(?P<setting>[Rr]elaxed [Oo]rdering)\b[^\n]{0,60}\b(?:disabled|not (?:enabled|supported))",
        sample="NET/IB : Relaxed ordering is not supported on mlx5_0: expect low bandwidth",
        near_miss="NCCL_IB_PCI_RELAXED_ORDERING set by environment to 1.",
        source="transport/net_ib.cc, plug-ins",
        further=("elaxed Ordering",),
    ),
    caution(
        "host-flid",
        C.HOST_CONFIG_WARNING,
        "remote FLID configured as zero",
        r"remote (?P<setting>FLID) configured as zero",
        sample="Warning: remote FLID configured as zero even when endpoints are on different "
        "subnets, using dlid as fallback",
        near_miss="remote FLID 77",
        source="transport/net_ib.cc",
    ),
    caution(
        "host-gid-table",
        C.HOST_CONFIG_WARNING,
        "GID table changed",
        r"(?P<setting>GID table) changed",
        sample="NET/IB : mlx5_3:1 GID table changed",
        near_miss="NET/IB : mlx5_3:1 GID table read",
        source="transport/net_ib.cc",
        versions="2.23.4 and later",
        severity=Severity.INFO,
    ),
    caution(
        "host-net-devices",
        C.HOST_CONFIG_WARNING,
        "Detected mixed local ",
        r"Detected mixed local (?P<setting>(?:Net|CollNet) device counts) across ranks "
        r"\(min (?P<d_min>\d{1,4}), max (?P<d_max>\d{1,4})\)\. Ignoring",
        sample="Detected mixed local Net device counts across ranks (min 3, max 4). Ignoring due "
        "to "
        "NCCL_IGNORE_NET_MISMATCH.",
        near_miss="Local Net device counts across ranks: min 4 max 4",
        source="init.cc",
        versions="2.30 and later",
        levels=TOLD,
    ),
)

_TESTS = (
    signature(
        "tests-timeout",
        C.HANG_MID_RUN,
        "Test timeout (",
        r"Test timeout \((?P<d_timeout_s>\d{1,9})s\)",
        sample="node7: Test timeout (120s) common.cu:612",
        near_miss="timeout: 120",
        source="nccl-tests src/common.cu",
        versions="2.13.4 and later",
        levels=OUTSIDE,
    ),
)

ROWS = (*_HOST, *_TESTS)
