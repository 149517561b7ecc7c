"""Profiles of environment variables: files of TOML, found by name or path and laid over each other.

A profile is looked for in the user's folder first, ``$XDG_CONFIG_HOME/ncdiag/profiles``, then among
those that come with ncdiag. What is wrong with one is a :class:`UsageError` with file and line.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from ncdiag.model.environment import Profile, Setting
from ncdiag.model.errors import UsageError
from ncdiag.model.text import visible
from ncdiag.profiles.toml_bounds import excess
from ncdiag.profiles.versions import check_range, join_ranges

SUFFIX: Final = ".toml"
SHIPPED: Final = Path(__file__).with_name("shipped")
# The longest that is of any use has some dozens of lines.
_MAX_FILE_BYTES: Final = 256 * 1024
_MAX_SHOWN: Final = 200
_MAX_DEPTH: Final = 32
_MAX_BASES: Final = 32
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
# How msgspec says where, in a table and in a text.
_AT_KEY = re.compile(r" - at `\$\.(?P<key>[A-Za-z0-9_-]+).*`\Z")
_AT_LINE = re.compile(r" ?\(at (?:line (?P<line>\d+), column \d+|end of document)\)\Z")
# The start of a line that gives a key its value, or its own table.
_KEY = re.compile(
    r"""^[ \t]*+(?:\[[ \t]*(?:settings[ \t]*\.[ \t]*)?|settings[ \t]*\.[ \t]*)?"""
    r"""["']?([^"'\s\].=]++)["']?[ \t]*[\].=]""",
    re.MULTILINE,
)
# How the parser says that a line ends within quotes.
_OPEN_TEXT = r"Illegal character '\n'"
_FIELD = re.compile(r"field `([^`]*)`")
_Made = TypeVar("_Made")


class _SettingTable(msgspec.Struct, forbid_unknown_fields=True):
    """``{ value = "INFO", reason = "..." }``, or ``unset = true`` in place of a value."""

    reason: str
    value: str | int | None = None
    unset: bool = False


class _ProfileTable(msgspec.Struct, forbid_unknown_fields=True):
    """A profile file as it is written."""

    title: str
    source: str
    settings: dict[str, Any] = {}
    extends: str | list[str] = []
    nccl: str | None = None


def load(name_or_path: str) -> Profile:
    """The profile of that name or in that file, with everything that it extends laid under it.

    Raises :class:`UsageError`: there is none (with near names), it extends itself, it is no TOML.
    """
    return _Loading().profile(_find(name_or_path, Path()), ())


def available() -> tuple[Profile, ...]:
    """Every profile that can be loaded by name, in the order of the names."""
    return tuple(load(name) for name in names())


def names() -> tuple[str, ...]:
    """The names of all profiles, in alphabetical order."""
    found = {path.stem for folder in _folders() for path in _files(folder)}
    return tuple(sorted(found))


def user_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where a user keeps profiles; ``None`` where not even a home is known."""
    config = environment.get("XDG_CONFIG_HOME", "")
    # A relative one has to be ignored (XDG Base Directory Specification).
    if config.startswith("/"):
        return Path(config) / "ncdiag/profiles"
    home = environment.get("HOME", "")
    return Path(home) / ".config/ncdiag/profiles" if home.startswith("/") else None


def _folders() -> Iterator[Path]:
    own = user_folder()
    if own is not None:
        yield own
    yield SHIPPED


def _files(folder: Path) -> list[Path]:
    try:
        return [p for p in folder.iterdir() if p.suffix == SUFFIX and _NAME.fullmatch(p.stem)]
    except OSError:
        return []


def is_path(name_or_path: str) -> bool:
    """Whether it names a file, and not a profile by its name."""
    return "/" in name_or_path or name_or_path.endswith(SUFFIX)


