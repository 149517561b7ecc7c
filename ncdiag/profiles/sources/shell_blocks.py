"""Which part of a script a command stands in: a branch, a function, a subshell."""

from collections.abc import Sequence
from dataclasses import dataclass

from ncdiag.profiles.sources.shell_words import Command, Word

_BRANCHES = {"then", "else", "elif"}
_PASSED_OVER = {"while", "until", "do", "done", "!", "time", "exec", "command", "builtin", "nohup"}
# -v is what is left of "command -v".
_TESTS = {"[", "[[", "test", "grep", "-v", "which"}
# Options of sudo with a value.
_SUDO = {"-u", "-g", "-h", "-p", "-C", "-T", "-R", "-D"}
# What stands in more blocks than these is taken to stand in the last of them.
_DEEPEST = 50


@dataclass(slots=True)
class _Block:
    closed_by: str
    part: str | None


class Blocks:
    """The blocks that are open while the commands of a script go by.

    Give each command to :meth:`enter`, which takes the words off that open and close blocks, and
    then to :meth:`leave`.
    """

    def __init__(self, scope: tuple[str, ...]) -> None:
        self._outside = scope
        self._open: list[_Block] = []
        self._count = 0
        # The part of what stands behind && and ||, until the list ends.
        self._condition: str | None = None
        self._named = self._is_function = False

    @property
    def scope(self) -> tuple[str, ...]:
        """The scope of what is set now."""
        inner = [*(block.part for block in self._open), self._condition]
        return (*self._outside, *(part for part in inner if part is not None))

    def part(self, kind: str = "") -> str:
        """A name that no part of this script has yet; ``kind`` is ``?`` for a branch."""
        self._count += 1
        return f"{kind}{self._count}"

    def enter(self, words: Sequence[Word]) -> list[Word]:
        """The words of the command itself, without those that open and close blocks."""
        rest = list(words)
        while rest:
            word = rest[0].text
            if word in ("for", "select", "case"):
                if word == "case":
                    self._push("esac", self.part("?"))
                return []
            if word == "sudo":
                rest = _behind_sudo(rest)
            elif word == "function":
                self._is_function = True
                rest = rest[2:]
            elif word in _PASSED_OVER or self._opens_or_closes(word):
                rest = rest[1:]
            else:
                break
        return rest

    def _opens_or_closes(self, word: str) -> bool:
        if word == "if":
            self._push("fi", self.part("?"))
        elif word in _BRANCHES:
            self._branch("fi")
        elif word in ("fi", "esac", "}"):
            self._pop(word)
        elif word == "{":
            self._push("}", self.part("?") if self._is_function else self._condition)
            self._condition, self._is_function = None, False
        else:
            return False
        return True

    def leave(self, command: Command, rest: Sequence[Word]) -> None:
        """Take note of the operator that ends ``command``; ``rest`` is what was left of it."""
        end = command.end
        if end == ")" and self._open and self._open[-1].closed_by == ")":
            self._open.pop()
            self._is_function = self._named and not command.words
        elif end in (";;", ";&", ";;&"):
            self._branch("esac")
        self._named = end == "(" and len(rest) == 1
        if end == "(":
            self._push(")", self.part())
        if end == "||" or (end == "&&" and rest and rest[0].text in _TESTS):
            self._condition = self.part("?")
        elif end not in ("&&", "|", "|&", "("):
            self._condition = None

    def _push(self, closed_by: str, part: str | None) -> None:
        if len(self._open) < _DEEPEST:
            self._open.append(_Block(closed_by, part))

    def _pop(self, closed_by: str) -> None:
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index].closed_by == closed_by:
                del self._open[index:]
                return

    def _branch(self, closed_by: str) -> None:
        if self._open and self._open[-1].closed_by == closed_by:
            self._open[-1].part = self.part("?")


def _behind_sudo(words: list[Word]) -> list[Word]:
    rest = words[1:]
    while rest and rest[0].text.startswith("-"):
        rest = rest[2:] if rest[0].text in _SUDO else rest[1:]
    return rest
