"""Settings out of the options of what starts programs: mpirun, srun, env, docker, qsub."""

import re
from collections.abc import Callable, Sequence

from ncdiag.profiles.sources.shell_words import ARRAY, ShellSyntaxError, Word, commands

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MPI = {"mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "mpiexec.mpich", "prun"}
_MPI |= {"aprun", "jsrun", "flux", "horovodrun"}
_SLURM = {"srun", "sbatch", "salloc", "#SBATCH"}
_CONTAINERS = {"docker", "podman", "nerdctl", "enroot", "kubectl"}
_LISTING_CONTAINERS = {"apptainer", "singularity"}
_QUEUES = {"qsub", "#PBS"}
_MPI_PAIR = {"-x", "--x", "-genv", "-env", "--genv", "--env", "-g", "-e", "-E"}
_ENV_LIST = "mca_base_env_list"
# $OPTS, ${OPTS}, ${OPTS[@]}; and one of them behind a comma or an equals sign.
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?\})")
_WITHIN = re.compile(rf"(?<=[,=]){_REFERENCE.pattern}")
_DEEPEST = 3
# More than this is not put in for variables in one script, and not kept of one of them.
_MOST_PUT_IN = 256 * 1024
_LONGEST = 8192

Found = tuple[list[tuple[str, str | None]], int]
"""Names and values, and how many of the words behind the option they took."""

_Option = Callable[[str, list[str]], Found]


class Variables:
    """What a script gives its variables, as they may hold options of a launcher."""

    def __init__(self) -> None:
        self._held: dict[str, Word] = {}
        self._left = _MOST_PUT_IN

    def put(self, name: str, value: Word, *, behind: bool) -> None:
        """Take note of ``name=value``; ``behind`` is whether it is ``name+=value``."""
        before = self._held.get(name) if behind else None
        text = value.text
        if text.startswith(ARRAY):
            text = text.removeprefix(ARRAY).removesuffix(")")
        if before is not None:
            text = f"{before.text} {text}"
        if len(text) <= _LONGEST:
            self._held[name] = Word(text, value.line if before is None else before.line)

    def get(self, name: str) -> Word | None:
        """The value of ``name``, as long as not too much has been asked for."""
        held = self._held.get(name)
        if held is None or len(held.text) > self._left:
            return None
        self._left -= len(held.text) + 1
        return held


def option_of(program: str) -> _Option | None:
    """What reads the options of ``program``, where its options set variables."""
    return next((option for names, option in _OPTIONS if program in names), None)


def expanded(words: Sequence[Word], variables: Variables, depth: int = 0) -> list[Word]:
    """``words`` with those put in that the script holds in ``variables``.

    A list of assignments is put in within a word too: ``--export=ALL,$ENVS``.
    """
    done: list[Word] = []
    for word in words:
        found = _REFERENCE.fullmatch(word.text)
        held = variables.get(found[1] or found[2]) if found else None
        if held is not None and depth < _DEEPEST:
            done += expanded(_split(held), variables, depth + 1)
        else:
            done.append(Word(_WITHIN.sub(lambda m: _listing(m, variables), word.text), word.line))
    return done


def _split(held: Word) -> list[Word]:
    try:
        return [word for command in commands(held.text, held.line) for word in command.words]
    except ShellSyntaxError:
        return []


def _listing(found: re.Match[str], variables: Variables) -> str:
    held = variables.get(found[1] or found[2])
    return held.text if held is not None and ASSIGNMENT.match(held.text) else found[0]


def _env_option(text: str, following: list[str]) -> Found:
    if text == "-u" and following:
        return [(following[0], None)], 1
    return _pairs(text), 0


def _mpi_option(text: str, following: list[str]) -> Found:
    if text.startswith("--env="):
        return _pairs(text.removeprefix("--env=")), 0
    if text in ("-mca", "--mca", "-gmca", "--gmca") and following[:1] == [_ENV_LIST]:
        return [pair for part in following[-1].split(";") for pair in _pairs(part)], 2
    if text in _MPI_PAIR and following:
        if "=" in following[0]:
            return _pairs(following[0]), 1
        if text not in ("-x", "--x") and len(following) == 2 and NAME.fullmatch(following[0]):
            return [(following[0], following[1])], 2
    return [], 1 if text in ("-x", "--x") and following else 0


def _slurm_option(text: str, following: list[str]) -> Found:
    return _listing_option("--export", text, following)


def _container_option(text: str, following: list[str]) -> Found:
    if text in ("-e", "--env") and following:
        return _pairs(following[0]), 1
    return _pairs(text.removeprefix("--env=")), 0


def _listing_container_option(text: str, following: list[str]) -> Found:
    return _listing_option("--env", text, following)


def _queue_option(text: str, following: list[str]) -> Found:
    return _listing_option("-v", text, following)


def _listing_option(option: str, text: str, following: list[str]) -> Found:
    if text == option and following:
        return _listed(following[0]), 1
    return _listed(text.removeprefix(f"{option}=")) if text.startswith(f"{option}=") else [], 0


def _pairs(text: str) -> list[tuple[str, str | None]]:
    found = ASSIGNMENT.fullmatch(text)
    return [(found[1], found[3])] if found else []


def _listed(text: str) -> list[tuple[str, str | None]]:
    """``ALL,A=B,C=D``; what stands behind a comma and is no assignment is a name of its own."""
    return [pair for part in text.split(",") for pair in _pairs(part)]


_OPTIONS: tuple[tuple[set[str], _Option], ...] = (
    ({"env", "mpirun_rsh"}, _env_option),
    (_MPI, _mpi_option),
    (_SLURM, _slurm_option),
    (_CONTAINERS, _container_option),
    (_LISTING_CONTAINERS, _listing_container_option),
    (_QUEUES, _queue_option),
)
