"""Reports of burn-ins made by hand: ten hosts, of which one sends slowly, one has a bad GPU."""

import random
from dataclasses import replace

from ncdiag.diagnose.burn_in import conclude
from ncdiag.model.burn_in import (
    BurnInReport,
    Figure,
    Outcome,
    Stage,
    StageFinding,
    StageRun,
    StageState,
)
from ncdiag.model.host import Host
from ncdiag.model.verdict import SweepReport

HOSTILE = "<script>alert(1)</script>\x1b[31m"


def burn_in_report(
    sweep: SweepReport | None = None,
    *,
    hosts: int = 12,
    need: int = 8,
    spares: int = 1,
    text: str = "",
    undecided: bool = True,
) -> BurnInReport:
    """h3 sends slowly, h5 has Xid 79, h8 is unreachable, and h11 was cut off; ``text`` is said."""
    names = [f"h{number}" for number in range(1, hosts + 1)]
    given = [
        Host(name=name, address=name, leaf=f"leaf{i // 6 + 1}") for i, name in enumerate(names)
    ]
    slow = StageFinding(
        host="h3",
        stage=Stage.PAIRS,
        outcome=Outcome.REJECTED,
        reason=f"7 of 7 links it sends on reach 20 % of what they should{text}",
        confidence=0.99,
        confirmed=True,
        isolates=True,
        partners=("h1", "h2"),
        next="ssh h3 ethtool -S eth0",
    )
    xid = replace(
        slow,
        host="h5",
        stage=Stage.HEALTH,
        reason="Xid 79: GPU has fallen off the bus",
        component="gpu3",
        class_="xid",
        next="drain it, reset or replace the GPU",
    )
    gone = replace(
        slow,
        host="h8",
        stage=Stage.REACH,
        outcome=Outcome.UNDECIDED,
        reason="ssh: connect to host h8 port 22: Connection refused",
        isolates=False,
        next="",
    )
    runs = _runs(names, [slow, xid, gone], cut_off="h11" if undecided else "")
    found = conclude(given, runs, None, need=need, spares=spares)
    return BurnInReport(
        started="2026-11-30T03:12:45Z",
        seconds=140.24,
        level="normal",
        need=need,
        spares_wanted=spares,
        verdict=found.verdict,
        confidence=found.confidence,
        hosts=found.hosts,
        stages=tuple(runs),
        chosen=found.chosen,
        spares=found.spares,
        left=found.left,
        isolate=found.isolate,
        leaves=found.leaves,
        sweep=sweep,
        settings={"budget": "10 min 00 s", "launcher": "ssh"},
        versions={"ncdiag": "0.1.0"},
        notes=(*found.notes, *([text] if text else [])),
    )


def _runs(names: list[str], findings: list[StageFinding], *, cut_off: str) -> list[StageRun]:
    seconds = dict(zip(Stage, (8.1, 2.2, 11.0, 64.5, 20.3, 31.0), strict=True))
    noise = random.Random(1)
    out: set[str] = set()
    runs = []
    for stage in Stage:
        part = [name for name in names if name not in out]
        found = tuple(one for one in findings if one.stage is stage)
        out |= {one.host for one in found}
        is_cut = stage is Stage.LOAD and cut_off in part
        runs.append(
            StageRun(
                stage=stage,
                state=StageState.CUT if is_cut else StageState.DONE,
                reason="31 s were too few" if is_cut else None,
                hosts=len(part),
                seconds=seconds[stage],
                budget_s=60.0,
                findings=found,
                passed=tuple(
                    name for name in part if name not in out and not (is_cut and name == cut_off)
                ),
                figures=_figures(part, noise) if stage is Stage.LOCAL else (),
            )
        )
    return runs


def _figures(names: list[str], noise: random.Random) -> tuple[Figure, ...]:
    return tuple(
        Figure(
            host=name,
            stage=Stage.LOCAL,
            name=kind,
            value=(650.0 if name != "h6" else 560.0) * noise.uniform(0.98, 1.02),
            median=650.0,
            component="gpu0",
        )
        for kind in ("gemm_tflop_per_s", "memory_gb_per_s")
        for name in names
    )
