"""Groups of commands whose modules are imported when one is called, not before.

An operator waits for each import: ``ncdiag topo show`` needs nothing of ``ncdiag sweep``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

MARKUP: Final = "markdown"  # rich's own markup would swallow gpu[001-008]


@dataclass(frozen=True, slots=True)
class Lazy:
    """A command function or a ``typer.Typer``: ``name`` in ``module``.

    ``answer_for``, as ``module:function``, is given the arguments and the line of an error, and
    returns the exit code where callers of this command wait for another one than the contract's.
    """

    module: str
    name: str
    context_settings: dict[str, Any] = field(default_factory=dict)
    answer_for: str | None = None


class LazyCommands(Mapping[str, TyperCommand | TyperGroup]):
    """The commands of a group by name; looking one up imports its module."""

    def __init__(self, where: Mapping[str, Lazy]) -> None:
        self._where = where

    def __getitem__(self, name: str) -> TyperCommand | TyperGroup:
        lazy = self._where[name]
        found = getattr(import_module(lazy.module), lazy.name)
        if isinstance(found, typer.Typer):
            app = found
        else:
            app = typer.Typer(add_completion=False, rich_markup_mode=MARKUP)
            app.command(name, context_settings=lazy.context_settings or None)(found)
        return cast("TyperCommand | TyperGroup", get_command(app))

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)


def lazy_group(where: Mapping[str, Lazy]) -> type[TyperGroup]:
    """The ``cls`` of a ``typer.Typer`` that has these commands."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = LazyCommands(where)  # type: ignore[assignment] # only looked up in

    return LazyGroup


def lazy_app(name: str, about: str, where: Mapping[str, Lazy]) -> typer.Typer:
    """Return a group of commands, ``ncdiag NAME COMMAND``."""
    app = typer.Typer(
        name=name,
        cls=lazy_group(where),
        add_completion=False,
        rich_markup_mode=MARKUP,
        no_args_is_help=False,
        help=about,
    )
    app.callback()(_nothing_before)
    return app


def _nothing_before() -> None:
    pass
