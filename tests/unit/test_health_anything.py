"""Whatever hosts say of themselves, they are judged: facts of any numbers and words."""

import math
import types
import typing
from dataclasses import fields, is_dataclass, replace
from enum import EnumMeta
from random import Random
from typing import Any

from gpu_hosts import gpu_host
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.health.checks import CHECKS, ExpectedHost, check_host, judge_fleet
from ncdiag.health.checks.check import Scope
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import HealthFacts, HostHealth, Source, SourceReading, SourceState

_SEEDS = settings(max_examples=60, deadline=None)
_WORDS = (
    *("", "on", "completed", "failed", "ACTIVE", "DOWN", "hung", "ext4", "/", "eth0", "mlx5_0"),
    *("0000:13:00.0", ":", "13", "GPU-1", "fatal", "nonfatal", "replay", "symbol_error", "driver"),
    *("memlock", "nofile", "nvidia", "nvidia-fabricmanager", "iommu", "550.1", "x" * 700),
    *("\x1b[2J\u202e", "Xid (PCI): 154, from 0x0 (None) to 0xffff (X)", "Prohibited"),
    *map(str, FindingClass),
)
_NUMBERS = (0, 1, 2, 79, 154, 300, 10**9, -1, -(2**70), 2**70)
_FLOATS = (0.0, 0.5, 2.5, 16.0, 90.0, 1e9, -1.0, 1e308, -1e308, math.inf, -math.inf, math.nan)


def nonsense(kind: Any, random: Random) -> Any:
    """A value of type ``kind``, however odd."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        return None if random.random() < 0.25 else nonsense(inner[0], random)
    if origin is tuple:
        return tuple(nonsense(inner[0], random) for _ in range(random.randrange(4)))
    if origin is not None:
        return {
            nonsense(inner[0], random): nonsense(inner[1], random)
            for _ in range(random.randrange(4))
        }
    if isinstance(kind, EnumMeta):
        return random.choice(list(kind))
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{one.name: nonsense(hints[one.name], random) for one in fields(kind)})  # type: ignore[operator]
    simple = {str: _WORDS, int: _NUMBERS, float: _FLOATS, bool: (False, True)}
    return random.choice(simple[kind])


def _facts(random: Random) -> HealthFacts:
    """Nonsense from sources that were all read, half of the time."""
    facts: HealthFacts = nonsense(HealthFacts, random)
    if random.random() < 0.5:
        return facts
    read = tuple(SourceReading(source=one, state=SourceState.READ) for one in Source)
    return replace(facts, sources=read)


@_SEEDS
@given(st.integers(0, 2**32))
def test_any_facts_are_judged(seed: int) -> None:
    random = Random(seed)
    facts, before = _facts(random), _facts(random)
    if random.random() < 0.7:
        before = replace(before, boot_id="same", taken_s=1.0)
        facts = replace(facts, boot_id="same", taken_s=random.choice((1.5, 1e6, 0.5)))
    expected = ExpectedHost(gpus=random.choice((None, 0, 8)), nics=("eth0", "mlx5_0"))
    host = check_host("a", facts, before=before, expected=expected)
    seen = [*(one.check for one in host.not_known), *host.passed]
    tripped = {one.check for one in host.findings}
    assert len(seen) == len(set(seen))
    assert tripped.isdisjoint(seen)
    assert tripped | set(seen) == {one.id for one in CHECKS.values() if one.scope is Scope.HOST}
    _assert_printable(host)


@_SEEDS
@given(st.integers(0, 2**32))
def test_any_fleet_is_judged(seed: int) -> None:
    random = Random(seed)
    facts = {f"h{number}": _facts(random) for number in range(3)}
    facts |= {f"well{number}": gpu_host() for number in range(random.randrange(8))}
    hosts, _ = judge_fleet(facts)
    assert [host.host for host in hosts] == list(facts)
    for host in hosts:
        _assert_printable(host)


def _assert_printable(host: HostHealth) -> None:
    for one in host.findings:
        for text in (one.text, one.device, one.measured, one.limit):
            assert text is None or (text.isprintable() and len(text) < 1000)
