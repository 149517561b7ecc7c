"""Settings out of shell scripts, batch files of Slurm, and the command lines of launchers."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ncdiag.model.environment import Setting
from ncdiag.model.errors import UsageError
from ncdiag.profiles.catalogue import variable
from ncdiag.profiles.sources.shell_words import ShellSyntaxError, Word, commands

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BATCH = re.compile(r"#SBATCH\s+(.*)")
_MPI = {"mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "mpiexec.mpich", "prun"}
_SLURM = {"srun", "sbatch", "salloc", "#SBATCH"}
_CONTAINERS = {"docker", "podman", "nerdctl", "enroot", "kubectl"}
_LISTING_CONTAINERS = {"apptainer", "singularity"}
_SHELLS = {"bash", "sh", "zsh", "dash", "ksh"}
_EXPORTS = {"export", "declare", "typeset", "local", "readonly"}
# Words after which a command begins.
_BEFORE = {"if", "then", "else", "elif", "while", "until", "do", "{", "!", "time", "exec"}
_BEFORE |= {"command", "builtin", "sudo", "nohup", "eval"}
# The shell in a shell in a shell.
_DEEPEST = 3


def read(text: str, name: str, first_line: int = 1, *, depth: int = 0) -> Iterator[Setting]:
    """The settings of a script, in its order; raises :class:`UsageError` with file and line.

    What a script keeps to itself is a setting only if the name is a known one, so that its own
    variables are not taken for misspelt ones.
    """
    held: dict[str, Setting] = {}
    try:
        if depth == 0:
            yield from _batch_options(text, name, first_line)
        for words in commands(text, first_line):
            if all(_ASSIGNMENT.fullmatch(word.text) for word in words):
                held |= {one.name: one for one in read_words(words, name) if not variable(one.name)}
                yield from (one for one in read_words(words, name) if variable(one.name))
                continue
            if words[0].text in _EXPORTS:
                yield from (held.pop(word.text) for word in words if word.text in held)
            yield from read_words(words, name, depth=depth)
    except ShellSyntaxError as error:
        raise UsageError(f"{name}:{error.line}: {error}") from None


def read_words(words: Sequence[Word], name: str, *, depth: int = 0) -> Iterator[Setting]:
    """The settings that one command makes, for itself or for what it starts."""
    rest = list(words)
    while rest and rest[0].text in _BEFORE:
        rest.pop(0)
    while rest and (found := _ASSIGNMENT.fullmatch(rest[0].text)):
        yield _setting(found, rest.pop(0), name)
    if not rest:
        return
    command = rest[0].text
    if command in _EXPORTS:
        yield from _export(rest[1:], name)
    elif command == "unset":
        for word in rest[1:]:
            if _NAME.fullmatch(word.text):
                yield Setting(word.text, None, f"{name}:{word.line}")
    elif command == "setenv" and len(rest) >= 3:
        yield Setting(rest[1].text, rest[2].text, f"{name}:{rest[1].line}")
    else:
        yield from _started(rest, name, depth)


def _setting(found: re.Match[str], word: Word, name: str) -> Setting:
    # What is put behind a value that stands elsewhere is not known.
    value = "$" + found[3] if found[2] else found[3]
    return Setting(found[1], value, f"{name}:{word.line}")


def _export(words: Sequence[Word], name: str) -> Iterator[Setting]:
    taken_away = any(word.text == "-n" for word in words)
    for word in words:
        if found := _ASSIGNMENT.fullmatch(word.text):
            yield _setting(found, word, name)
        elif taken_away and _NAME.fullmatch(word.text):
            yield Setting(word.text, None, f"{name}:{word.line}")


def _started(words: Sequence[Word], name: str, depth: int) -> Iterator[Setting]:
    """What the programs of a command line are handed: ``srun --export=A=B mpirun -x C=D ...``."""
    kind = None
    skip = 0
    for index, word in enumerate(words):
        if skip:
            skip -= 1
            continue
        program = word.text.rpartition("/")[2]
        if program in _SHELLS:
            yield from _nested(words[index + 1 :], name, depth)
            return
        kind = _kind_of(program) or kind
        following = [after.text for after in words[index + 1 : index + 3]]
        pairs, skip = _OPTIONS[kind](word.text, following) if kind else ([], 0)
        at = words[index + 1] if skip else word
        for variable_name, value in pairs:
            yield Setting(variable_name, value, f"{name}:{at.line}")


def _kind_of(program: str) -> str | None:
    if program == "env":
        return "env"
    if program in _MPI:
        return "mpi"
    if program in _SLURM:
        return "slurm"
    if program in _LISTING_CONTAINERS:
        return "listing container"
    return "container" if program in _CONTAINERS else None


_Found = tuple[list[tuple[str, str | None]], int]


def _env_option(text: str, following: list[str]) -> _Found:
    if text == "-u" and following:
        return [(following[0], None)], 1
    return _pairs(text), 0


def _mpi_option(text: str, following: list[str]) -> _Found:
    if text in ("-x", "--x") and following:
        return _pairs(following[0]), 1
    if text in ("-genv", "-env", "--genv", "--env", "-g", "-e") and following:
        if "=" in following[0]:
            return _pairs(following[0]), 1
        if len(following) == 2 and _NAME.fullmatch(following[0]):
            return [(following[0], following[1])], 2
    return [], 0


def _slurm_option(text: str, following: list[str]) -> _Found:
    if text == "--export" and following:
        return _listed(following[0]), 1
    return _listed(text.removeprefix("--export=")) if text.startswith("--export=") else [], 0


def _container_option(text: str, following: list[str]) -> _Found:
    if text in ("-e", "--env") and following:
        return _pairs(following[0]), 1
    return _pairs(text.removeprefix("--env=")) if text.startswith("--env=") else [], 0


def _listing_container_option(text: str, following: list[str]) -> _Found:
    if text == "--env" and following:
        return _listed(following[0]), 1
    return _listed(text.removeprefix("--env=")) if text.startswith("--env=") else [], 0


_OPTIONS = {
    "env": _env_option,
    "mpi": _mpi_option,
    "slurm": _slurm_option,
    "container": _container_option,
    "listing container": _listing_container_option,
}


def _pairs(text: str) -> list[tuple[str, str | None]]:
    found = _ASSIGNMENT.fullmatch(text)
    return [(found[1], found[3])] if found else []


def _listed(text: str) -> list[tuple[str, str | None]]:
    """``ALL,A=B,C=D``; what stands behind a comma and is no assignment is a name of its own."""
    return [pair for part in text.split(",") for pair in _pairs(part)]


def _nested(words: Sequence[Word], name: str, depth: int) -> Iterator[Setting]:
    """The script of ``bash -c 'script'``."""
    if depth >= _DEEPEST:
        return
    for option, script in pairwise(words):
        if option.text.startswith("-") and option.text.endswith("c"):
            yield from read(script.text, name, script.line, depth=depth + 1)
            return


def _batch_options(text: str, name: str, first_line: int) -> Iterator[Setting]:
    if "#SBATCH" not in text:
        return
    for number, line in enumerate(text.split("\n"), start=first_line):
        if found := _BATCH.fullmatch(line.rstrip("\r")):
            for words in commands(found[1], number):
                yield from _started([Word("#SBATCH", number), *words], name, 0)
