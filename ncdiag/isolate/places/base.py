"""What every place has in common where hosts are isolated."""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from ncdiag.cluster.processes import Ended, ask
from ncdiag.model.errors import NcdiagError, UndecidedError, UsageError
from ncdiag.model.isolation import PlaceState
from ncdiag.model.text import visible

# How every reason begins that ncdiag gives: what begins otherwise is somebody else's.
MARK: Final = "ncdiag:"
# Slurm keeps more, and nobody reads more in a table of nodes.
_MAX_REASON_CHARS: Final = 200
_MAX_SAID_CHARS: Final = 300
# What quotes, ends or imitates another field where a reason is one of many on a line.
_MEANINGFUL: Final = str.maketrans(
    {"=": ":", "[": "(", "]": ")", '"': None, "'": None, "`": None, "|": "/"}
)
# A node takes some 1 KiB in Slurm's answer and 20 KiB in Kubernetes's.
_MAX_ANSWER_BYTES: Final = 512 << 20


class LeftAloneError(NcdiagError):
    """A host was left as it is, since somebody else has had a hand in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a host stands at a place.

    ``name`` is what the place calls it, ``reason`` why it is isolated there, ``why`` the words for
    an operator where nothing can or may be done with it.
    """

    state: PlaceState
    name: str
    reason: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a place says of all its hosts: each by its own name, and what else each is called."""

    standings: Mapping[str, Standing]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def of(self, host: str) -> Standing:
        """How ``host`` stands, be it named in full or in short here or there."""
        name = self.own_name(host)
        if name not in self.standings:
            return Standing(state=PlaceState.MISSING, name=host, why="no host of that name there")
        return self.standings[name]

    def own_name(self, host: str) -> str:
        """What the place calls ``host``, which is ``host`` where it does not know it."""
        if host in self.standings:
            return host
        names = (host, short_name(host), host.lower(), short_name(host).lower())
        return next((self.aliases[name] for name in names if name in self.aliases), host)


class Place(Protocol):
    """Where hosts are isolated; ``key`` is what the ledger calls it.

    Every method raises an :class:`NcdiagError` of one line: :class:`LeftAloneError` where somebody
    else has had a hand in it, :class:`UsageError` where this host, and :class:`UndecidedError`
    where the whole place cannot be asked or told.
    """

    @property
    def key(self) -> str:
        """What the ledger calls it: ``slurm``."""
        ...

    def ask(self) -> Asked:
        """How all its hosts stand now."""
        ...

    def isolate(self, name: str, reason: str, run: str) -> None:
        """Isolate the host of that name unless it is; ``run`` is the plan this is part of."""
        ...

    def release(self, name: str, reason: str) -> None:
        """Take the host back in, if it still stands there isolated for exactly ``reason``."""
        ...


def with_aliases(standings: Mapping[str, Standing], more: Iterable[tuple[str, str]] = ()) -> Asked:
    """``standings`` with what else each is called: ``more``, in short, and in lower case.

    A name that would fit two of them fits none.
    """
    aliases: dict[str, str | None] = {}
    pairs = [*((name, name) for name in standings), *more]
    pairs += [(short_name(called), name) for called, name in pairs]
    pairs += [(called.lower(), name) for called, name in pairs]
    for called, name in pairs:
        if called and aliases.setdefault(called, name) != name:
            aliases[called] = None
    return Asked(standings, {called: name for called, name in aliases.items() if name})


def namesakes(hosts: Iterable[str], known: Iterable[str]) -> list[str]:
    """Those of ``known`` that may be one of ``hosts`` under another name, in full or in short."""
    wanted = frozenset(hosts)
    short = {short_name(host).lower() for host in wanted}
    return [name for name in known if name not in wanted and short_name(name).lower() in short]


def given_reason(text: str) -> str:
    """The reason as every place keeps it unchanged: marked as ours, on one line, in plain ASCII."""
    words = " ".join(text.translate(_MEANINGFUL).split())
    plain = visible(words).encode("ascii", "backslashreplace").decode()
    return f"{MARK} {plain.removeprefix(MARK).strip()}"[:_MAX_REASON_CHARS].rstrip()


def told(argv: tuple[str, ...], timeout_s: float, not_installed: str) -> bytes:
    """What a program of the place answers; the second word of ``argv`` says what it is to do.

    Raises :class:`UsageError` where it refuses, :class:`UndecidedError` where it does not answer.
    """
    if shutil.which(argv[0]) is None:
        raise UndecidedError(not_installed)
    done = ask(argv, timeout_s=timeout_s, most_bytes=_MAX_ANSWER_BYTES)
    what = f"{argv[0]} {argv[1]}"
    if done.timed_out:
        raise UndecidedError(f"{what}: no answer within {timeout_s:g} s")
    if done.code is None:
        raise UndecidedError(visible(done.error or f"{what}: it cannot be started"))
    if done.code:
        raise UsageError(f"{what}: {_last_words(done)}")
    return done.stdout


@contextmanager
def asking() -> Iterator[None]:
    """A place that refuses to tell of its hosts was used rightly, and cannot be asked."""
    try:
        yield
    except UsageError as error:
        raise UndecidedError(f"{error}") from None


def explained(
    error: UsageError, refusals: Sequence[tuple[str, str]], silent: Sequence[tuple[str, str]]
) -> NcdiagError:
    """``error`` with its cure; of another kind where the place did not answer at all."""
    said = f"{error}"
    for words, cure in silent:
        if words in said:
            return UndecidedError(f"{said} ({cure})")
    return next(
        (UsageError(f"{said} ({cure})") for words, cure in refusals if words in said), error
    )


def _last_words(done: Ended) -> str:
    said = next((line.strip() for line in reversed(done.said) if line.strip()), "")
    if not said:
        said = next(iter(done.stdout.decode(errors="replace").strip().splitlines()[-1:]), "")
    if said:
        return visible(said)[:_MAX_SAID_CHARS]
    code = done.code or 0
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def short_name(name: str) -> str:
    """``gpu01`` of ``gpu01.cluster.example``; an address is its own."""
    return name if re.fullmatch(r"[\d.]+|.*:.*", name) else name.partition(".")[0]
