"""Settings out of YAML: manifests of Kubernetes, compose files, and jobs of other schedulers.

Wherever a mapping has ``env`` or one of its like, its entries are settings: a list of ``name`` and
``value``, a list of ``NAME=VALUE``, or a mapping. What containers are told to run is read as a
command. The data of a ConfigMap is settings, or files that hold some.
"""

from collections.abc import Callable, Iterator

from ncdiag.model.environment import Setting
from ncdiag.profiles.sources.shell import read_words
from ncdiag.profiles.sources.shell_words import Word
from ncdiag.profiles.sources.yaml_tree import Mapping, Node, Scalar, Sequence, read, walk

# Kubernetes, compose, Ray's runtime_env, SkyPilot.
_ENVIRONMENTS = ("env", "environment", "env_vars", "envs", "extraEnv", "extraEnvVars")
_UNKNOWN = "$"

ReadFile = Callable[[str, str, int], Iterator[Setting]]
"""Reads a file within the file: its text, its name, and the line it begins in."""


def read_manifest(text: str, name: str, read_file: ReadFile) -> Iterator[Setting]:
    """The settings of all documents, in order; raises ``UsageError`` with file and line."""
    for document in read(text, name):
        secret = isinstance(document, Mapping) and document.text("kind") == "Secret"
        for node in () if secret else walk(document):
            if isinstance(node, Mapping):
                yield from _of_mapping(node, name, read_file)


def _of_mapping(node: Mapping, name: str, read_file: ReadFile) -> Iterator[Setting]:
    for key in _ENVIRONMENTS:
        yield from _environment(node.get(key), name)
    words = [word for key in ("command", "args", "entrypoint") for word in _words(node.get(key))]
    if words:
        yield from read_words(words, name)
    if node.text("kind") == "ConfigMap":
        yield from _config_map(node.get("data"), name, read_file)


def _environment(node: Node | None, name: str) -> Iterator[Setting]:
    if isinstance(node, Mapping):
        for key, value in node.entries:
            text = value.text if isinstance(value, Scalar) else _UNKNOWN
            yield Setting(key.text, text, f"{name}:{key.line}")
    for item in node.items if isinstance(node, Sequence) else ():
        if isinstance(item, Scalar):
            variable, equals, text = item.text.partition("=")
            yield Setting(variable, text if equals else _UNKNOWN, f"{name}:{item.line}")
        elif isinstance(item, Mapping) and (called := item.text("name")):
            given = item.text("value")
            elsewhere = _UNKNOWN if item.get("valueFrom") else ""
            yield Setting(called, elsewhere if given is None else given, f"{name}:{item.line}")


def _words(node: Node | None) -> list[Word]:
    if isinstance(node, Sequence):
        scalars = [item for item in node.items if isinstance(item, Scalar)]
        return [Word(item.text, item.line + item.block) for item in scalars]
    return []


def _config_map(node: Node | None, name: str, read_file: ReadFile) -> Iterator[Setting]:
    for key, value in node.entries if isinstance(node, Mapping) else ():
        if not isinstance(value, Scalar):
            continue
        if value.block:
            yield from read_file(value.text, key.text, value.line + 1)
        else:
            yield Setting(key.text, value.text, f"{name}:{key.line}")
