"""``ncdiag topo``: topology dumps, shown, checked, compared and collected."""

import typer

from ncdiag.cli.topo.capture import capture
from ncdiag.cli.topo.check import check
from ncdiag.cli.topo.diff import diff
from ncdiag.cli.topo.show import show

app = typer.Typer(
    name="topo",
    rich_markup_mode="markdown",  # rich's own markup would swallow gpu[001-008]
    no_args_is_help=False,
    help="Read topology dumps: NCCL, nvidia-smi, ROCm, InfiniBand, Slurm.",
)
app.command()(show)
app.command()(check)
app.command()(diff)
app.command()(capture)

__all__ = ["app"]
