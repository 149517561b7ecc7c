"""``ncdiag env run``: a command with a profile's variables in its environment."""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Annotated, NoReturn

import typer

from ncdiag.cli.env.arguments import ProfileName, filled
from ncdiag.model.environment import Setting
from ncdiag.model.errors import UsageError
from ncdiag.model.text import visible
from ncdiag.profiles import profile_files

Command = Annotated[
    list[str],
    typer.Argument(metavar="-- CMD...", show_default=False, help="The command and its arguments."),
]


def run(name: ProfileName, command: Command) -> NoReturn:
    """Run a command with a profile's variables set, as filled in for this host.

    The profile wins over what is set already. The exit code is the command's; start it on every
    host, as in srun ncdiag env run ib-ndr -- python train.py.
    """
    if command[0] == "--":  # it stands behind the profile, where it is no option's
        command = command[1:]
    if not command:
        raise UsageError("no command to run; write ncdiag env run PROFILE -- CMD...")
    profile, _ = filled(profile_files.load(name), None)
    environment = environment_with(os.environ, profile.settings)
    _give_back_signals()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - that is what it is for
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else f"{error}"
        raise UsageError(f"{visible(command[0])}: it cannot be run: {why}") from None


def environment_with(
    environment: Mapping[str, str], settings: tuple[Setting, ...]
) -> dict[str, str]:
    """``environment`` with ``settings`` made in it."""
    changed = dict(environment)
    for one in settings:
        if one.value is None:
            changed.pop(one.name, None)
        else:
            changed[one.name] = one.value
    return changed


def _give_back_signals() -> None:
    """Undo what Python sets to be ignored, as the command would go on ignoring it."""
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
