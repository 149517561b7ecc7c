"""Settings that a script writes into a file, or prints for the batch system to take."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from ncdiag.model.environment import Setting
from ncdiag.profiles.sources import lines
from ncdiag.profiles.sources.shell_words import Word

CONF_FILES: Final = {"nccl.conf", ".nccl.conf", "rccl.conf", ".rccl.conf"}
SHELL_ENDINGS: Final = {
    *(".sh", ".bash", ".zsh", ".sbatch", ".slurm", ".batch", ".job", ".csh", ".fish", ".pbs"),
}
_STARTUP_FILES = {".bashrc", ".profile", ".bash_profile", ".zshrc", "bashrc", "profile"}
_ENV_FILES = {".env", "environment", ".deepspeed_env"}
# What Slurm takes of the output of a task prolog.
_TAKEN = re.compile(r"export\s+([A-Za-z_]\w*)=(.*)")


def printed(words: Sequence[Word]) -> Word | None:
    """What ``echo`` or ``printf`` puts out; what these would fill in stays as it is."""
    if words[0].text not in ("echo", "printf") or len(words) < 2:
        return None
    rest = [word for word in words[1:] if word.text not in ("-e", "-n", "-ne", "-en", "--")]
    text = " ".join(word.text for word in rest).replace("\\n", "\n")
    return Word(text, words[0].line)


def tee_targets(words: Sequence[Word]) -> list[str]:
    """The files ``tee`` writes to."""
    if words[0].text != "tee":
        return []
    return [word.text for word in words[1:] if not word.text.startswith("-")]


def is_script(target: str) -> bool:
    """Whether a file of this name is a shell's."""
    path = PurePosixPath(target)
    return path.suffix in SHELL_ENDINGS or path.name in _STARTUP_FILES


def read(text: Word, target: str, name: str, scope: tuple[str, ...]) -> Iterator[Setting]:
    """The settings in ``text`` as it stands in ``target``, where that is a file of settings."""
    path = PurePosixPath(target)
    if path.name in CONF_FILES:
        found = lines.read_conf(text.text, name, text.line)
    elif path.name in _ENV_FILES or path.suffix == ".env":
        found = lines.read_environment(text.text, name, text.line)
    else:
        return
    yield from (replace(one, scope=scope) for one in found)


def printed_by_prolog(text: Word, name: str, scope: tuple[str, ...]) -> Iterator[Setting]:
    """``echo export NAME=VALUE`` in a file that is a prolog by its name."""
    if "prolog" not in PurePosixPath(name).name.lower():
        return
    for number, line in enumerate(text.text.split("\n"), start=text.line):
        if found := _TAKEN.fullmatch(line):
            yield Setting(found[1], found[2], f"{name}:{number}", scope=scope)
