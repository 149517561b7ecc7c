"""``ncdiag topo``: topology dumps, shown, checked, compared and collected."""

from ncdiag.cli.commands import Lazy, lazy_app

app = lazy_app(
    "topo",
    "Read topology dumps: NCCL, nvidia-smi, ROCm, InfiniBand, Slurm.",
    {
        "show": Lazy("ncdiag.cli.topo.show", "show"),
        "check": Lazy("ncdiag.cli.topo.check", "check"),
        "diff": Lazy("ncdiag.cli.topo.diff", "diff"),
        "capture": Lazy("ncdiag.cli.topo.capture", "capture"),
    },
)

__all__ = ["app"]
