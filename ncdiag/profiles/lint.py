"""What is wrong with settings of environment variables, and what to write instead.

Each rule has a row in ``rules/table.py``; docs/env-lint.md shows an example of each.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from ncdiag.model.environment import LintFinding, LintSeverity, Reader, Setting, ValueType
from ncdiag.profiles.catalogue import variable
from ncdiag.profiles.context import LintContext
from ncdiag.profiles.rules import conflicts, debugging, devices, layers, names, values
from ncdiag.profiles.rules.look import Look, is_open, look_at

# So many unknown names are compared with the known ones; the rest are only said to be unknown.
_GUESSES = 100
_ORDER = {LintSeverity.ERROR: 0, LintSeverity.WARNING: 1, LintSeverity.INFO: 2}


def lint(settings: Sequence[Setting], context: LintContext) -> tuple[LintFinding, ...]:
    """What is wrong with ``settings``: errors first, else in the order of the settings.

    Settings of several places may be given at once: those of the job in the order in which they
    are made, and those of ``~/.nccl.conf`` and ``/etc/nccl.conf`` with these paths in their places.
    A value that only a shell or a profile fills in (``$HOST``, ``{nic.socket}``) is not judged.
    """
    look = look_at(settings, context)
    position: dict[tuple[str, str], int] = {}
    for index, setting in enumerate(settings):
        position.setdefault((setting.name, setting.place), index)
    unknown = {setting.name: None for setting in settings if variable(setting.name) is None}
    guessed = frozenset(islice(unknown, _GUESSES))
    found = dict.fromkeys(
        [
            *(finding for one in settings for finding in _check(one, look, guessed)),
            *conflicts.check(look),
            *debugging.check(look),
            *layers.check(look),
        ]
    )
    return tuple(
        sorted(
            found,
            key=lambda finding: (
                _ORDER[finding.severity],
                position.get((finding.variable, finding.place), len(settings)),
            ),
        )
    )


def _check(setting: Setting, look: Look, guessed: frozenset[str]) -> Iterator[LintFinding]:
    """The rules that look at one setting alone."""
    if setting.value is None:
        return
    yield from names.check(setting, look.context, guess=setting.name in guessed)
    row = variable(setting.name)
    if row is None or row.reader is Reader.NOBODY or is_open(setting.value):
        return
    yield from values.check(setting, row, look.context)
    if row.type is ValueType.DEVICE_LIST and setting.value:
        yield from devices.check(setting, look)
