"""``ncdiag env export``: a profile as a shell, a launcher or a container reads it."""

from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.env.arguments import OUTPUT, Inventory, ProfileName, filled
from ncdiag.model.errors import ExitCode
from ncdiag.model.text import visible
from ncdiag.profiles import profile_files
from ncdiag.profiles.export import Target
from ncdiag.profiles.export import export as export_profile

To = Annotated[
    Target,
    typer.Option("--to", rich_help_panel=OUTPUT, help="What is to read it."),
]


def export(
    name: ProfileName,
    *,
    to: To = Target.SH,
    nodes: Inventory = None,
    quiet: options.Quiet = False,
) -> ExitCode:
    """Write a profile for a shell, Slurm, MPI launchers, Docker, Kubernetes or NCCL itself.

    What differs from host to host is filled in for this host, or by --nodes for those that have
    the same NICs. What the format cannot say goes to stderr.
    """
    profile, host = filled(profile_files.load(name), nodes)
    exported = export_profile(profile, to)
    messages = console.messages(quiet=quiet)
    for note in exported.notes:
        messages.print(f"ncdiag: {visible(note)}", soft_wrap=True)
    if host is not None:
        messages.print(f"ncdiag: filled in for {visible(host.host)}", soft_wrap=True)
    console.write(exported.text.encode())
    return ExitCode.DONE
