"""What several tests share: reports and post-mortems made by hand."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest

from ncdiag.diagnose.postmortem.guide import GUIDE
from ncdiag.model.finding import (
    BenchmarkSummary,
    EvidenceLine,
    Finding,
    FindingClass,
    FirstSeen,
    Isolation,
    JobShape,
    Library,
    Network,
    Postmortem,
    PostmortemVerdict,
    Role,
    Severity,
    Suspect,
    SuspectKind,
)
from ncdiag.model.log import Event, InputSummary, LogEvidence, NcclProcess, Speaker
from ncdiag.model.place import Clock, Moment, Place
from ncdiag.model.verdict import (
    Contention,
    Culprit,
    CulpritKind,
    Diagnosis,
    Direction,
    HostStatus,
    HostVerdict,
    LinkStatus,
    LinkVerdict,
    SweepPlan,
    SweepReport,
    Verdict,
)

MakeReport = Callable[..., SweepReport]

PAYLOAD_GBIT_PER_S = 0.478
DERIVATION = "500 Mbit/s x 0.956 TCP at MTU 1500"


def sweep_report(
    names: Sequence[str] | int = 8,
    *,
    slow_senders: Mapping[str, float] | None = None,
    slow_links: Mapping[tuple[str, str], float] | None = None,
    unreachable: Mapping[str, str] | None = None,
    errors: Mapping[tuple[str, str], str] | None = None,
    rails: int = 1,
    expected_gbit_per_s: float | None = PAYLOAD_GBIT_PER_S,
    contention: Sequence[Contention] = (),
    notes: Sequence[str] = (),
    interrupted: bool = False,
    seed: int = 1,
) -> SweepReport:
    """A full sweep of ``names`` in which the given senders and links reach a share of the rate."""
    if isinstance(names, int):
        names = [f"h{number}" for number in range(1, names + 1)]
    slow_senders, slow_links = slow_senders or {}, slow_links or {}
    unreachable, errors = unreachable or {}, errors or {}
    noise = random.Random(seed)
    rate = expected_gbit_per_s or PAYLOAD_GBIT_PER_S

    def link(source: str, target: str, rail: int, round_number: int) -> LinkVerdict:
        error = errors.get((source, target))
        if error is not None:
            return LinkVerdict(
                source=source,
                target=target,
                rail=rail,
                status=LinkStatus.ERROR,
                error=error,
                round=round_number,
                engine="torch",
                tests=1,
            )
        slow = min(slow_senders.get(source, 1.0), slow_links.get((source, target), 1.0))
        measured = rate * slow * noise.uniform(0.97, 1.01)
        efficiency = measured / expected_gbit_per_s if expected_gbit_per_s else None
        return LinkVerdict(
            source=source,
            target=target,
            rail=rail,
            status=LinkStatus.FAULTY if slow < 0.8 else LinkStatus.HEALTHY,
            measured_gbit_per_s=measured,
            expected_gbit_per_s=expected_gbit_per_s,
            expected_from=DERIVATION if expected_gbit_per_s else None,
            efficiency=efficiency,
            fleet_gbit_per_s=rate,
            fleet_ratio=measured / rate,
            bytes=round(measured * 0.4e9 / 8),
            tests=2 if slow < 0.8 else 1,
            min_gbit_per_s=measured * noise.uniform(0.9, 1.0),
            idle=noise.uniform(0.5, 0.9),
            round=round_number,
            engine="torch",
        )

    up = [name for name in names if name not in unreachable]
    links = tuple(
        link(source, target, rail, (row + column) % len(up))
        for rail in range(rails)
        for row, source in enumerate(up)
        for column, target in enumerate(up)
        if source != target
    )
    isolate = tuple(name for name in up if name in slow_senders)
    return SweepReport(
        started="2026-11-29T03:12:45Z",
        seconds=42.4242424242,
        plan=SweepPlan(
            mode="full",
            hosts=len(names),
            rounds=len(up) - 1,
            pairs=rails * len(up) * (len(up) - 1) // 2,
            engine="torch",
            launcher="ssh",
        ),
        diagnosis=Diagnosis(
            verdict=_verdict(slow_senders or slow_links, unreachable or errors),
            links=links,
            hosts=tuple(_host(name, slow_senders, unreachable) for name in names),
            culprits=tuple(_culprits(up, slow_senders, slow_links)),
            contention=tuple(contention),
            isolate=isolate,
            good=tuple(name for name in up if name not in isolate),
            notes=tuple(notes),
        ),
        settings={"faulty_below": "0.8", "measure": "0.4 s", "mode": "full"},
        versions={"ncdiag": "0.1.0", "torch": "2.13.0"},
        interrupted=interrupted,
    )


def _verdict(faults: Mapping[object, object], unknowns: Mapping[object, object]) -> Verdict:
    if faults:
        return Verdict.FAULTY
    return Verdict.INCONCLUSIVE if unknowns else Verdict.HEALTHY


def _host(
    name: str, slow_senders: Mapping[str, float], unreachable: Mapping[str, str]
) -> HostVerdict:
    if name in unreachable:
        return HostVerdict(name=name, status=HostStatus.UNREACHABLE, reason=unreachable[name])
    if name in slow_senders:
        return HostVerdict(
            name=name, status=HostStatus.FAULTY, efficiency=0.6, reason="slow sending"
        )
    return HostVerdict(name=name, status=HostStatus.HEALTHY, efficiency=0.991)


def _culprits(
    up: Sequence[str],
    slow_senders: Mapping[str, float],
    slow_links: Mapping[tuple[str, str], float],
) -> list[Culprit]:
    hosts = [
        Culprit(
            kind=CulpritKind.HOST,
            name=name,
            direction=Direction.SEND,
            status=LinkStatus.FAULTY,
            confidence=0.99,
            efficiency=share,
            explains=len(up) - 1,
            contradicts=0,
            reason=f"{len(up) - 1} of {len(up) - 1} links it sends on reach "
            f"{share:.0%} of what they should; all it receives is as expected",
            next=f"ssh {name} ethtool -S eth0",
        )
        for name, share in slow_senders.items()
    ]
    links = [
        Culprit(
            kind=CulpritKind.LINK,
            name=f"{source}->{target}",
            direction=Direction.SEND,
            status=LinkStatus.FAULTY,
            confidence=0.8,
            efficiency=share,
            explains=1,
            contradicts=0,
            reason="slow twice, also alone; both hosts are fast with everybody else",
            next=f"traceroute from {source} to {target}: look for the path only they share",
        )
        for (source, target), share in slow_links.items()
    ]
    return hosts + links


@pytest.fixture
def make_report() -> MakeReport:
    """Build a sweep's report by hand: see ``sweep_report``."""
    return sweep_report


