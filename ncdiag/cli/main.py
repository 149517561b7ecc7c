"""The ``ncdiag`` command: its commands, its errors and its exit codes.

``run`` is the only place where an error becomes a line on stderr and an exit code.
"""

import os
import re
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException
from typer.main import get_command

import ncdiag
from ncdiag.cli import help_types, interrupts
from ncdiag.cli.commands import MARKUP, Lazy, lazy_group
from ncdiag.model.errors import ExitCode, NcdiagError
from ncdiag.model.text import visible

DEBUG_VARIABLE = "NCDIAG_DEBUG"
# Of a message that quotes half a file, the beginning says what is wrong and the end how to cure it.
_HEAD_CHARS, _TAIL_CHARS = 700, 300

# How pydantic, which checks the command line for typer, says what a number must be.
_PLAIN_WORDS = tuple(
    (re.compile(f": Input should be {theirs}.*", re.DOTALL), f": {ours}")
    for theirs, ours in (
        (r"a valid integer", "this is no whole number"),
        (r"a valid number", "this is no number"),
        (r"greater than or equal to (\S+)", r"it must be \1 or more"),
        (r"less than or equal to (\S+)", r"it must be \1 or less"),
        (r"greater than (\S+)", r"it must be above \1"),
        (r"less than (\S+)", r"it must be below \1"),
    )
)
_NO_CHOICE = re.compile(r": '(?P<given>[^']{0,80})' is not one of (?P<choices>'.*')\Z")

COMMANDS = {
    "sweep": Lazy("ncdiag.cli.sweep", "sweep"),
    "bench": Lazy("ncdiag.cli.bench", "bench"),
    "burn-in": Lazy("ncdiag.cli.burn_in", "burn_in"),
    "report": Lazy("ncdiag.cli.report", "report"),
    "import": Lazy("ncdiag.cli.import_", "import_"),
    "parse-log": Lazy("ncdiag.cli.parse_log", "parse_log"),
    "stragglers": Lazy("ncdiag.cli.stragglers", "stragglers"),
    "topo": Lazy("ncdiag.cli.topo", "app"),
    "expect": Lazy("ncdiag.cli.expect", "app"),
    "env": Lazy("ncdiag.cli.env", "app"),
    "history": Lazy("ncdiag.cli.history", "app"),
    "manifests": Lazy("ncdiag.cli.manifests", "app"),
    "health": Lazy(
        "ncdiag.cli.health.command", "health", answer_for="ncdiag.cli.health.failing:answer"
    ),
    "isolate": Lazy("ncdiag.cli.isolate", "app"),
    "serve": Lazy("ncdiag.cli.serve", "serve"),
    "doctor": Lazy("ncdiag.cli.doctor", "doctor"),
}

