"""Slurm's srun: one step inside the allocation around us, whose tasks are all the hosts."""

import os
from collections.abc import Sequence
from typing import Final

from ncdiag.cluster import slurm_step
from ncdiag.cluster.launch import telling
from ncdiag.cluster.launcher import Launch, LauncherOptions, RemoteJob, StartEnds
from ncdiag.cluster.slurm_nodes import JOB_VARIABLE, NodeState, allocated_nodes, node_states
from ncdiag.cluster.slurm_step import site_arguments, step_arguments
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host
from ncdiag.model.nodes import fold

# Set by ncdiag for what runs in an allocation that ncdiag has asked for: a file to make there.
OWN_ALLOCATION: Final = "NCDIAG_OWN_ALLOCATION"
# What slurmstepd puts before each line of a task; a task is a host, in the order of the hosts.
TASK_LABEL: Final = r"^\s*(?P<index>\d+): "

_STEP: Final = (
    # Beside the job's other steps: a user mostly has a shell as a step of its own.
    "--overlap",
    # A node that dies, and a task that ends, cost only themselves. WaitTime is the site's.
    "--no-kill",
    "--kill-on-bad-exit=0",
    "--wait=0",
)
# A worker is no MPI program, its input goes to all, and each says which one it is.
_FLEET: Final = ("--mpi=none", "--input=all", "--label")


class SlurmLauncher:
    """Starts the job by one srun over all hosts."""

    name = "slurm"
    start_ends = StartEnds.CONNECTED
    starts_at_a_time = 1

    def __init__(self, options: LauncherOptions) -> None:
        self.options = options
        for argument in options.slurm.srun_arguments:
            if not argument.startswith("-") or argument in {"-", "--"}:
                raise UsageError(
                    f"not an option of srun: {argument!r} (examples: --srun-arg=--gres=gpu:8, "
                    "--srun-arg=-Aname)"
                )

    def unavailable(self) -> str | None:
        """Srun has to be installed; where no allocation is, one is asked for."""
        return slurm_step.missing()

    def launches(self, hosts: Sequence[Host], job: RemoteJob) -> list[Launch]:
        """One step, and for each node that Slurm knows cannot take part, one that tells why.

        Raises UsageError where hosts are not in the allocation around us.
        """
        lost = unusable(hosts)
        able = [host for host in hosts if host.name not in lost]
        launches = [telling(name, why) for name, why in lost.items()]
        if able:
            launches.append(
                Launch(
                    argv=(
                        "srun",
                        *_STEP,
                        *step_arguments(able),
                        *site_arguments(self.options),
                        *_FLEET,
                        *job.command(self.options, "--host-from", "SLURMD_NODENAME"),
                    ),
                    hosts=tuple(host.name for host in able),
                    stdin=job.stdin,
                    label=TASK_LABEL,
                )
            )
        return launches


def unusable(hosts: Sequence[Host]) -> dict[str, str]:
    """The hosts that no step can have now, with Slurm's reason.

    Raises UsageError for those that are outside the allocation for no reason of Slurm's.
    """
    inside = allocated_nodes()
    if inside is None:
        return {}
    states = node_states(host.name for host in hosts)
    lost, outside = {}, []
    for host in hosts:
        state = states.get(host.name)
        if host.name in inside:
            if state and state.cannot_run:
                lost[host.name] = str(state)
        elif reason := _why_outside(state):
            lost[host.name] = reason
        else:
            outside.append(host.name)
    if outside:
        raise UsageError(
            f"not in the Slurm allocation {os.environ[JOB_VARIABLE]} ({fold(inside)}): "
            f"{fold(outside)}; make one that has them (salloc --nodelist), or begin anew without "
            "--nodes to take the whole of this one"
        )
    return lost


def _why_outside(state: NodeState | None) -> str | None:
    if state and state.not_allocated:
        return str(state)
    if os.environ.get(OWN_ALLOCATION):
        return f"not allocated; {state}" if state else "not allocated: Slurm knows no such node"
    return None