@pytest.fixture
def faulty_report() -> SweepReport:
    """Eight hosts: h3 sends slowly, the link h5->h6 is slow, h8 cannot be reached."""
    return sweep_report(
        slow_senders={"h3": 0.2},
        slow_links={("h5", "h6"): 0.1},
        unreachable={"h8": "ssh: connect to host h8 port 22: Connection refused"},
        notes=["eth1 of h2 was not measured: no carrier"],
        contention=[
            Contention(name="leaf1", alone_gbit_per_s=0.47, together_gbit_per_s=0.21, pairs=4)
        ],
    )


# --- post-mortems ---

_STARTED_S = 1_700_000_000.0
Case = tuple[Postmortem, LogEvidence]


def postmortem_case(hosts: int = 2, *, clock: bool = True, quote: str = "vendor err 129") -> Case:
    """A job in which the last host lost a port, the others timed out, and one has a warning.

    ``quote`` ends the lines of those that timed out; without ``clock`` no line has a time.
    """
    names = [f"gpu{number:03d}" for number in range(1, hosts + 1)]
    bad = names[-1]

    def place(host: str, line: int, seconds: float) -> Place:
        time = Moment(f"{seconds:g}s", _STARTED_S + seconds, Clock.WALL) if clock else None
        return Place(f"logs/{host}.log", line, time)

    down = Event(
        class_name=FindingClass.IB_PORT_ERROR,
        form="test",
        place=place(bad, 400, 310),
        last=place(bad, 420, 318),
        text=f"{bad}:11:12 [0] NCCL WARN NET/IB : mlx5_0:1 Got async event : port error",
        speaker=Speaker(host=bad, pid="11"),
        attributes={"event": "port error", "hca": "mlx5_0"},
        count=8,
    )
    echoes = [
        Event(
            class_name=FindingClass.IB_COMPLETION_ERROR,
            form="test",
            place=place(name, 500 + number, 330 + number / 10),
            text=f"{name}:21:22 [1] NCCL WARN NET/IB: Got completion with status=12 {quote}",
            speaker=Speaker(host=name, pid="21"),
            attributes={"status": "12"},
        )
        for number, name in enumerate(names[:-1])
    ]
    warning = Event(
        class_name=FindingClass.HOST_CONFIG_WARNING,
        form="test",
        place=place(names[0], 20, 5),
        text="NUMA balancing is on",
        speaker=Speaker(host=names[0]),
    )
    evidence = LogEvidence(
        inputs=[
            InputSummary(path=f"logs/{name}.log", bytes=90_000, lines=1000, kinds=["nccl"])
            for name in names
        ],
        events=[down, *echoes, warning],
        processes=[
            NcclProcess(
                host=name,
                pid="11",
                library="NCCL",
                versions=["2.21.5+cuda12.4"],
                networks=["IB"],
                nics=["mlx5_0", "mlx5_1"],
                transports=Counter({"NET/IB": 32, "P2P": 14}),
                gdr_channels=32,
                environment={"NCCL_IB_HCA": "mlx5_0" if name == bad else "mlx5"},
                first=place(name, 1, 1),
                last=place(name, 990, 620),
            )
            for name in names
        ],
    )
    return _postmortem(names, evidence, down, echoes, warning), evidence


