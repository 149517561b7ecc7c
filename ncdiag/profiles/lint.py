"""What is wrong with settings of environment variables, and what to write instead.

Each rule has a row in ``rules/table.py``; docs/env-lint.md shows an example of each.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ncdiag.model.environment import LintFinding, LintSeverity, Reader, Setting, ValueType
from ncdiag.profiles.catalogue import variable
from ncdiag.profiles.context import LintContext
from ncdiag.profiles.rules import conflicts, debugging, devices, layers, names, values
from ncdiag.profiles.rules.look import Look, is_open, looks_at
from ncdiag.profiles.rules.places import conf_file_of, is_unread
from ncdiag.profiles.rules.scopes import replaced

# So many unknown names are compared with the known ones; the rest are only said to be unknown.
_GUESSES = 100
# ${NAME:-VALUE}: what is taken unless the shell has NAME.
_DEFAULT = re.compile(r"\$\{[A-Za-z_]\w*:?[-=]([^$`{}]*)\}")
_ORDER = {LintSeverity.ERROR: 0, LintSeverity.WARNING: 1, LintSeverity.INFO: 2}


def lint(settings: Sequence[Setting], context: LintContext) -> tuple[LintFinding, ...]:
    """What is wrong with ``settings``: errors first, else in the order of the settings.

    Settings of several places may be given at once: those of the job in the order in which they
    are made, and those of ``~/.nccl.conf`` and ``/etc/nccl.conf`` with these paths in their places.
    What one scope sets is judged with what it inherits, not with what other scopes set. A value
    that only a shell or a profile fills in (``$HOST``, ``{nic.socket}``) is not judged.
    """
    looks = looks_at(settings, context)
    position: dict[tuple[str, str], int] = {}
    first_at: dict[str, int] = {}  # for names that a rule tells otherwise than they are written
    for index, setting in enumerate(settings):
        first_at.setdefault(setting.place, index)
        position.setdefault((setting.name, setting.place), index)
    found = dict.fromkeys(
        [*_one_by_one(settings, looks[0]), *_together(looks), *layers.check(looks[0])]
    )
    return tuple(
        sorted(
            found,
            key=lambda finding: (
                _ORDER[finding.severity],
                position.get(
                    (finding.variable, finding.place), first_at.get(finding.place, len(settings))
                ),
            ),
        )
    )


def _one_by_one(settings: Sequence[Setting], look: Look) -> Iterator[LintFinding]:
    """The rules that look at one setting alone."""
    unknown = {setting.name: None for setting in settings if variable(setting.name) is None}
    guessed = frozenset(islice(unknown, _GUESSES))
    conf_file = conf_file_of(settings)
    without_effect = replaced(settings, conf_file)
    for index, setting in enumerate(settings):
        if setting.value is None or is_unread(setting, conf_file):
            continue
        yield from names.check(setting, look.context, guess=setting.name in guessed)
        for finding in _value(setting, look):
            is_error = finding.severity is LintSeverity.ERROR
            softer = is_error and index in without_effect
            yield replace(finding, severity=LintSeverity.WARNING) if softer else finding


def _value(setting: Setting, look: Look) -> Iterator[LintFinding]:
    row = variable(setting.name)
    default = _DEFAULT.fullmatch(setting.value or "")
    if default is not None:
        setting = replace(setting, value=default[1])
    if row is None or row.reader is Reader.NOBODY or is_open(setting.value or ""):
        return
    yield from values.check(setting, row, look.context)
    if row.type is ValueType.DEVICE_LIST and setting.value and not setting.value.endswith("\r"):
        yield from devices.check(setting, look)


def _together(looks: Sequence[Look]) -> Iterator[LintFinding]:
    """What settings say against each other: of one place the same thing is said once."""
    told = set()
    for look in looks:
        here = [*conflicts.check(look), *debugging.check(look)]
        keys = [(one.rule, one.variable, one.place) for one in here]
        yield from (one for one, key in zip(here, keys, strict=True) if key not in told)
        told |= set(keys)
