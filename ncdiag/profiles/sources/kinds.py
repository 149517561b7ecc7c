"""Finds out what kind of file holds settings, by its name first and its content then."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from ncdiag.model.environment import Setting
from ncdiag.model.errors import UsageError
from ncdiag.profiles.catalogue import concerns
from ncdiag.profiles.sources import dockerfile, lines, python_code, shell
from ncdiag.profiles.sources.shell_files import CONF_FILES, SHELL_ENDINGS

MAX_BYTES: Final = 512 * 1024
"""A file of settings is not larger; what is larger is refused, as it would take long to read."""

# Module files of Tcl have commands of words, as shells have.
_MODULES = {".tcl", ".modulefile"}
_SHEBANG = re.compile(r"#!.*\b(?:ba|z|da|k|t?c|fi)?sh\b|#%Module")
_PYTHON_SHEBANG = re.compile(r"#!.*\bpython")
_DOCKER = re.compile(r"^[ \t]*FROM[ \t]+\S", re.MULTILINE)
_MANIFEST = re.compile(r"^(?:apiVersion|kind|services|spec):", re.MULTILINE)
_YAML = re.compile(r"^(?:---|[\w-]+:(?:[ \t].*)?$|- )", re.MULTILINE)
_SHELL = re.compile(
    r"^[ \t]*(?:export|unset|source|set -|module|#SBATCH|srun|mpirun|mpiexec|torchrun)\b"
    r"|^[ \t]*(?:declare|typeset) -|^[ \t]*(?:setenv|pushenv)\s",
    re.MULTILINE,
)
_PYTHON = re.compile(r"^(?:import \w|from [\w.]+ import|def \w+\(|os\.environ)", re.MULTILINE)
_LUA = re.compile(r"^[ \t]*(?:set|push)env[ \t]*\(", re.MULTILINE)
_UNIT = re.compile(r"^\[Service\]|^Environment=", re.MULTILINE)
_ENTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_.%()]*=.*|\s*#.*|\s*")

_Reader = Callable[[str, str], Iterable[Setting]]


def read(data: bytes, name: str) -> Iterator[Setting]:
    """All settings in ``data``; raises :class:`UsageError` with file and line."""
    text = _text(data, name)
    file = PurePosixPath(name).name.lower()
    reader = _by_name(file)
    if reader is not None:
        yield from reader(text, name)
    else:
        yield from _by_content(text, name)


def is_environment_in_crlf(data: bytes, name: str) -> bool:
    """Whether ``data`` is read as the output of ``env``, and every line ends as on Windows."""
    text = _text(data, name)
    by_name = _by_name(PurePosixPath(name).name.lower())
    return (
        by_name is None and _of_content(text) is lines.read_environment and lines.all_in_crlf(text)
    )


def _by_content(text: str, name: str) -> Iterable[Setting]:
    """What the likeliest kind finds, or else what stands in it as in a page's text."""
    refused = None
    try:
        settings = list(_of_content(text)(text, name))
    except UsageError as error:
        refused, settings = error, []
    if not any(concerns(setting.name) for setting in settings):
        settings = [setting for setting in lines.read_text(text, name) if concerns(setting.name)]
        if refused is not None and not settings:
            raise refused
    return settings


def _text(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise UsageError(f"{name}:1: larger than 512 KiB, which no file of settings is")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UsageError(f"{name}:1: this is UTF-16; save it as UTF-8")
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if "\0" in text and not _is_null_separated(text):
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UsageError(f"{name}:{line}: not a text file")
    return text


def _is_null_separated(text: str) -> bool:
    """Whether this is what ``env -0`` prints."""
    entries = text.removesuffix("\0").split("\0")
    return all(re.match(r"[A-Za-z_][^=\0]*=", entry) for entry in entries)


def _by_name(file: str) -> _Reader | None:
    ending = PurePosixPath(file).suffix
    return next((reader for belongs, reader in _BY_NAME if belongs(file, ending)), None)


def _of_content(text: str) -> _Reader:
    return next((reader for is_one, reader in _BY_CONTENT if is_one(text)), lines.read_text)


def _is_environment(text: str) -> bool:
    """Whether every line of the start is ``NAME=VALUE``; values may not go on in the next line."""
    start = text.split("\n")[:200]
    return any("=" in line for line in start) and all(_ENTRY.fullmatch(line) for line in start)


def _manifest(text: str, name: str) -> Iterator[Setting]:
    from ncdiag.profiles.sources.manifest import read_manifest  # YAML takes a while to import

    def inner(part: str, file: str, first_line: int, scope: tuple[str, ...]) -> Iterator[Setting]:
        """A file in a ConfigMap: its lines are counted in the manifest."""
        padded = "\n" * (first_line - 1) + part
        reader = _by_name(file.lower()) or _of_content(part)
        yield from (replace(one, scope=scope + one.scope) for one in reader(padded, name))

    return read_manifest(text, name, inner)


_PROSE = {".md", ".rst", ".html"}

_BY_NAME: tuple[tuple[Callable[[str, str], bool], _Reader], ...] = (
    (lambda file, _: file in CONF_FILES, lines.read_conf),
    (lambda file, _: file.startswith(("dockerfile", "containerfile")), dockerfile.read),
    (lambda _, ending: ending == ".dockerfile", dockerfile.read),
    (lambda _, ending: ending in (".yaml", ".yml", ".json"), _manifest),
    (lambda _, ending: ending == ".py", python_code.read),
    (lambda _, ending: ending in SHELL_ENDINGS or ending in _MODULES, shell.read),
    (lambda _, ending: ending == ".lua", lines.read_lua),
    (lambda _, ending: ending == ".service", lines.read_unit),
    (lambda _, ending: ending in _PROSE, lines.read_text),
)
_BY_CONTENT: tuple[tuple[Callable[[str], object], _Reader], ...] = (
    (lambda text: "\0" in text, lines.read_null_separated),
    (_PYTHON_SHEBANG.match, python_code.read),
    (_SHEBANG.match, shell.read),
    (_UNIT.search, lines.read_unit),
    (_is_environment, lines.read_environment),
    (_MANIFEST.search, _manifest),
    (_DOCKER.search, dockerfile.read),
    (_SHELL.search, shell.read),
    (_LUA.search, lines.read_lua),
    (_PYTHON.search, python_code.read),
    (_YAML.search, _manifest),
)
