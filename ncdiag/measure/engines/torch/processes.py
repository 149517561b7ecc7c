"""Which measuring processes run on a host, and what stands in their environment."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ncdiag.cluster.fleet.companion import CompanionSpec
from ncdiag.measure.engines.torch.messages import Backend
from ncdiag.model.host import Nic

# The name begins what an operator reads when one fails: "measuring process was killed".
SHARED_PROCESS = "measuring process"
# Which NIC and which GPU is measured is for the engine to say, whatever a profile holds.
OWN_VARIABLES: Final = frozenset(
    {
        "CUDA_DEVICE_ORDER",
        "CUDA_VISIBLE_DEVICES",
        "NCCL_IB_DISABLE",
        "NCCL_IB_HCA",
        "NCCL_MNNVL_ENABLE",
        "NCCL_NET",
        "NCCL_SOCKET_IFNAME",
    }
)
# Companions with another environment are replaced, also in the middle of something.
GENERATION: Final = "NCDIAG_BENCH_GENERATION"
_MODULE = "ncdiag.measure.engines.torch.child"


def shared_process(variables: Mapping[str, str], generation: int = 0) -> CompanionSpec:
    """The process that measures over gloo on every rail, and says what torch can do here.

    ``variables`` are a profile's. A new ``generation`` takes the place of the one before.
    """
    spec = _spec(SHARED_PROCESS, Backend.GLOO, variables)
    if generation:
        spec = replace(spec, env={**spec.env, GENERATION: str(generation)})
    return spec


def rail_process(name: str, settings: Sequence[str], variables: Mapping[str, str]) -> CompanionSpec:
    """A process that measures over NCCL with a profile's ``variables``.

    ``settings``, each ``NAME=VALUE``, win over them.
    """
    return _spec(name, Backend.NCCL, variables, *settings)


def rail_process_name(nic: Nic) -> str:
    """The name of the process that measures on ``nic``."""
    return f"{SHARED_PROCESS} of {nic.name}"


def nccl_settings(nic: Nic, gpu: int | None, bootstrap_interface: str | None) -> tuple[str, ...]:
    """What makes NCCL use ``nic`` and nothing else, and the GPU next to it.

    A leading ``=`` in a value asks for exactly that device; without it ``mlx5_1`` would also mean
    ``mlx5_10`` (NCCL, parseStringList in src/misc/utils.cc). NCCL reads these once a process.
    """
    settings = {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of nvidia-smi
        "CUDA_VISIBLE_DEVICES": str(gpu or 0),
        # Hosts that share an NVLink domain would not use the network at all.
        "NCCL_MNNVL_ENABLE": "0",
    }
    if nic.hca:
        settings["NCCL_IB_HCA"] = f"={nic.hca}:{nic.hca_port}"
        # Without a fitting device NCCL would fall back to sockets in silence.
        settings["NCCL_NET"] = "IB"
    else:
        settings["NCCL_IB_DISABLE"] = "1"
        settings["NCCL_NET"] = "Socket"
    # Connections are set up over sockets even where the payload is not.
    interface = bootstrap_interface if nic.hca else nic.interface
    if interface:
        settings["NCCL_SOCKET_IFNAME"] = f"={interface}"
    return tuple(f"{name}={value}" for name, value in settings.items())


def _spec(
    name: str, backend: Backend, variables: Mapping[str, str], *settings: str
) -> CompanionSpec:
    """Everybody on the host can read arguments: of ``variables`` only the names stand there."""
    argv = ("python", "-P", "-m", _MODULE, backend.value, *variables, *settings)
    return CompanionSpec(name, argv, dict(variables))