def _postmortem(
    names: Sequence[str],
    evidence: LogEvidence,
    down: Event,
    echoes: Sequence[Event],
    warning: Event,
) -> Postmortem:
    bad = names[-1]
    port = Suspect(kind=SuspectKind.NIC, name="mlx5_0")
    host = Suspect(kind=SuspectKind.HOST, name=bad)
    return Postmortem(
        verdict=PostmortemVerdict.FINDINGS,
        inputs=evidence.inputs,
        library=Library(name="NCCL", versions=["2.21.5+cuda12.4"]),
        job=JobShape(ranks=8 * len(names), nodes=len(names), hosts=names),
        network=Network(name="IB", transports=["NET/IB", "P2P"], nics=["mlx5_0"], gdr="on"),
        benchmarks=[
            BenchmarkSummary(
                test="all_reduce_perf",
                ranks=8 * len(names),
                avg_busbw_gb_per_s=12.3456789,
                peak_busbw_gb_per_s=None,
                out_of_bounds=0,
                complete=False,
            )
        ],
        findings=[
            _finding([down], Role.ROOT, [host, port], f"All ranks of {bad} report it."),
            _finding(echoes, Role.CONSEQUENCE, [host], ""),
            _finding([warning], Role.WARNING, [], ""),
        ],
        isolate=[Isolation(host=bad, confidence=0.9512, because="ib_port_error on mlx5_0")],
        story=[f"{bad} lost its port.", "The other hosts timed out against it."],
    )


def _finding(
    events: Sequence[Event], role: Role, suspects: Iterable[Suspect], note: str
) -> Finding:
    first = events[0]
    class_ = FindingClass(first.class_name)
    time = first.place.time
    return Finding(
        class_=class_,
        role=role,
        severity=Severity.FATAL if role is Role.ROOT else Severity.INFO,
        confidence=0.9,
        suspects=list(suspects),
        attributes=dict(first.attributes),
        count=sum(event.count for event in events),
        first_seen=FirstSeen(
            path=first.place.path, line=first.place.line, time=time.text if time else None
        ),
        evidence=[
            EvidenceLine(path=one.place.path, line=one.place.line, text=one.text)
            for one in events[:3]
        ],
        explanation=f"{GUIDE[class_].meaning} {note}".strip(),
        actions=GUIDE[class_].actions,
    )


@pytest.fixture
def make_case() -> Callable[..., Case]:
    """Build a post-mortem and its evidence by hand: see ``postmortem_case``."""
    return postmortem_case