def _find(name_or_path: str, folder: Path, *, below: str | None = None) -> Path:
    """The file of a profile; a path is taken from ``folder``.

    ``below`` is the real path of a user's profile whose base is wanted: of its own name, what is
    shipped.
    """
    if is_path(name_or_path):
        if "\0" in name_or_path:
            raise UsageError(f"{_shown(name_or_path)}: no path holds a NUL")
        return folder / name_or_path
    if _NAME.fullmatch(name_or_path):
        shipped = SHIPPED / f"{name_or_path}{SUFFIX}"
        for place in _folders():
            path = place / shipped.name
            if os.path.realpath(path) == below and shipped.is_file():
                return shipped
            if os.path.lexists(path):
                return _regular(path)
    if "." in name_or_path:
        name = _shown(name_or_path)
        raise UsageError(f"{name}: there is no such file, and no profile of that name")
    known = names()
    near = get_close_matches(name_or_path.lower(), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise UsageError(f"there is no profile {_shown(name_or_path)}: {hint}")


def _regular(path: Path) -> Path:
    """``path``, unless reading it could wait for ever: nobody named it on the command line."""
    # Unlike Path's, these take a name that no file can have for one that is not there.
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
        raise UsageError(f"{_shown(path)}: it is no regular file, as a profile is")
    return path


class _Loading:
    """Loads a profile and, each once, what it extends."""

    def __init__(self) -> None:
        self._done: dict[Path, Profile] = {}

    def profile(self, path: Path, above: tuple[Path, ...]) -> Profile:
        """The profile in ``path``; ``above`` are those that asked for it."""
        real = Path(os.path.realpath(path))  # a link to itself is told when it is read
        if real in above:
            circle = " -> ".join(_shown(one.stem) for one in (*above[above.index(real) :], real))
            raise UsageError(f"{_shown(path)}: it extends itself: {circle}")
        if len(above) >= _MAX_DEPTH:
            raise UsageError(f"{_shown(path)}: it extends more than {_MAX_DEPTH} profiles deep")
        if real not in self._done:
            self._done[real] = self._load(path, (*above, real))
        return self._done[real]

    def _load(self, path: Path, chain: tuple[Path, ...]) -> Profile:
        text = _read(path)
        table = _decode(text, path)
        lines = _Lines(text, path)
        extends = (table.extends,) if isinstance(table.extends, str) else tuple(table.extends)
        if len(extends) > _MAX_BASES:
            place = _shown(lines.place("extends"))
            raise UsageError(f"{place}: it extends more than {_MAX_BASES} profiles")
        bases = [self._base(name, path, chain, lines) for name in extends]
        laid: dict[str, Setting] = {one.name: one for base in bases for one in base.settings}
        for name, given in table.settings.items():
            laid[name] = lines.checked(name, partial(_setting, name, given, lines.place(name)))
        ranges = [base.nccl for base in bases]
        if table.nccl is not None:
            ranges.append(lines.checked("nccl", partial(check_range, table.nccl)))
        return Profile(
            name=path.stem,
            title=table.title,
            source=table.source,
            settings=tuple(laid[name] for name in sorted(laid)),
            nccl=join_ranges(ranges),
            extends=extends,
            path=str(path),
        )

    def _base(self, name: str, path: Path, chain: tuple[Path, ...], lines: "_Lines") -> Profile:
        found = lines.checked(
            "extends", lambda: _regular(_find(name, path.parent, below=os.path.realpath(path)))
        )
        return self.profile(found, chain)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{_shown(path)}: {error.strerror}; name a profile or its file") from None
    if len(data) > _MAX_FILE_BYTES:
        raise UsageError(f"{_shown(path)}: this is no profile, it is larger than 256 KiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{_shown(path)}:{line}: this is no UTF-8; a profile is TOML") from None


def _decode(text: str, path: Path) -> _ProfileTable:
    if too_much := excess(text):
        line, what = too_much
        raise UsageError(f"{_shown(f'{path}:{line}')}: no profile needs {what}")
    try:
        return msgspec.toml.decode(text, type=_ProfileTable)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        message = str(error)
    place = str(path)
    if found := _AT_LINE.search(message):
        message = message[: found.start()]
        place = f"{path}:{found['line'] or text.count(chr(10)) + 1}"
    elif found := _AT_KEY.search(message):
        message = f"{found['key']}: {message[: found.start()]}"
        place = f"{path}:{_lines_of_keys(text).get(found['key'], 1)}"
    elif field := _FIELD.search(message):
        place = f"{path}:{_lines_of_keys(text).get(field[1], 1)}"
        near = get_close_matches(field[1], _ProfileTable.__struct_fields__, n=1)
        if near and "unknown" in message:
            message += f"; did you mean {near[0]}?"
    if message.startswith(_OPEN_TEXT):
        message = "the text in quotes does not end on its line"
    raise UsageError(f"{_shown(place)}: {_shown(message)}")


def _lines_of_keys(text: str) -> dict[str, int]:
    """The first line on which each key is given a value or has its own table."""
    lines: dict[str, int] = {}
    line, at = 1, 0
    for found in _KEY.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        lines.setdefault(found[1], line)
    return lines


class _Lines:
    """Where things stand in one file."""

    def __init__(self, text: str, path: Path) -> None:
        self._lines = _lines_of_keys(text)
        self._path = path

    def place(self, key: str) -> str:
        """``file:line`` of ``key``."""
        return f"{self._path}:{self._lines.get(key, 1)}"

    def checked(self, key: str, make: Callable[[], _Made]) -> _Made:
        """What ``make`` returns; its complaint gets the place of ``key``."""
        try:
            return make()
        except UsageError as error:
            raise UsageError(f"{_shown(self.place(key))}: {error}") from None


def _setting(name: str, given: object, place: str) -> Setting:
    if not _VARIABLE.fullmatch(name):
        raise UsageError(f"{_shown(name)} cannot be the name of an environment variable")
    try:
        table = msgspec.convert(given, type=_SettingTable)
    except msgspec.ValidationError as error:
        raise UsageError(
            f'{name}: {_shown(error)}; write {name} = {{ value = "...", reason = "..." }}'
        ) from None
    if (table.value is None) is not table.unset:
        raise UsageError(f"{name} needs either a value or unset = true")
    if not table.reason.strip():
        raise UsageError(f"{name} needs a reason: why is it set?")
    value = None if table.value is None else str(table.value)
    if value is not None and "\0" in value:
        raise UsageError(f"the value of {name} holds a NUL, which no environment can")
    return Setting(name=name, value=value, place=place, reason=table.reason)


def _shown(text: object) -> str:
    return visible(" ".join(str(text)[:_MAX_SHOWN].split()))
