"""The whole table: every row finds its sample, leaves its near miss, and takes linear time."""

import re
import time
from collections import Counter

import pytest

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.model.log import Event, LogEvidence
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.signatures.reader import SignatureReader, match
from ncdiag.read.signatures.row import ANY_LEVEL, DETAIL, RANKS, Signature
from ncdiag.read.signatures.table import TABLE

_VERBS = "status vendor_err peer hca local_gid remote_gid direction"
ATTRIBUTES = {
    "ib_completion_error": _VERBS,
    "ib_flush_error": _VERBS,
    "ib_port_error": "event hca",
    "ib_device_fatal": "event hca",
    "ib_qp_fatal_event": "event hca",
    "ib_modify_qp_failed": "errno error hca local_gid remote_gid",
    "ib_memory_registration_failed": "call error",
    "ib_verbs_call_failed": "call error",
    "bootstrap_connect_failed": "error peer interface",
    "bootstrap_no_interface": "interface",
    "bootstrap_bind_failed": "error address",
    "bootstrap_mismatch": "expected got",
    "socket_connect_failed": "error peer interface",
    "socket_closed_by_peer": "peer",
    "socket_error": "error peer",
    "socket_handshake_failed": "got expected peer",
    "ofi_completion_error": "rc err error provider_errno",
    "ofi_memory_registration": "rc error",
    "ofi_endpoint_failed": "error",
    "sharp_failed": "rc",
    "remote_error": "op seq",
    "unhandled_system_error": "",
    "internal_error": "",
    "invalid_usage": "error",
    "proxy_failure": "operation",
    "comm_aborted": "",
    "no_transport_found": "source target",
    "topology_error": "error",
    "collective_mismatch": "got expected peer",
    "optional_library_missing": "library",
    "network_fallback": "network",
    "resource_limit": "error",
    "cuda_error": "code error",
    "cuda_out_of_memory": "error",
    "cuda_invalid_device": "error",
    "peer_mapping_exhausted": "code",
    "duplicate_gpu": "bus_id",
    "p2p_disabled": "gpus",
    "shm_no_space": "errno error size",
    "nvls_multicast_failed": "code error",
    "mnnvl_failed": "",
    "xid_application_fault": "xid pci",
    "gpu_memory_error": "xid pci",
    "gpu_fell_off_bus": "xid pci",
    "gsp_timeout": "xid pci",
    "nvlink_error": "xid pci link unit",
    "gpu_internal_fault": "xid pci",
    "xid_followup": "xid pci",
    "nvswitch_fatal": "sxid port switch",
    "nvswitch_nonfatal": "sxid port switch",
    "nic_firmware_fault": "device error",
    "nic_link_down": "device interface",
    "pcie_error": "device error",
    "host_memory_error": "error",
    "oom_kill": "pid process constraint",
    "kernel_stall": "process",
    "torch_watchdog_timeout": "op seq timeout_ms group",
    "torch_desync": "op seq",
    "torch_watchdog_stuck": "seconds group",
    "store_failure": "error peer",
    "elastic_worker_failed": "exitcode local_rank host",
    "process_crash": "signal",
    "process_died": "pid exitcode",
    "application_exception": "exception",
    "terminated_by_launcher": "signal",
    "job_time_limit": "job",
    "job_cancelled": "reason",
    "ras_mismatch": "op group",
    "ras_incomplete": "process peer",
    "host_config_warning": "setting",
    "hang_init": "started completed expected",
    "hang_mid_run": "op seq",
}
# Classes whose attributes nobody has fixed yet.
FREE = {"storage_error", "thermal_power"}
# Classes that no single line tells: tables, facts, silences and reports of several lines.
DERIVED = {
    "network_fallback",
    "ras_mismatch",
    "data_corruption",
    "single_rank_run",
    "low_bandwidth_gdr_one_sided",
    "gdr_disabled",
    "slow_node",
    "bandwidth_cliff",
    "hang_first_collective",
}
# A line that says two things: which class its row has, and which it tells besides.
WANTED_BESIDES = {
    # The reason that a communicator was aborted for is quoted.
    ("comm_aborted", "unhandled_system_error"),
    # A worker of a data loader killed by SIGBUS, with the usual reason for it.
    ("process_crash", "shm_no_space"),
}
LOCATIONS = ("transport/nvls.cc:254", "transport/net_socket.cc:40")
SIZE = 16 * 1024


def line(text: str, level: str | None = "WARN", location: str | None = None) -> Line:
    return Line(text=text, place=Place("job.log", 1), level=level, location=location)


def line_for(row: Signature, text: str) -> Line:
    """The line that carries ``text`` as ``row`` expects it."""
    level = "WARN" if "WARN" in row.levels else min(row.levels, key=str)
    level = None if None in row.levels and "WARN" not in row.levels else level
    places = [place for place in LOCATIONS if row.location and row.location.search(place)]
    return line(text, level, places[0] if places else None)


