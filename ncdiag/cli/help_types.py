"""What stands behind an option in ``--help``: its values, where they are told by nothing else.

The library under the command line writes ``<bool>`` behind a flag, and folds choices within words.
"""

from typing import Final

from typer import Context
from typer.core import TyperArgument, TyperOption

# Two names and their bars stay on one line of 80 columns; more are set so that they can wrap.
_ONE_WORD_CHARS: Final = 20

_type_of_option = TyperOption.display_type_rich


def _of_option(option: TyperOption, ctx: Context) -> str | None:
    if option.metavar is None and option.is_flag:
        return None
    shown = _type_of_option(option, ctx)
    if option.metavar is None and shown and len(shown) > _ONE_WORD_CHARS:
        return shown.strip("<>").replace("|", " | ")
    return shown


def _of_argument(_: TyperArgument, ctx: Context) -> None:
    """Nothing: an argument's help says what it takes."""


def install() -> None:
    """Have it so in every help of this process."""
    TyperOption.display_type_rich = _of_option  # type: ignore[method-assign,assignment]
    TyperArgument.display_type_rich = _of_argument  # type: ignore[method-assign,assignment]
