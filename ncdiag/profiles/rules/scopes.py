"""What is set in each scope, with what it inherits from those it stands in."""

from collections.abc import Iterable, Sequence

from ncdiag.model.environment import Setting
from ncdiag.profiles.catalogue import variable
from ncdiag.profiles.rules.places import Layer, file_of, layer_of

# What is only known when a script is run.
_UNKNOWN = "$"
_BRANCH = "?"
# Each costs a look at every rule; a script of so many commands is looked at in part.
_MOST = 300

Scope = tuple[str, ...]
Effective = dict[str, Setting]


def by_scope(settings: Iterable[Setting]) -> dict[Scope, Effective]:
    """The last setting of each known name, in the order in which scopes begin, ``()`` first.

    What a branch sets is unknown in what follows it. So is, in a scope, what only a part of it
    sets. Such settings have no place.
    """
    found: dict[Scope, Effective] = {(): {}}
    within: dict[Scope, dict[str, None]] = {}
    for setting in settings:
        if variable(setting.name) is None:
            continue
        scope = setting.scope
        if scope not in found:
            if len(found) >= _MOST:
                continue
            found[scope] = dict(found[_nearest(scope, found)])
        _put(setting, found[scope])
        _tell_outer(setting, found, within)
    for scope, names in within.items():
        for name in names:
            found[scope].setdefault(name, _unknown(name))
    return found


def replaced(settings: Sequence[Setting], conf_file: str | None) -> dict[int, int]:
    """The positions of settings without effect, each with that of the one that takes its place.

    Of one scope of a script that is the last one, of a file that NCCL reads the first. A value that
    is made of the one before it takes nothing's place.
    """
    counts: dict[tuple[str, Scope, str], int] = {}
    found = {}
    for index, setting in enumerate(settings):
        key = (file_of(setting.place), setting.scope, setting.name)
        before = counts.get(key)
        if setting.value is None:
            counts.pop(key, None)
        elif before is None:
            counts[key] = index
        elif layer_of(setting, conf_file) is not Layer.PROCESS:
            found[index] = before
        else:
            counts[key] = index
            if not set("$`") & set(setting.value):
                found[before] = index
    return found


def _nearest(scope: Scope, found: dict[Scope, Effective]) -> Scope:
    """The innermost of the scopes around ``scope`` that is known."""
    return next(scope[:n] for n in range(len(scope) - 1, -1, -1) if scope[:n] in found)


def _put(setting: Setting, effective: Effective) -> None:
    if setting.value is None:
        effective.pop(setting.name, None)
    else:
        effective[setting.name] = setting


def _tell_outer(
    setting: Setting, found: dict[Scope, Effective], within: dict[Scope, dict[str, None]]
) -> None:
    flows = True
    for length in range(len(setting.scope) - 1, -1, -1):
        outer = setting.scope[:length]
        flows = flows and setting.scope[length].startswith(_BRANCH)
        if outer not in found:
            continue
        if flows:
            found[outer][setting.name] = _unknown(setting.name)
        else:
            within.setdefault(outer, {})[setting.name] = None


def _unknown(name: str) -> Setting:
    return Setting(name, _UNKNOWN, "")
