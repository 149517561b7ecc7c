"""Settings out of Python: ``os.environ`` and dict literals; the code is parsed and never run.

A dict holds for itself, unless it is what ``update`` is given.
"""

import ast
import warnings
from collections.abc import Iterator

from ncdiag.model.environment import Setting
from ncdiag.model.errors import UsageError

_SETTERS = {"setdefault", "setenv", "putenv"}
_TAKERS = {"pop", "unsetenv", "delenv"}
_UNKNOWN = "$"
_BRANCHING = (
    *(ast.If, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ExceptHandler),
    *(ast.match_case, ast.IfExp),
)
_BRANCHES = {"body", "orelse"}
# What is nested deeper holds for what it stands in.
_DEEPEST = 50
# A longer number would be no value, and takes long to write.
_MOST_BITS = 64

_Scope = tuple[str, ...]


def read(text: str, name: str) -> Iterator[Setting]:
    """The settings of a module, by line; raises :class:`UsageError` with file and line."""
    found = [
        (line, variable, value, scope)
        for node, scope in _walk(_parsed(text, name))
        for line, variable, value in _of(node)
    ]
    for line, variable, value, scope in sorted(found, key=lambda entry: entry[0]):
        yield Setting(variable, value, f"{name}:{line}", scope=scope)


def _walk(root: ast.AST) -> Iterator[tuple[ast.AST, _Scope]]:
    """Every node and what it holds for: a branch, a function, a dict."""
    waiting: list[tuple[ast.AST, _Scope, bool]] = [(root, (), False)]
    count = 0
    while waiting:
        node, scope, taken_over = waiting.pop()
        count += 1
        if _is_dict(node) and not taken_over and len(scope) < _DEEPEST:
            scope = (*scope, f"{count}")
        yield node, scope
        takes_over = _is_update(node)
        for field, value in ast.iter_fields(node):
            inner = scope
            if field in _BRANCHES and isinstance(node, _BRANCHING) and len(scope) < _DEEPEST:
                inner = (*scope, f"?{count}.{field}")
            children = value if isinstance(value, list) else [value]
            waiting += [
                (child, inner, takes_over and field == "args")
                for child in children
                if isinstance(child, ast.AST)
            ]


def _is_dict(node: ast.AST) -> bool:
    """Whether this makes a mapping of its own: ``{...}`` or ``dict(...)``."""
    made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.keywords
    return bool(made) or isinstance(node, ast.Dict)


def _is_update(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "update"


def _parsed(text: str, name: str) -> ast.AST:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise UsageError(f"{name}:{error.lineno or 1}: not Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise UsageError(f"{name}:1: not Python that can be read") from None


_Found = tuple[int, str, str | None]


def _of(node: ast.AST) -> Iterator[_Found]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _subscript(target, value)
        case ast.Delete(targets=targets):
            for target in targets:
                yield from _subscript(target, None)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if key is not None and (name := _text(key)):
                    yield key.lineno, name, _value(value)
        case ast.Call():
            yield from _call(node)


def _subscript(target: ast.expr, value: ast.expr | None) -> Iterator[_Found]:
    if isinstance(target, ast.Subscript) and (name := _text(target.slice)):
        yield target.lineno, name, None if value is None else _value(value)


def _call(node: ast.Call) -> Iterator[_Found]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else None
    name = _text(node.args[0]) if node.args else None
    if name and called in _SETTERS and len(node.args) > 1:
        yield node.lineno, name, _value(node.args[1])
    elif name and called in _TAKERS:
        yield node.lineno, name, None
    for keyword in node.keywords:
        if keyword.arg:
            yield keyword.value.lineno, keyword.arg, _value(keyword.value)


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _value(node: ast.expr) -> str:
    """The text of a constant; what is only known when the code runs is unknown."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.Constant(value=int(value)) if value.bit_length() <= _MOST_BITS:
            return str(value)
        case ast.Call(func=ast.Name(id="str"), args=[ast.Constant(value=int(value))]) if (
            value.bit_length() <= _MOST_BITS
        ):
            return str(value)
    return _UNKNOWN