def events_of(*lines: Line) -> list[Event]:
    """What the reader makes of lines, with the needles a scanner would find in them."""
    reader = SignatureReader(TABLE)
    for each in lines:
        raw = each.text.encode()
        reader.read(each, [needle for needle in sorted(reader.needles) if needle in raw])
    evidence = LogEvidence()
    reader.finish(evidence)
    return evidence.events


def names(rows: tuple[Signature, ...]) -> list[str]:
    return [row.name for row in rows]


each_row = pytest.mark.parametrize("row", TABLE, ids=names(TABLE))


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(names(TABLE)).items() if count > 1] == []


def test_every_class_that_a_line_can_tell_has_a_row() -> None:
    assert {c.value for c in FindingClass} - {row.class_.value for row in TABLE} == DERIVED


@each_row
def test_sample_matches_its_row(row: Signature) -> None:
    event = match(row, line_for(row, row.sample))
    assert event
    assert event.class_name == row.class_
    assert event.form == row.name


@each_row
def test_near_miss_does_not_match(row: Signature) -> None:
    assert match(row, line_for(row, row.near_miss)) is None


@each_row
def test_sample_contains_a_needle(row: Signature) -> None:
    assert any(needle in row.sample for needle in (row.needle, *row.further))


@each_row
def test_needles_are_worth_looking_for(row: Signature) -> None:
    assert min(len(needle) for needle in (row.needle, *row.further)) >= 3


@each_row
def test_reader_gives_the_class_of_the_row(row: Signature) -> None:
    classes = {event.class_name for event in events_of(line_for(row, row.sample))}
    assert row.class_ in classes
    others = {(row.class_.value, other) for other in classes - {row.class_.value}}
    assert others <= WANTED_BESIDES


@each_row
def test_attributes_are_those_of_the_class(row: Signature) -> None:
    if row.class_.value in FREE:
        return
    names_ = {*row.pattern.compiled().groupindex, *row.constants}
    event = match(row, line_for(row, row.sample))
    assert event
    allowed = set(ATTRIBUTES[row.class_.value].split())
    assert set(event.attributes) <= allowed
    if row.refine is None:
        assert {n for n in names_ if not n.startswith((DETAIL, RANKS))} <= allowed
    assert all(isinstance(value, str) for value in event.attributes.values())


@each_row
def test_a_signal_is_a_number(row: Signature) -> None:
    event = match(row, line_for(row, row.sample))
    assert event
    assert event.attributes.get("signal", "0").isdecimal()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Fatal Python error: Bus error", "7"),
        ("Fatal Python error: Illegal instruction", "4"),
        ("Fatal Python error: Floating-point exception", "8"),
        ("srun: error: n4: task 3: Segmentation fault", "11"),
        ("worker terminated with signal SIGFPE", "8"),
        ("Sending process 4711 closing signal SIGINT", "2"),
    ],
)
def test_a_signal_by_name_or_text_is_published_by_its_number(text: str, number: str) -> None:
    assert [event.attributes for event in events_of(line(text, None))] == [{"signal": number}]


@each_row
def test_row_is_filled_in(row: Signature) -> None:
    assert row.source
    assert row.versions
    assert row.levels <= ANY_LEVEL
    assert row.role is None or isinstance(row.role, Role)
    assert row.severity is None or isinstance(row.severity, Severity)


def seconds(pattern: re.Pattern[str], text: str) -> float:
    """Time of this thread alone, so that a busy machine does not count."""
    start = time.thread_time()
    pattern.search(text)
    return time.thread_time() - start


def adversaries(sample: str) -> list[str]:
    """Pieces that lead a pattern on and never let it end."""
    first, last = sample.split(maxsplit=1)[0], sample.rsplit(maxsplit=1)[-1]
    return [sample[: len(sample) // 2 or 1], sample[:-1], f"{first} ", last, "1"]


@each_row
def test_time_grows_with_the_line_and_no_faster(row: Signature) -> None:
    for piece in adversaries(row.sample):
        text = (piece * (4 * SIZE // len(piece) + 1))[: 4 * SIZE]
        long = seconds(row.pattern.compiled(), text)
        if long < 0.02:  # nothing to compare: below what a clock can be trusted with
            continue
        assert long < 12 * seconds(row.pattern.compiled(), text[:SIZE])


def test_first_row_of_a_class_wins() -> None:
    text = (
        "NET/IB: Got completion from peer 10.9.0.4<1> with status=12 opcode=0 len=0 vendor err 129"
    )
    assert [event.form for event in events_of(line(text))] == ["ib-completion-hca"]


def test_equal_lines_are_counted() -> None:
    text = line("NET/IB : Got async event : port error")
    (event,) = events_of(text, text, text)
    assert event.count == 3


def test_repeats_that_a_collector_left_out_are_counted() -> None:
    told = Line(text="NET/IB : Got async event : port error", place=Place("x", 1), repeats=5)
    assert events_of(told)[0].count == 6


def test_traces_are_no_findings() -> None:
    text = "NET/IB: Got completion from peer 10.9.0.4<1> with status=12 opcode=0 len=0 vendor err 1"
    assert events_of(line(text, "TRACE")) == []
