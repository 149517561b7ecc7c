"""Lines of a result on the terminal: a label, and beside it what there is to say."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

_LABEL = 11


def say(
    console: Console, what: str, text: str, *, style: str = "bold", body: str = "default"
) -> None:
    """Print a text for people, wrapped beside its label."""
    row = Table.grid(padding=(0, 1))
    row.add_column(width=_LABEL, no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(Text(what, style=style), Text(text, style=body))
    console.print(row)


def say_whole(console: Console, what: str, text: str) -> None:
    """Print a text that is there to be copied, such as a path or a node list, on one line."""
    line = Text(f"{what:<{_LABEL}} ", style="bold")
    line.append(text, style="default")
    console.print(line, soft_wrap=True)
