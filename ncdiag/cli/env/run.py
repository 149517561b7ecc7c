"""``ncdiag env run``: a command with a profile's variables in its environment."""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        with _signals_given_back():
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


@contextmanager
def _signals_given_back() -> Iterator[None]:
    """Undo what Python sets to be ignored, as the command would go on ignoring it."""
    numbers = (signal.SIGPIPE, signal.SIGXFSZ)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
