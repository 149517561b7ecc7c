"""What is read below a root, and what never is."""

import os
import threading
from pathlib import Path

import pytest

from ncdiag.health.sources.found import unanswered
from ncdiag.health.sources.place import HostRoot, NotRegularError, played
from ncdiag.health.topology import programs
from ncdiag.health.topology.programs import Outcome
from ncdiag.model.health import SourceState


@pytest.fixture
def root(tmp_path: Path) -> HostRoot:
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "root/recorded").mkdir(parents=True)
    return HostRoot(tmp_path / "root")


def recorded(root: HostRoot, text: str) -> None:
    (root.root / "recorded/clock.txt").write_text(text)


def test_the_root_of_this_host_is_live_and_any_other_is_not(root: HostRoot) -> None:
    assert HostRoot().live
    assert not root.live
    assert HostRoot().path("/sys/class/net") == Path("/sys/class/net")


@pytest.mark.parametrize("name", ["/../secret", "../../secret", "/recorded/../../secret", "/a\0b"])
def test_names_that_lead_out_of_the_root_are_not_there(root: HostRoot, name: str) -> None:
    assert root.text(name) is None
    assert root.path(name).is_relative_to(root.root)


@pytest.mark.parametrize("target", ["../secret", "/etc/hostname", "..", "/"])
def test_links_that_lead_out_of_the_root_are_not_followed(root: HostRoot, target: str) -> None:
    (root.root / "link").symlink_to(target)
    assert root.text("/link") is None
    assert root.text("/link/secret") is None
    assert root.names("/link") == []
    assert not root.exists("/link")
    assert root.target("/link") == ""


def test_links_inside_the_root_are_followed(root: HostRoot) -> None:
    (root.root / "sys/devices/0000:19:00.0").mkdir(parents=True)
    (root.root / "sys/devices/0000:19:00.0/vendor").write_text("0x15b3\n")
    (root.root / "sys/device").symlink_to("devices/0000:19:00.0")
    assert root.text("/sys/device/vendor") == "0x15b3"
    assert root.target("/sys/device") == "0000:19:00.0"
    assert root.target("/sys/devices/0000:19:00.0") == ""


def test_links_in_a_circle_lead_nowhere(root: HostRoot) -> None:
    (root.root / "a").symlink_to("b")
    (root.root / "b").symlink_to("a")
    assert root.text("/a") is None
    assert root.names("/a") == []
    assert root.target("/a") == ""
    assert not root.exists("/a/c")


def test_of_a_large_file_a_page_is_read(root: HostRoot) -> None:
    with (root.root / "large").open("wb") as file:
        file.truncate(3 << 30)
    assert root.read("/large") == bytes(4096)
    assert root.read("/large", 10) == bytes(10)


def test_fifos_folders_and_devices_are_no_files(root: HostRoot) -> None:
    os.mkfifo(root.root / "fifo")
    for name in ("/fifo", "/recorded"):
        assert root.text(name) is None
        with pytest.raises(NotRegularError):
            root.open(name)
    with pytest.raises(NotRegularError):
        HostRoot().open("/dev/null")


def test_a_fifo_in_place_of_a_record_fails_at_once(root: HostRoot) -> None:
    os.mkfifo(root.root / "recorded/clock.txt")
    answer = root.recorded("clock.txt")
    assert (answer.outcome, answer.reason) == (Outcome.FAILED, "clock.txt: is no regular file")


def test_a_record_is_given_in_place_of_asking(root: HostRoot) -> None:
    recorded(root, "told\n")
    answer = root.ask(("no-such-program",), timeout_s=1, recorded="clock.txt")
    assert (answer.outcome, answer.output) == (Outcome.CAPTURED, b"told\n")
    assert unanswered(answer) is None


def test_what_was_not_recorded_is_absent(root: HostRoot) -> None:
    found = unanswered(root.ask(("true",), timeout_s=1, recorded="clock.txt"))
    assert found
    assert (found.state, found.reason) == (SourceState.ABSENT, "clock.txt is not recorded")


@pytest.mark.parametrize(
    ("text", "state", "reason"),
    [
        ("!denied\n", SourceState.DENIED, "clock.txt: permission denied"),
        ("!failed no \x1b[31m device\n", SourceState.FAILED, r"no \x1b[31m device"),
        ("!failed", SourceState.FAILED, "clock.txt failed"),
    ],
)
def test_a_record_plays_an_outcome(
    root: HostRoot, text: str, state: SourceState, reason: str
) -> None:
    recorded(root, text)
    found = unanswered(root.recorded("clock.txt"))
    assert found
    assert (found.state, found.reason) == (state, reason)


@pytest.mark.parametrize("text", [b"!hung up\n", b"!deny", b"!denied twice", b" !hung", b""])
def test_a_record_that_begins_otherwise_is_what_it_says(text: bytes) -> None:
    assert played(text, "clock.txt") is None


def test_a_record_that_hangs_never_answers(root: HostRoot) -> None:
    recorded(root, "!hung\n")
    came_back = threading.Event()

    def ask() -> None:
        root.recorded("clock.txt")
        came_back.set()

    threading.Thread(target=ask, daemon=True).start()
    assert not came_back.wait(0.2)


def test_a_record_without_bound_is_refused(root: HostRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MAX_BYTES", 1 << 20)
    with (root.root / "recorded/clock.txt").open("wb") as file:
        file.truncate(3 << 30)
    answer = root.recorded("clock.txt")
    assert (answer.outcome, answer.reason) == (Outcome.FAILED, "clock.txt holds more than 1 MiB")


def test_an_unreadable_record_is_denied(root: HostRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(root, "told")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    answer = root.recorded("clock.txt")
    assert (answer.outcome, answer.denied) == (Outcome.FAILED, True)
    assert answer.reason == "clock.txt: permission denied"
    assert root.text("/recorded/clock.txt") is None


def test_a_program_that_gives_no_answer_in_time_is_told_from_one_that_fails() -> None:
    late = programs.ask(("sleep", "30"), timeout_s=0.1)
    wrong = programs.ask(("false",), timeout_s=10)
    assert (late.timed_out, wrong.timed_out) == (True, False)
    assert [unanswered(one).state for one in (late, wrong)] == [  # type: ignore[union-attr]
        SourceState.TIMED_OUT,
        SourceState.FAILED,
    ]
