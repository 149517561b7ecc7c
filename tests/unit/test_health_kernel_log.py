"""What the kernel log tells of broken hardware."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from host_trees import DMESG, XID_79, HostTree

from ncdiag.health.sources import kernel_lines, kernel_log
from ncdiag.health.sources.found import Found
from ncdiag.health.sources.kernel_ring import KernelRing, line_of
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.topology.programs import Answer, Outcome
from ncdiag.model.health import KernelEvent, SourceState
from ncdiag.read.signatures.kernel import ROWS


def events(tmp_path: Path, text: str) -> tuple[KernelEvent, ...]:
    HostTree(tmp_path).write("recorded/dmesg.txt", text)
    found = kernel_log.collect(HostRoot(tmp_path))
    assert (found.state, found.reason) == (SourceState.READ, None)
    told = found.facts["kernel_events"]
    assert isinstance(told, tuple)
    return told


def test_a_gpu_off_the_bus_is_told_once_with_number_device_and_times(tmp_path: Path) -> None:
    link, gpu, action = events(tmp_path, DMESG + XID_79)
    assert gpu == KernelEvent(
        class_="gpu_fell_off_bus",
        code=79,
        device="0000:5d:00.0",
        since_boot_s=90211.417729,
        last_since_boot_s=90213.000001,
        count=2,
        text="[90211.417729] NVRM: Xid (PCI:0000:5d:00): 79, pid=4711, name=python, GPU has fallen "
        "off the bus.",
    )
    assert (action.class_, action.code, action.count) == ("xid_followup", 154, 1)
    assert (link.class_, link.code, link.device) == ("pcie_error", None, "0000:5c:01.0")


@pytest.mark.parametrize(
    ("line", "class_", "code", "device"),
    [
        (
            "NVRM: Xid (PCI:0000:2A:00): 95, pid=7, name=python, Uncontained: LTC TAG (0x1,0x0).",
            "gpu_memory_error",
            95,
            "0000:2a:00.0",
        ),
        (
            "nvidia-nvswitch1: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 11 LTSSM Fault Up",
            "nvswitch_fatal",
            20034,
            "0000:c4:00.0",
        ),
        ("mlx5_core 0000:19:00.0 ens1np0: Link down", "nic_link_down", None, "0000:19:00.0"),
        (
            "Out of memory: Killed process 4711 (python) total-vm:9000kB, anon-rss:9000kB, UID:0",
            "oom_kill",
            None,
            None,
        ),
    ],
)
def test_a_fault_has_the_name_that_a_post_mortem_gives_it(
    tmp_path: Path, line: str, class_: str, code: int | None, device: str | None
) -> None:
    (event,) = events(tmp_path, f"[  100.000001] {line}")
    assert (event.class_, event.code, event.device) == (class_, code, device)
    assert event.since_boot_s == 100.000001


def test_an_error_that_was_corrected_weighs_less(tmp_path: Path) -> None:
    line = "pcieport 0000:00:01.0: AER: Corrected error received: 0000:18:00.0"
    (event,) = events(tmp_path, f"[  100.000001] {line}")
    assert (event.class_, event.severity) == ("pcie_error", "degraded")


ACTION = (
    "[{:5d}.000001] NVRM: Xid (PCI:0000:2a:00): 154, GPU recovery action changed from 0x{} (W) to "
    "0x{} (W)"
)


def test_the_last_word_of_xid_154_is_kept(tmp_path: Path) -> None:
    lines = [ACTION.format(9000, 0, 1), ACTION.format(9900, 1, 0)]
    (event,) = events(tmp_path, "\n".join(lines))
    assert event.text.endswith("to 0x0 (W)")
    assert (event.count, event.since_boot_s, event.last_since_boot_s) == (
        2,
        9000.000001,
        9900.000001,
    )
    # The same words again are counted on the first line of theirs, and are the newest all the same.
    (event,) = events(tmp_path, "\n".join([*lines, ACTION.format(9999, 0, 1)]))
    assert event.text.endswith("to 0x1 (W)")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "pcieport 0000:5d:01.0: AER: Corrected error received: 0000:5e:00.0",
            "pcieport 0000:5d:01.0: AER: Uncorrected (Fatal) error received: 0000:5e:00.0",
        ),
        (
            "pcieport 0000:5d:01.0: AER: Uncorrected (Non-Fatal) error received: 0000:5e:00.0",
            "pcieport 0000:5d:01.0: AER: Uncorrected (Fatal) error received: 0000:5e:00.0",
        ),
        (
            "NVRM: Xid (PCI:0000:3a:00): 74, NVLink: non-fatal error detected on link 5(0x0)",
            "NVRM: Xid (PCI:0000:3a:00): 74, NVLink: fatal error detected on link 5(0x0)",
        ),
        (
            "NVRM: Xid (PCI:0000:3a:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 07 (0x1)",
            "NVRM: Xid (PCI:0000:3a:00): 149, NETIR_LINK_DOWN Nonfatal XC0 i0 Link 07 (0x1)",
        ),
        (
            "[Hardware Error]: Deferred error, no action required.",
            "[Hardware Error]: Uncorrected, software containable error.",
        ),
    ],
)
def test_a_heavier_line_is_not_counted_on_a_lighter_one(
    tmp_path: Path, first: str, second: str
) -> None:
    told = events(tmp_path, f"[ 100.000001] {first}\n[ 200.000001] {second}")
    assert [(one.count, one.since_boot_s) for one in told] == [(1, 100.000001), (1, 200.000001)]


def test_links_that_come_up_and_ordinary_lines_are_no_events(tmp_path: Path) -> None:
    up = "\n[   20.000001] mlx5_core 0000:19:00.0 ens1np0: Link up"
    assert events(tmp_path, DMESG + up) == ()


def test_what_programs_of_a_job_say_is_no_event_of_the_kernel(tmp_path: Path) -> None:
    lines = "node1:7:7 [0] NCCL WARN Cuda failure 'out of memory'\nRuntimeError: CUDA error"
    assert events(tmp_path, lines) == ()


def test_stamps_of_the_wall_clock_give_no_time_since_boot(tmp_path: Path) -> None:
    line = "NVRM: Xid (PCI:0000:5d:00): 79, pid=7, name=python, GPU has fallen off the bus."
    (event,) = events(tmp_path, f"[Mon Nov 30 19:35:36 2026] {line}")
    assert (event.code, event.since_boot_s) == (79, None)


def test_a_flood_is_counted_and_keeps_its_first_and_last_time(tmp_path: Path) -> None:
    lines = "\n".join(
        f"[{second:5d}.000000] pcieport 0000:00:01.0: AER: Corrected error received: "
        f"0000:{second % 3:02x}:00.0"
        for second in range(100, 3100)
    )
    told = events(tmp_path, lines)
    assert [(event.device, event.count) for event in told] == [
        ("0000:01:00.0", 1000),
        ("0000:02:00.0", 1000),
        ("0000:00:00.0", 1000),
    ]
    assert (told[0].since_boot_s, told[0].last_since_boot_s) == (100.0, 3097.0)


def test_few_lines_and_floods_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "\n".join(
        f"[{number:5d}.000001] {row.sample}" for number, row in enumerate(ROWS, start=100)
    )
    few = events(tmp_path, lines)
    monkeypatch.setattr(kernel_lines, "_MOST_LINES", 0)
    flood = events(tmp_path, lines)
    assert len(few) > 20
    assert [replace(one, text="") for one in few] == [replace(one, text="") for one in flood]


def test_more_devices_than_any_host_has_end_in_a_count(tmp_path: Path) -> None:
    lines = "\n".join(
        f"[  100.000000] NVRM: Xid (PCI:{number:04x}:18:00): 79, pid=1, GPU has fallen off the bus."
        for number in range(3000)
    )
    told = events(tmp_path, lines)
    assert sum(event.count for event in told) == 3000
    assert len(told) <= 600


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (None, SourceState.ABSENT),
        ("!denied", SourceState.DENIED),
        ("!failed gone", SourceState.FAILED),
        ("", SourceState.READ),
    ],
)
def test_a_record_that_is_missing_denied_or_broken_is_told_apart(
    tmp_path: Path, text: str | None, state: SourceState
) -> None:
    if text is not None:
        HostTree(tmp_path).write("recorded/dmesg.txt", text)
    assert kernel_log.collect(HostRoot(tmp_path)).state is state


def test_a_log_too_long_for_its_time_keeps_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_log, "_READING_S", -1.0)
    HostTree(tmp_path).write("recorded/dmesg.txt", DMESG + XID_79)
    found = kernel_log.collect(HostRoot(tmp_path))
    assert (found.state, found.facts) == (SourceState.TIMED_OUT, {"kernel_events": ()})
    assert found.reason == "dmesg.txt is large: 0 of 0 MiB were read in time"


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (b"6,339,5140900,-;NET: Registered\n SUBSYSTEM=net\n", b"[    5.140900] NET: Registered\n"),
        (b"4,1,90211417729,-,caller=T1;NVRM: a;b\n", b"[90211.417729] NVRM: a;b\n"),
        (b"30,2,5140900,-;systemd[1]: Started.\n", b""),  # by a program
        (b"x,2,5140900,-;text\n", b""),
        (b"6,2;text\n", b""),
        (b"no record", b""),
        (b"", b""),
        (b"9999999999,2,3,-;text", b""),
    ],
)
def test_records_of_the_ring_become_lines(record: bytes, line: bytes) -> None:
    assert line_of(record) == line


def test_the_ring_is_read_into_buffers_of_any_size(tmp_path: Path) -> None:
    # A file stands in: a read of the ring gives a record, here the first is all there is.
    path = tmp_path / "kmsg"
    path.write_bytes(b"4,1,1000001,-;" + b"x" * 50 + b"\n")
    ring = KernelRing(str(path))
    parts, buffer = [], memoryview(bytearray(16))
    while count := ring.readinto(buffer):
        parts.append(bytes(buffer[:count]))
    assert b"".join(parts) == b"[    1.000001] " + b"x" * 50 + b"\n"


class Refusing(HostRoot):
    """A live host that gives ``answers`` in place of programs."""

    answers: dict[str, Answer]

    def ask(self, argv: object, **_: object) -> Answer:  # type: ignore[override]
        assert isinstance(argv, tuple)
        return self.answers[argv[0]]


def live(monkeypatch: pytest.MonkeyPatch, error: OSError, **answers: Answer) -> Found:
    def refuse(*_: object) -> int:
        raise error

    monkeypatch.setattr(os, "open", refuse)
    root = Refusing()
    Refusing.answers = answers
    return kernel_log.collect(root)


MISSING = FileNotFoundError(2, "No such file or directory")
DENIED = PermissionError(13, "Permission denied")
NOTHING = Answer(outcome=Outcome.ABSENT, reason="not installed")
REFUSED = Answer(
    outcome=Outcome.FAILED,
    reason="dmesg failed (exit code 1): dmesg: read kernel buffer failed: Operation not permitted",
)
TOLD = Answer(outcome=Outcome.CAPTURED, output=(DMESG + XID_79).encode())
EMPTY = Answer(outcome=Outcome.CAPTURED)


def test_without_a_ring_the_log_is_as_programs_print_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = live(monkeypatch, MISSING, dmesg=NOTHING, journalctl=TOLD)
    assert (found.state, len(found.facts["kernel_events"])) == (SourceState.READ, 3)


def test_a_log_that_we_may_not_see_is_denied_and_no_empty_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = live(monkeypatch, DENIED, dmesg=REFUSED, journalctl=EMPTY)
    assert (found.state, found.reason) == (SourceState.DENIED, "/dev/kmsg: permission denied")
    found = live(monkeypatch, MISSING, dmesg=REFUSED, journalctl=NOTHING)
    assert found.state is SourceState.DENIED


def test_a_host_without_any_log_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = live(monkeypatch, MISSING, dmesg=NOTHING, journalctl=NOTHING)
    assert (found.state, found.reason) == (SourceState.ABSENT, "the host has no kernel log")
