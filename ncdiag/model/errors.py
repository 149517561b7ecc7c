"""The errors ncdiag raises on purpose; only ``ncdiag.cli`` turns them into an exit code."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit code means to the program that started it."""

    DONE = 0
    WRONG = 1
    USAGE = 2
    UNDECIDED = 3
    INTERRUPTED = 130


class NcdiagError(Exception):
    """One clear line for the operator: what is wrong and how to put it right."""

    exit_code = ExitCode.USAGE


class UsageError(NcdiagError):
    """The command was used wrongly: an unknown option, a missing file, a malformed hosts file."""


class UndecidedError(NcdiagError):
    """It could not be decided: a measurement could not run, or too little evidence."""

    exit_code = ExitCode.UNDECIDED
