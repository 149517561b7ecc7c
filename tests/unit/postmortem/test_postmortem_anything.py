"""Whatever the readers hand over, there is an answer that keeps the contract."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.diagnose.postmortem.classes import RULES
from ncdiag.model.benchmark import Benchmark, TableRank, TableRow
from ncdiag.model.finding import FindingClass, Role
from ncdiag.model.log import (
    CommunicatorState,
    Event,
    GroupProgress,
    InputSummary,
    LogEvidence,
    NcclProcess,
    RasIssue,
    RasMember,
    RasReport,
    Speaker,
)
from ncdiag.model.place import Clock, Moment, Place

NAMES = st.sampled_from(["a", "b", "c", "...-7", "n7", "10.0.0.1", "fe80::1%ib0", "", "x.example"])
NUMBERS = st.integers(-2, 40)
SECONDS = st.floats(0, 4e9, allow_nan=False)
MOMENTS = st.builds(
    Moment,
    text=st.sampled_from(["12:00", "2025-01-01T00:00:00Z", ""]),
    seconds=SECONDS,
    clock=st.sampled_from(Clock),
)
PLACES = st.builds(
    Place,
    path=st.sampled_from(["a.log", "b.log"]),
    line=st.integers(0, 99),
    time=st.none() | MOMENTS,
)
SPEAKERS = st.builds(
    Speaker,
    host=st.none() | NAMES,
    pid=st.none() | st.sampled_from(["1", "2"]),
    rank=st.none() | NUMBERS,
    label=st.none() | st.just("0"),
    address=st.none() | NAMES,
)
WORDS = st.dictionaries(
    st.sampled_from(
        ["status", "peer", "error", "pci", "hca", "exitcode", "xid", "host", "event", "local_gid"]
    ),
    st.sampled_from(["12", "4", "5", "-11", "-9", "1", "n7", "10.0.0.1", "Connection refused", ""]),
    max_size=4,
)
DETAILS = st.dictionaries(
    st.sampled_from(["host", "state", "fatal", "action", "recovered", "scope", "address"]),
    st.sampled_from(["up", "down", "yes", "no", "n7", "2", ""]),
    max_size=3,
)
EVENTS = st.builds(
    Event,
    class_name=st.sampled_from(FindingClass),
    form=st.just("any"),
    place=PLACES,
    text=st.text(max_size=9),
    speaker=SPEAKERS,
    attributes=WORDS,
    details=DETAILS,
    ranks=st.lists(NUMBERS, max_size=3).map(tuple),
    role=st.none() | st.sampled_from([role.value for role in Role]),
    count=st.integers(1, 5),
    last=st.none() | PLACES,
)
STATES = st.builds(
    CommunicatorState,
    pointer=st.just("0x1"),
    rank=st.none() | NUMBERS,
    ranks=st.none() | NUMBERS,
    comm_id=st.none() | st.sampled_from(["0x1", "0x2"]),
    started=st.none() | PLACES,
    completed=st.none() | PLACES,
    progressed=st.none() | PLACES,
    ended=st.none() | PLACES,
    last_call=st.none() | PLACES,
    calls=st.dictionaries(NUMBERS, st.tuples(NAMES, NAMES, NAMES), max_size=3),
)
PROCESSES = st.builds(
    NcclProcess,
    host=NAMES,
    pid=st.sampled_from(["1", "2"]),
    communicators=st.lists(STATES, max_size=2),
    networks=st.lists(st.sampled_from(["IB", "Socket"]), max_size=2),
    addresses=st.lists(NAMES, max_size=2),
    nic_speeds_mbit_per_s=st.dictionaries(NAMES, st.sampled_from(["100", "x", ""]), max_size=2),
    chain=st.lists(st.tuples(st.just("init.cc"), NUMBERS, NUMBERS), max_size=2),
    chain_place=st.none() | PLACES,
    connected=st.none() | PLACES,
    gdr_channels=st.integers(0, 2),
    plain_channels=st.integers(0, 2),
    net_devices=st.dictionaries(NUMBERS, NUMBERS, max_size=2),
    net_devices_max=st.none() | NUMBERS,
)
FIGURES = st.none() | st.floats(0, 1e3)
ROWS = st.builds(
    TableRow,
    size=st.integers(0, 1 << 40),
    type=st.just("float"),
    redop=st.just("sum"),
    out_of_place_busbw=FIGURES,
    in_place_busbw=FIGURES,
    out_of_place_wrong=FIGURES,
    in_place_wrong=FIGURES,
    place=st.none() | PLACES,
)
RANKS = st.builds(
    TableRank, rank=NUMBERS, host=NAMES, pid=NAMES, device=NAMES, bus_id=NAMES, name=NAMES
)
TABLES = st.builds(
    Benchmark,
    place=PLACES,
    ranks=st.lists(RANKS, max_size=3),
    heading=st.none() | PLACES,
    rows=st.lists(ROWS, max_size=5),
    complete=st.booleans(),
    out_of_bounds=st.none() | st.integers(0, 3),
)
PROGRESS = st.builds(
    GroupProgress,
    rank=st.none() | NUMBERS,
    group=st.none() | st.sampled_from(["PG 1", "PG 2"]),
    place=PLACES,
    group_rank=st.none() | NUMBERS,
    timed_out=st.none() | NUMBERS,
    op=st.none() | NAMES,
    enqueued=st.none() | NUMBERS,
    completed=st.none() | NUMBERS,
)
MEMBERS = st.builds(
    RasMember,
    rank=st.none() | NUMBERS,
    host=st.none() | NAMES,
    pid=st.none() | NAMES,
    gpus=st.none(),
    operation=st.none() | NUMBERS,
)
ISSUES = st.builds(
    RasIssue,
    kind=st.sampled_from(["INCOMPLETE", "DEAD", "ERROR", "MISMATCH", "TIMEOUT"]),
    place=PLACES,
    ranks=st.none() | NUMBERS,
    counts=st.dictionaries(NUMBERS, NUMBERS, max_size=3),
    members=st.lists(MEMBERS, max_size=3),
)
REPORTS = st.builds(
    RasReport, place=PLACES, issues=st.lists(ISSUES, max_size=2), complete=st.booleans()
)
EVIDENCE = st.builds(
    LogEvidence,
    inputs=st.lists(st.builds(InputSummary, path=st.just("a.log")), max_size=1),
    events=st.lists(EVENTS, max_size=6),
    processes=st.lists(PROCESSES, max_size=3),
    benchmarks=st.lists(TABLES, max_size=2),
    progress=st.lists(PROGRESS, max_size=3),
    ras=st.lists(REPORTS, max_size=1),
)


@settings(deadline=None)
@given(EVIDENCE)
def test_any_evidence_has_an_answer_that_keeps_the_contract(evidence: LogEvidence) -> None:
    answer = diagnose(evidence, {"10.0.0.1": "n7"})
    roots = [finding for finding in answer.findings if finding.role is Role.ROOT]
    assert (answer.verdict == "findings") == bool(roots)
    assert list(answer.findings[: len(roots)]) == roots
    assert all(0 <= finding.confidence <= 1 for finding in answer.findings)
    assert all(entry.host for entry in answer.isolate)
    assert len({entry.host for entry in answer.isolate}) == len(answer.isolate)


@settings(deadline=None)
@given(EVIDENCE)
def test_the_order_of_events_of_other_inputs_changes_nothing(evidence: LogEvidence) -> None:
    first = diagnose(evidence)
    by_path = sorted(evidence.events, key=lambda event: event.place.path, reverse=True)
    evidence.events = by_path
    again = diagnose(evidence)
    assert [f.class_ for f in again.findings] == [f.class_ for f in first.findings]
    assert again.isolate == first.isolate


def test_each_class_has_a_rule() -> None:
    assert set(RULES) == set(FindingClass)
