"""What srun is told of a step, whatever runs in it."""

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Final

from ncdiag.cluster.launcher import LauncherOptions
from ncdiag.cluster.slurm_nodes import JOB_VARIABLE
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

# The kernel takes 128 KiB an argument.
_MAX_ARGUMENT_BYTES = 128_000
_EVERY_STEP: Final = (
    # A mask of the step that we run in ourselves would be inherited, and hold us to one core.
    "--cpu-bind=none",
    # Not what sbatch --export=NONE has left for steps.
    "--export=ALL",
    "--job-name=ncdiag",
)


def missing() -> str | None:
    """Why no step can be started here, with the cure; ``None`` where srun is there."""
    if shutil.which("srun"):
        return None
    return "srun is not installed (on Debian: apt-get install slurm-client)"


def inside_allocation(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether we stand in an allocation that srun can use."""
    return bool(environment.get(JOB_VARIABLE)) and missing() is None


def step_arguments(hosts: Sequence[Host], ranks_per_host: int = 1) -> tuple[str, ...]:
    """The arguments that place a step's tasks host by host, in the order of the hosts.

    Slurm sorts nodes its own way unless it is told each task's. Raises UsageError for more than the
    kernel takes.
    """
    nodes = ",".join(host.name for host in hosts for _ in range(ranks_per_host))
    if len(nodes) > _MAX_ARGUMENT_BYTES:
        raise UsageError(
            f"{len(hosts)} hosts of {ranks_per_host} ranks each are more than one srun can be told "
            "of; give fewer with --nodes"
        )
    return (
        f"--nodes={len(hosts)}",
        f"--ntasks={len(hosts) * ranks_per_host}",
        f"--ntasks-per-node={ranks_per_host}",
        "--distribution=arbitrary",
        f"--nodelist={nodes}",
        *_EVERY_STEP,
    )


def site_arguments(options: LauncherOptions) -> tuple[str, ...]:
    """What the operator has srun told, after our own wishes: of two values it takes the latter."""
    slurm = options.slurm
    image = (f"--container-image={slurm.container_image}",) if slurm.container_image else ()
    return (*image, *slurm.srun_arguments)
