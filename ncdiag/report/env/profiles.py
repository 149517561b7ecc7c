"""Profiles as an operator and as a program read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ncdiag.model.environment import Profile, Setting
from ncdiag.model.text import visible
from ncdiag.report.json_document import layout

PROFILES_SCHEMA: Final = "ncdiag/env-profiles/1"
PROFILE_SCHEMA: Final = "ncdiag/env-profile/1"
DIFF_SCHEMA: Final = "ncdiag/env-diff/1"


@dataclass(frozen=True, slots=True)
class Change:
    """A variable that two places set differently; ``None`` is not set, or unset."""

    name: str
    first: str | None
    second: str | None


def show_all(profiles: Sequence[Profile], console: Console) -> None:
    """A line for each."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("profile", no_wrap=True, style="bold")
    table.add_column("NCCL", no_wrap=True)
    table.add_column("for", overflow="fold")
    for one in profiles:
        table.add_row(visible(one.name), visible(one.nccl or "any"), visible(one.title))
    console.print(table)


def show(profile: Profile, console: Console) -> None:
    """All of one: where it comes from, and each setting with its reason."""
    console.print(Text(f"{visible(profile.name)}: {visible(profile.title)}", style="bold"))
    heading = {
        "NCCL": profile.nccl or "any",
        "extends": ", ".join(profile.extends),
        "source": profile.source,
        "file": profile.path or "",
    }
    for name, text in heading.items():
        if text:
            console.print(f"{name:<8} {visible(text)}", soft_wrap=True)
    for setting in profile.settings:
        console.print()
        value = "(unset)" if setting.value is None else visible(setting.value)
        line = Text(visible(setting.name), style="bold")
        line.append(f"  {value}", style="default")
        console.print(line, soft_wrap=True)
        base = _base(setting, profile)
        reason = f"{visible(setting.reason or '')}{f' ({base})' if base else ''}"
        console.print(Padding(Text(reason, style="dim"), (0, 0, 0, 4), expand=False))


def _base(setting: Setting, profile: Profile) -> str:
    """The profile that the setting comes from, where that is another one."""
    file = setting.place.rpartition(":")[0]
    if file == profile.path:
        return ""
    name = PurePath(file).stem
    shipped = "the shipped " if name == profile.name else ""
    return f"from {shipped}{visible(name)}"


def profiles_json(profiles: Sequence[Profile]) -> bytes:
    """All of them."""
    return layout({"schema": PROFILES_SCHEMA, "profiles": [_profile(one) for one in profiles]})


def profile_json(profile: Profile) -> bytes:
    """One of them."""
    return layout({"schema": PROFILE_SCHEMA, **_profile(profile)})


def _profile(profile: Profile) -> dict[str, Any]:
    return {
        "name": visible(profile.name),
        "title": visible(profile.title),
        "source": visible(profile.source),
        "nccl": profile.nccl,
        "extends": profile.extends,
        "path": profile.path and visible(profile.path),
        "settings": [
            {
                "name": one.name,
                "value": one.value,
                "reason": one.reason and visible(one.reason),
                "place": visible(one.place),
            }
            for one in profile.settings
        ],
    }


def show_changes(first: str, second: str, changes: Sequence[Change], console: Console) -> None:
    """A line for each difference, as ``diff`` marks them."""
    if not changes:
        console.print(f"{visible(first)} and {visible(second)} set the same", soft_wrap=True)
        return
    console.print(Text(f"--- {visible(first)}\n+++ {visible(second)}", style="bold"))
    for one in changes:
        for mark, value, style in (("-", one.first, "red"), ("+", one.second, "green")):
            if value is not None:
                console.print(
                    Text(f"{mark}{visible(one.name)}={visible(value)}", style=style),
                    soft_wrap=True,
                )


def changes_json(first: str, second: str, changes: Sequence[Change]) -> bytes:
    """The differences; ``null`` for what is not set."""
    return layout(
        {
            "schema": DIFF_SCHEMA,
            "first": visible(first),
            "second": visible(second),
            "changes": [
                {"name": one.name, "first": one.first, "second": one.second} for one in changes
            ],
        }
    )