app = typer.Typer(
    name="ncdiag",
    cls=lazy_group(COMMANDS),
    add_completion=False,
    rich_markup_mode=MARKUP,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 nothing is wrong, 1 something is wrong, 2 used wrongly, "
    "3 it could not be decided, 130 interrupted. Others by design: burn-in is 0 where enough good "
    "hosts are left, health --nagios has Nagios's codes, health --prolog is 1 for a fatal finding "
    "and 0 for all else.",
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's signature of a callback
    if wanted:
        typer.echo(f"ncdiag {ncdiag.__version__}")
        raise typer.Exit


@app.callback()
def ncdiag_command(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Find bad network links and hosts in GPU clusters, and say why a job failed."""


def main() -> NoReturn:
    """Run the command that stands on the command line, and exit."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character must not end the command.
            stream.reconfigure(errors="backslashreplace")
    try:
        interrupts.catch()
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before or after run() minded it
        code = ExitCode.INTERRUPTED
    interrupts.leave_at_once()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every error is one line on stderr."""
    code: int | None
    help_types.install()
    try:
        code = get_command(app).main(list(arguments), prog_name="ncdiag", standalone_mode=False)
        sys.stdout.flush()
    except NcdiagError as error:
        code = _fail(f"{error}", error.exit_code, arguments)
    except TyperException as error:
        code = _fail(_usage(error), ExitCode.USAGE, arguments)
    except (KeyboardInterrupt, typer.Abort):
        code = _fail("interrupted", ExitCode.INTERRUPTED)
    except (BrokenPipeError, SystemExit):
        # Whoever read our output is gone and needs no message; typer turns that into SystemExit.
        _drop_output()
        code = ExitCode.UNDECIDED
    except OSError as error:
        _drop_output()
        code = _fail(_system_error(error), ExitCode.UNDECIDED, arguments)
    except Exception as error:  # noqa: BLE001 - the last resort: a bug, told in one line
        if interrupts.asked():  # some libraries turn Ctrl-C into an error of their own
            code = _fail("interrupted", ExitCode.INTERRUPTED)
        else:
            code = _fail(_bug(error), ExitCode.UNDECIDED, arguments)
    return int(code or ExitCode.DONE)


def _open_closed_streams() -> None:
    """Open /dev/null where the caller closed a standard stream.

    Else the next file opened, such as a journal, would be taken for standard output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which this one is
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - a number


def _fail(message: str, code: ExitCode, arguments: Sequence[str] = ()) -> int:
    if len(message) > _HEAD_CHARS + _TAIL_CHARS:
        message = f"{message[:_HEAD_CHARS]} ... {message[-_TAIL_CHARS:]}"
    one_line = visible(" ".join(message.split()))
    if (answered := _own_answer(arguments, one_line)) is not None:
        return answered
    with suppress(OSError):  # whoever closed stderr does not want to know
        print(f"ncdiag: {one_line}", file=sys.stderr)  # noqa: T201 - the one line of an error
    return code


def _own_answer(arguments: Sequence[str], message: str) -> int | None:
    """What the command that was called makes of an error itself, such as one for Slurm's prolog."""
    name = next((one for one in arguments if not one.startswith("-")), "")
    if name not in COMMANDS or COMMANDS[name].answer_for is None:
        return None
    module, _, function = str(COMMANDS[name].answer_for).partition(":")
    code: int | None = getattr(import_module(module), function)(arguments, message)
    return code


def _drop_output() -> None:
    """Send nowhere what Python still holds back, or it would fail again on the way out."""
    with suppress(OSError):  # a test's stdout may be no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _system_error(error: OSError) -> str:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    where = "output" if error.filename is None else f"{error.filename}"
    return f"{where}: {error.strerror}" if error.strerror else f"{type(error).__name__}: {error}"


def _usage(error: TyperException) -> str:
    """What was wrong with the command line, and where its help is."""
    message = _in_plain_words(error.format_message().strip().removesuffix("."))
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "ncdiag"
    see = " See" if message.endswith("?") else "; see"
    return f"{message[:1].lower()}{message[1:]}{see} '{command} --help'"


def _in_plain_words(message: str) -> str:
    """``message`` without what the library under the command line says of itself."""
    message = message.replace(": Value error, ", ": ", 1)
    for pattern, words in _PLAIN_WORDS:
        message = pattern.sub(words, message)
    if choice := _NO_CHOICE.search(message):
        given, choices = choice["given"].lower(), re.findall(r"'([^']*)'", choice["choices"])
        # What is near to its first word may mean srun-exclude, too.
        by_word = {one.partition("-")[0]: one for one in choices} | {one: one for one in choices}
        if near := get_close_matches(given, by_word, n=1):
            message += f". Did you mean '{by_word[near[0]]}'?"
    return message


def _bug(error: Exception) -> str:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"internal error: {type(error).__name__}: {error} "
        f"({Path(frame.filename).name}:{frame.lineno}); this is a bug in ncdiag: "
        f"report it with what {DEBUG_VARIABLE}=1 prints"
    )
