"""``ncdiag env list`` and ``ncdiag env show``: which profiles there are, and what is in one."""

from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.env.arguments import Inventory, ProfileName, filled
from ncdiag.model.environment import Profile
from ncdiag.model.errors import ExitCode, UsageError
from ncdiag.model.text import visible
from ncdiag.profiles import placeholders, profile_files

Here = Annotated[
    bool,
    typer.Option("--here", help="Fill in what differs from host to host as it is on this one."),
]


def list_all(
    *,
    output_format: options.Format = options.OutputFormat.TEXT,
    no_color: options.NoColor = False,
) -> ExitCode:
    """List the profiles: those that come with ncdiag, and your own.

    Yours lie in $XDG_CONFIG_HOME/ncdiag/profiles (or ~/.config/ncdiag/profiles) and win over those
    of the same name that come with ncdiag. The exit code is 1 when one of them cannot be loaded.
    """
    from ncdiag.report.env import profiles as report

    found: list[Profile] = []
    broken: dict[str, list[str]] = {}
    for name in profile_files.names():
        try:
            found.append(profile_files.load(name))
        except UsageError as why:
            broken.setdefault(f"{why}", []).append(name)
    if output_format is options.OutputFormat.JSON:
        console.write(report.profiles_json(found))
    else:
        report.show_all(found, console.results(no_color=no_color))
    for error, left_out in broken.items():
        message = visible(f"{error} (left out: {', '.join(left_out)})")
        console.messages(no_color=no_color).print(f"ncdiag: {message}", soft_wrap=True)
    return ExitCode.WRONG if broken else ExitCode.DONE


def show(
    name: ProfileName,
    *,
    here: Here = False,
    nodes: Inventory = None,
    output_format: options.Format = options.OutputFormat.TEXT,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Show a profile with all that it extends: every setting, its reason and where it stands."""
    from ncdiag.report.env import profiles as report

    profile = profile_files.load(name)
    placeholders.check(profile)
    if here or nodes is not None:
        profile, _ = filled(profile, nodes)
    if output_format is options.OutputFormat.JSON:
        console.write(report.profile_json(profile))
    else:
        report.show(profile, console.results(no_color=no_color))
    return ExitCode.DONE
