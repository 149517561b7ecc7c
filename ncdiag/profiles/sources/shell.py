"""Settings out of shell scripts, batch files of Slurm, and the command lines of launchers."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ncdiag.model.environment import Setting
from ncdiag.model.errors import UsageError
from ncdiag.profiles.catalogue import variable
from ncdiag.profiles.sources import shell_files
from ncdiag.profiles.sources.launchers import ASSIGNMENT, NAME, Variables, expanded, option_of
from ncdiag.profiles.sources.shell_blocks import Blocks
from ncdiag.profiles.sources.shell_words import Command, ShellSyntaxError, Word, commands

_BATCH = re.compile(r"#(SBATCH|PBS)\s+(.*)")
_SHELLS = {"bash", "sh", "zsh", "dash", "ksh", "su", "runuser"}
# The options with a value of what runs commands elsewhere.
_REMOTE = {
    "ssh": "BbcDEeFIiJLlmOopQRSWw",
    **dict.fromkeys(("pdsh", "clush", "mpssh", "parallel-ssh", "pssh"), "wgxXlufRthH"),
}
_EXPORTS = {"export", "declare", "typeset", "local", "readonly"}
_SUBMITS = {"sbatch", "qsub"}
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):?=[^$`{}]*\}")
# One command writes to no more files than these.
_MOST_FILES = 8
# The shell in a shell in a shell.
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Around:
    """What a command stands in: a file, the scope it may set something in, and its own."""

    name: str
    scope: tuple[str, ...] = ()
    own: tuple[str, ...] = ("command",)
    depth: int = 0
    variables: Variables = field(default_factory=Variables)

    def setting(self, word: Word, name: str, value: str | None, *, own: bool = False) -> Setting:
        """A setting at ``word``; ``own`` is whether it is for this command only."""
        place = f"{self.name}:{word.line}"
        return Setting(name, value, place, scope=self.own if own else self.scope)


def read(
    text: str, name: str, first_line: int = 1, *, depth: int = 0, scope: tuple[str, ...] = ()
) -> Iterator[Setting]:
    """The settings of a script, in its order; raises :class:`UsageError` with file and line.

    What a script keeps to itself is a setting only if the name is a known one, so that its own
    variables are not taken for misspelt ones.
    """
    script = _Script(name, depth, scope)
    try:
        yield from _batch_options(text, first_line, script)
        for command in commands(text, first_line):
            rest = script.blocks.enter(command.words)
            yield from script.settings(rest, command)
            script.blocks.leave(command, rest)
    except ShellSyntaxError as error:
        raise UsageError(f"{name}:{error.line}: {error}") from None


def read_words(words: Sequence[Word], around: Around) -> Iterator[Setting]:
    """The settings that one command makes, for itself or for what it starts."""
    rest = list(words)
    prefixes = []
    while rest and (found := ASSIGNMENT.fullmatch(rest[0].text)):
        prefixes.append(_assigned(found, rest.pop(0), around, own=True))
    if not rest:
        yield from (replace(one, scope=around.scope) for one in prefixes)
        return
    yield from prefixes
    builtin = _BUILTINS.get(rest[0].text)
    if builtin is not None:
        yield from builtin(rest[1:], around)
    elif len(rest) > 1 and rest[1].text == "=" and variable(rest[0].text):
        value = rest[2].text if len(rest) > 2 else ""
        yield around.setting(rest[0], f"{rest[0].text} ", value)
    else:
        yield from _started(rest, around)


class _Script:
    """What is known of a script while its commands go by."""

    def __init__(self, name: str, depth: int, scope: tuple[str, ...]) -> None:
        self.blocks = Blocks(scope)
        self._name = name
        self._depth = depth
        self._held: dict[str, Setting] = {}
        self._variables = Variables()
        self._piped: Word | None = None

    def around(self) -> Around:
        scope = self.blocks.scope
        own = (*scope, self.blocks.part())
        return Around(self._name, scope, own, self._depth, self._variables)

    def settings(self, rest: list[Word], command: Command) -> Iterator[Setting]:
        if not rest:
            return
        around = self.around()
        yield from self._written(rest, command, around)
        self._remember(rest)
        if all(ASSIGNMENT.fullmatch(word.text) for word in rest):
            made = list(read_words(rest, around))
            self._held |= {one.name: one for one in made if not variable(one.name)}
            yield from (one for one in made if variable(one.name))
            return
        if rest[0].text in _EXPORTS:
            yield from (self._held.pop(word.text) for word in rest if word.text in self._held)
        yield from read_words(rest, around)

    def _remember(self, words: Sequence[Word]) -> None:
        """Keep what variables are given, as they may hold options of a launcher."""
        if words[0].text not in _EXPORTS and not ASSIGNMENT.fullmatch(words[-1].text):
            return
        for word in words:
            if found := ASSIGNMENT.fullmatch(word.text):
                value = Word(found[3], word.line)
                self._variables.put(found[1], value, behind=bool(found[2]))

    def _written(self, words: list[Word], command: Command, around: Around) -> Iterator[Setting]:
        """What is written into files that are read for settings, or handed to a shell."""
        piped, self._piped = self._piped, None
        printed = shell_files.printed(words)
        if command.end == "|":
            self._piped = printed
        texts = [text for text in (printed or piped, *command.bodies) if text is not None]
        written = [*command.targets, *shell_files.tee_targets(words)]
        targets = list(dict.fromkeys(written))[:_MOST_FILES]
        for text in texts:
            for target in targets:
                yield from self._file(text, target, around)
        if printed is not None and command.end != "|" and not targets:
            yield from shell_files.printed_by_prolog(printed, around.name, around.scope)
        program = words[0].text.rpartition("/")[2]
        if not targets and (program in _SHELLS or program in _REMOTE or program in _SUBMITS):
            for body in command.bodies:
                yield from self._shell(body, around)

    def _file(self, text: Word, target: str, around: Around) -> Iterator[Setting]:
        scope = (*around.scope, f"file {target}")
        if shell_files.is_script(target):
            yield from self._shell(text, replace(around, own=scope))
        else:
            yield from shell_files.read(text, target, around.name, scope)

    def _shell(self, text: Word, around: Around) -> Iterator[Setting]:
        """A script within the script; what cannot be read of it is left out."""
        if self._depth < _DEEPEST:
            try:
                yield from read(
                    text.text, around.name, text.line, depth=self._depth + 1, scope=around.own
                )
            except UsageError:
                return


def _assigned(found: re.Match[str], word: Word, around: Around, *, own: bool = False) -> Setting:
    # What is put behind a value that stands elsewhere is not known.
    value = "$" + found[3] if found[2] else found[3]
    return around.setting(word, found[1], value, own=own)


def _export(words: Sequence[Word], around: Around) -> Iterator[Setting]:
    taken_away = any(word.text == "-n" for word in words)
    following = [word.text for word in words[1:]] + ["", ""]
    for index, word in enumerate(words):
        after = following[index]
        if found := ASSIGNMENT.fullmatch(word.text):
            slip = not found[3] and variable(found[1]) and after and not NAME.fullmatch(after)
            if slip and "=" not in after:
                yield around.setting(word, f"{found[1]} ", after)
            else:
                yield _assigned(found, word, around)
        elif not NAME.fullmatch(word.text):
            continue
        elif taken_away:
            yield around.setting(word, word.text, None)
        elif after.startswith("="):
            value = after[1:] or following[index + 1]
            yield around.setting(word, f"{word.text} ", value)


def _unset(words: Sequence[Word], around: Around) -> Iterator[Setting]:
    for word in words:
        if NAME.fullmatch(word.text):
            yield around.setting(word, word.text, None)


def _setenv(words: Sequence[Word], around: Around) -> Iterator[Setting]:
    if len(words) > 1:
        yield around.setting(words[0], words[0].text, words[1].text)


def _defaults(words: Sequence[Word], around: Around) -> Iterator[Setting]:
    """What ``: ${NAME:=VALUE}`` sets unless it is set."""
    for word in words:
        if found := _DEFAULT.fullmatch(word.text):
            yield around.setting(word, found[1], word.text)


def _set(words: Sequence[Word], around: Around) -> Iterator[Setting]:
    """``set -x NAME VALUE`` of fish; in other shells it has no value behind a name."""
    options = [word.text for word in words if word.text.startswith("-")]
    rest = words[len(options) :]
    exports = any(text == "--export" or (text[1:2] != "-" and "x" in text) for text in options)
    if exports and len(rest) > 1 and NAME.fullmatch(rest[0].text):
        value = " ".join(word.text for word in rest[1:])
        yield around.setting(rest[0], rest[0].text, value)


def _started(words: Sequence[Word], around: Around) -> Iterator[Setting]:
    """What the programs of a command line are handed: ``srun --export=A=B mpirun -x C=D ...``."""
    words = expanded(words, around.variables)
    option = None
    skip = 0
    for index, word in enumerate(words):
        if skip:
            skip -= 1
            continue
        program = word.text.rpartition("/")[2]
        if program in _SHELLS:
            yield from _nested(words[index + 1 :], around)
            return
        if program in _REMOTE:
            yield from _remote(words[index:], program, around)
            return
        option = option_of(program) or option
        following = [after.text for after in words[index + 1 : index + 3]]
        pairs, skip = option(word.text, following) if option else ([], 0)
        at = words[index + 1] if skip else word
        for name, value in pairs:
            yield around.setting(at, name, value, own=True)


def _nested(words: Sequence[Word], around: Around) -> Iterator[Setting]:
    """The script of ``bash -c 'script'``."""
    for option, script in pairwise(words):
        if option.text.startswith("-") and option.text.endswith("c"):
            yield from _script_of([script], around)
            return


def _remote(words: Sequence[Word], program: str, around: Around) -> Iterator[Setting]:
    """The command behind the options of ssh or its like, and behind the host of ssh."""
    rest = list(words[1:])
    while rest and rest[0].text.startswith("-"):
        valued = len(rest[0].text) == 2 and rest[0].text[1] in _REMOTE[program]
        rest = rest[2:] if valued else rest[1:]
    rest = rest[1:] if program == "ssh" else rest
    if len(rest) == 1:
        yield from _script_of(rest, around)
    elif around.depth < _DEEPEST:
        inner = replace(around, scope=around.own, depth=around.depth + 1)
        yield from read_words(rest, inner)


def _script_of(words: Sequence[Word], around: Around) -> Iterator[Setting]:
    if words and around.depth < _DEEPEST:
        script = " ".join(word.text for word in words)
        yield from read(
            script, around.name, words[0].line, depth=around.depth + 1, scope=around.own
        )


_BUILTINS: dict[str, Callable[[Sequence[Word], Around], Iterator[Setting]]] = {
    **dict.fromkeys(_EXPORTS, _export),
    "unset": _unset,
    "setenv": _setenv,
    "pushenv": _setenv,
    "set": _set,
    ":": _defaults,
    "eval": _script_of,
}


def _batch_options(text: str, first_line: int, script: _Script) -> Iterator[Setting]:
    """Those of the comments in front of the first command, as the batch system reads them."""
    around = script.around()
    around = replace(around, own=around.scope)
    for number, raw in enumerate(text.split("\n"), start=first_line):
        line = raw.strip()
        if line and not line.startswith("#"):
            return
        if found := _BATCH.fullmatch(line):
            for command in commands(found[2], number):
                yield from _started([Word(f"#{found[1]}", number), *command.words], around)
