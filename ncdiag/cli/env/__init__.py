"""``ncdiag env``: profiles of NCCL's environment variables, checked, written out, proved."""

import typer

from ncdiag.cli.env.audit import audit
from ncdiag.cli.env.diff import diff
from ncdiag.cli.env.export import export
from ncdiag.cli.env.lint import lint
from ncdiag.cli.env.run import run
from ncdiag.cli.env.show import list_all, show

app = typer.Typer(
    name="env",
    rich_markup_mode="markdown",  # rich's own markup would swallow gpu[001-008]
    no_args_is_help=False,
    help="Keep NCCL's environment variables under control: profiles, lint, audit.",
)
app.command("list")(list_all)
app.command()(show)
app.command()(diff)
app.command()(lint)
app.command()(export)
app.command(
    # What follows the profile is the command, with options of its own.
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True}
)(run)
app.command()(audit)

__all__ = ["app"]
