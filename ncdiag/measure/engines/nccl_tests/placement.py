"""What stands in the environment of each rank, so that a NIC and nothing else is measured."""

from collections.abc import Mapping
from typing import Final

from ncdiag.health.self_report import SelfReport
from ncdiag.measure.engines.torch.processes import OWN_VARIABLES as OWN_OF_RAILS
from ncdiag.measure.engines.torch.processes import nccl_settings
from ncdiag.model.host import Host, Nic

# What is measured is for the engine to say, whatever a profile holds; its log is read by us.
OWN_VARIABLES: Final = OWN_OF_RAILS | {"NCCL_ALGO", "NCCL_DEBUG", "NCCL_DEBUG_FILE"}
# Told in the report, since NCCL_P2P_DISABLE=1 is what others use to force traffic onto the network.
_WHY_NETWORK: Final = (
    "one GPU a host, so that nothing but the network lies between the two ranks; P2P stays on, "
    "since without it traffic inside a host would cross the NIC as well"
)
_FIGURES: Final = {
    "sendrecv": "bus bandwidth, while both hosts send and receive at once",
    "all_reduce": "bus bandwidth around a ring of the two hosts",
    "alltoall": "bus bandwidth, while both hosts send and receive at once",
}


def describe(pair_test: str) -> dict[str, str]:
    """What a report says of how pairs were measured."""
    return {
        "pair test": f"{pair_test}_perf",
        "figure": f"{_FIGURES[pair_test]}; one for both directions",
        "network": _WHY_NETWORK,
    }


def variables_for(report: SelfReport, nic: Nic, pair_test: str) -> dict[str, str]:
    """The variables of the rank that measures ``nic``: the GPU beside it, the NIC, the ring."""
    routed = report.routed_nic.interface if report.routed_nic else None
    settings = nccl_settings(nic, report.nearest_gpu.get(nic.name), routed)
    found = dict(setting.split("=", 1) for setting in settings)
    if pair_test == "all_reduce":
        # Sends and receives, which the others are made of, know no algorithm.
        found["NCCL_ALGO"] = "Ring"
    return found


def rate_gbit_per_s(hosts: Mapping[str, Host], ends: Mapping[str, Nic]) -> float | None:
    """The slower of the line rates of a pair's ends; ``None`` where one is not known."""
    rates = [hosts[name].rate_gbit_per_s or nic.speed_gbit_per_s for name, nic in ends.items()]
    known = [rate for rate in rates if rate]
    return min(known) if len(known) == len(rates) else None
