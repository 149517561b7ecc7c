"""Other spellings of messages: of old releases, of other programs, and as people paste them."""

from collections.abc import Sequence

import pytest

from ncdiag.model.log import Event
from ncdiag.read.log_reader import LogReader


def events_of(*lines: str) -> list[Event]:
    reader = LogReader("job.log")
    wanted: Sequence[bytes] = sorted(reader.needles | reader.facts)
    for number, line in enumerate(lines, 1):
        raw = line.encode()
        reader.take(raw, number, tuple(needle for needle in wanted if needle in raw))
    return reader.finish().events


@pytest.mark.parametrize(
    ("line", "class_", "attributes"),
    [
        (
            "The client socket has timed out after 45s while trying to connect to elm4:29511",
            "store_failure",
            {"peer": "elm4", "error": "timed out"},
        ),
        (
            "elm4:70:71 [0] NCCL WARN Timeout waiting for connection from rank 12",
            "bootstrap_connect_failed",
            {"error": "Timeout waiting for connection"},
        ),
        (
            "Unable to determine the device handle for GPU0000:AB:00.0: GPU is lost.",
            "gpu_fell_off_bus",
            {"pci": "0000:AB:00.0"},
        ),
        (
            "Unable to determine the device handle for GPU3: 0000:AB:00.0: GPU is lost.",
            "gpu_fell_off_bus",
            {"pci": "0000:AB:00.0"},
        ),
        (
            "elm4:70:71 [0] NCCL WARN Cuda failure 719 'unspecified launch failure",
            "cuda_error",
            {"code": "719", "error": "unspecified launch failure"},
        ),
        (
            "elm4:70:71 [0] include/socket.h:404 WARN Connection closed by remote peer",
            "socket_closed_by_peer",
            {},
        ),
        (
            "[2031-01-02 03:04:05,678] [INFO] [launch.py:99:sigkill_handler] Killing subprocess 88",
            "terminated_by_launcher",
            {},
        ),
    ],
)
def test_the_class_and_what_it_carries(line: str, class_: str, attributes: dict[str, str]) -> None:
    found = [event for event in events_of(line) if event.class_name == class_]
    assert len(found) == 1
    assert attributes.items() <= found[0].attributes.items()


@pytest.mark.parametrize(
    "line",
    [
        "      return ncclRemoteError;",
        "    if (ret == ncclSystemError) {",
        "    case ncclInvalidUsage:",
    ],
)
def test_source_code_is_no_event(line: str) -> None:
    assert events_of(line) == []


def test_a_journal_indents_the_further_lines_of_a_message() -> None:
    (event,) = events_of(
        "Mar 02 11:12:13 elm4 kernel: NVRM: The NVIDIA GPU 0000:ab:00.0",
        "                             NVRM: (PCI ID: 10de:2330) installed in this system has",
        "                             NVRM: fallen off the bus and is not responding to commands.",
    )
    assert event.attributes == {"pci": "0000:ab:00.0"}
    assert event.speaker.host == "elm4"


def test_what_chats_and_pages_make_of_a_line_is_undone() -> None:
    blank, quote = "\u00a0", "\u2019"
    line = f"elm4:70:71{blank}[0]{blank}NCCL{blank}WARN{blank}Cuda{blank}failure{blank}719{blank}"
    (typeset,) = events_of(f"{line}{quote}unspecified launch failure{quote}")
    assert typeset.attributes == {"code": "719", "error": "unspecified launch failure"}
    assert typeset.speaker.host == "elm4"
    (linked,) = events_of(
        "elm4:70:71 [0] NCCL WARN NET/IB : Got completion from peer "
        "[10.8.1.2](http://10.8.1.2/)<4711> with error 12, opcode 0, len 0, vendor err 129"
    )
    assert linked.attributes["peer"] == "10.8.1.2"
