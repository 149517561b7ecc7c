"""What kinds of log an input holds, told by lines that need not say anything else."""

from collections.abc import Sequence

from ncdiag.model.log import LogEvidence
from ncdiag.read.line import Line

_ORIGINS = frozenset({"kernel", "fabric-manager", "torch", "elastic", "slurm", "mpi", "ray"})

# Text by which a line without a telling wrapper is known.
_SPOKEN = {
    "NVRM: ": "kernel",
    "nvidia-nvswitch": "kernel",
    "mlx5_core ": "kernel",
    "pcieport ": "kernel",
    "Linux version ": "kernel",
    "invoked oom-killer": "kernel",
    "multicast team": "fabric-manager",
    "NVSwitch pci bus id": "fabric-manager",
    "Fabric Manager version": "fabric-manager",
    "ProcessGroupNCCL": "torch",
    "torch.OutOfMemoryError": "torch",
    "torch.cuda.OutOfMemoryError": "torch",
    "torch.distributed.Dist": "torch",
    "torch.AcceleratorError": "torch",
    "torch/distributed/elastic": "elastic",
    "torch.distributed.elastic": "elastic",
    "slurmstepd: ": "slurm",
    "srun: ": "slurm",
    "mpirun noticed": "mpi",
    "mpirun detected": "mpi",
    "prterun noticed": "mpi",
    "prterun detected": "mpi",
    "PRTE ": "mpi",
    "ORTE ": "mpi",
    "(raylet": "ray",
}
# Text that wrappers hold, whose meaning is known once they are off.
_WRAPPED = ("kernel: ", "kern  :", "[tid ", "<stdout>:", "<stderr>:", "mpirun: ", "pid=", ".cpp:")


class KindReader:
    """Notes the kinds of the lines it is shown; it asks for facts only."""

    needles: frozenset[bytes] = frozenset()
    facts = frozenset(text.encode() for text in (*_SPOKEN, *_WRAPPED))

    def __init__(self) -> None:
        self.kinds: set[str] = set()

    @property
    def open(self) -> bool:
        """Every line tells for itself."""
        return False

    @property
    def learned(self) -> int:
        """How many kinds were found."""
        return len(self.kinds)

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Note the kind of a line."""
        if line.origin in _ORIGINS:
            self.kinds.add(line.origin)
        if line.level is not None:
            return
        for hit in hits:
            kind = _SPOKEN.get(hit.decode(errors="replace"))
            if kind and kind not in self.kinds and hit.decode() in line.text:
                self.kinds.add(kind)

    def finish(self, evidence: LogEvidence) -> None:
        """Kinds are asked for; nothing else was found."""
