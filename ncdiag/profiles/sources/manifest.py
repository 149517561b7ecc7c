"""Settings out of YAML: manifests of Kubernetes, compose files, and jobs of other schedulers.

Wherever a mapping has ``env`` or one of its like, its entries are settings: a list of ``name`` and
``value``, a list of ``NAME=VALUE``, or a mapping. What containers are told to run is read as a
command. The data of a ConfigMap is settings, or files that hold some. A setting holds for the
mapping that its environment stands in, which is a container or a service, and for those within it.
"""

from collections.abc import Callable, Iterator

from ncdiag.model.environment import Setting
from ncdiag.model.errors import UsageError
from ncdiag.profiles.sources.shell import Around, read_words
from ncdiag.profiles.sources.shell import read as read_shell
from ncdiag.profiles.sources.shell_words import Word
from ncdiag.profiles.sources.yaml_tree import Mapping, Node, Scalar, Sequence, read, walk

# Kubernetes, compose, Ray's runtime_env, SkyPilot, charts of Helm, GitLab, development containers.
_ENVIRONMENTS = (
    *("env", "environment", "env_vars", "envs", "extraEnv", "extraEnvVars", "extraEnvs"),
    *("envVars", "environmentVariables", "variables", "containerEnv"),
)
# What a container is told to run, as words or as a line; and scripts of SkyPilot, Ansible and CI.
_COMMANDS = ("command", "args", "entrypoint")
_SCRIPTS = ("run", "setup", "script", "before_script", "shell", "cmd")
_UNKNOWN = "$"
_MERGED = "<<"

Scope = tuple[str, ...]
ReadFile = Callable[[str, str, int, Scope], Iterator[Setting]]
"""Reads a file within the file: its text, its name, the line it begins in, and its scope."""


def read_manifest(text: str, name: str, read_file: ReadFile) -> Iterator[Setting]:
    """The settings of all documents, in order; raises ``UsageError`` with file and line."""
    for document in read(text, name):
        secret = isinstance(document, Mapping) and document.text("kind") == "Secret"
        for node, scope in () if secret else walk(document):
            yield from _of_mapping(node, Around(name, scope, (*scope, "command")), read_file)


def _of_mapping(node: Mapping, around: Around, read_file: ReadFile) -> Iterator[Setting]:
    for key in _ENVIRONMENTS:
        yield from _environment(node.get(key), around)
    words = [word for key in _COMMANDS for word in _words(node.get(key))]
    if words:
        yield from read_words(words, around)
    for key in (*_COMMANDS, *_SCRIPTS):
        yield from _script(node.get(key), key, around)
    if node.text("kind") == "ConfigMap":
        yield from _config_map(node.get("data"), around, read_file)


def _environment(node: Node | None, around: Around) -> Iterator[Setting]:
    if isinstance(node, Mapping):
        for key, value in _merged(node):
            text = value.text if isinstance(value, Scalar) else _UNKNOWN
            yield around.setting(Word("", key.line), key.text, text)
    for item in node.items if isinstance(node, Sequence) else ():
        at = Word("", item.line)
        if isinstance(item, Scalar):
            variable, equals, text = item.text.partition("=")
            yield around.setting(at, variable, text if equals else _UNKNOWN)
        elif isinstance(item, Mapping) and (called := item.text("name")):
            given = item.text("value")
            elsewhere = _UNKNOWN if item.get("valueFrom") else ""
            yield around.setting(at, called, elsewhere if given is None else given)


def _merged(node: Mapping) -> Iterator[tuple[Scalar, Node]]:
    """The entries of ``node``, in front of them those of ``<<`` that it does not have itself."""
    merged = node.get(_MERGED)
    own = {key.text for key, _ in node.entries}
    for other in merged.items if isinstance(merged, Sequence) else [merged]:
        if isinstance(other, Mapping):
            yield from ((key, value) for key, value in other.entries if key.text not in own)
    yield from node.entries


def _words(node: Node | None) -> list[Word]:
    if isinstance(node, Sequence):
        scalars = [item for item in node.items if isinstance(item, Scalar)]
        return [Word(item.text, item.line + item.block) for item in scalars]
    return []


def _script(node: Node | None, key: str, around: Around) -> Iterator[Setting]:
    """A command line or a script; a list of lines under a key for scripts is one."""
    if isinstance(node, Scalar):
        text, line = node.text, node.line + node.block
    elif key in _SCRIPTS and (words := _words(node)):
        text, line = "\n".join(word.text for word in words), words[0].line
    else:
        return
    try:
        yield from read_shell(text, around.name, line, depth=1, scope=around.own)
    except UsageError:  # It need not be a shell's.
        return


def _config_map(node: Node | None, around: Around, read_file: ReadFile) -> Iterator[Setting]:
    for key, value in node.entries if isinstance(node, Mapping) else ():
        if not isinstance(value, Scalar):
            continue
        if value.block:
            yield from read_file(value.text, key.text, value.line + 1, (*around.scope, key.text))
        else:
            yield around.setting(Word("", key.line), key.text, value.text)
