"""Two words that a collector puts before each line, and what stands behind them."""

import pytest

from ncdiag.read.line import Line
from ncdiag.read.peel import Peeler

XID = "NVRM: Xid (PCI:0000:4b:00): 31, pid=77, name=demo"
EDAC = "EDAC MC0: 1 UE memory read error on demo (channel:0 slot:1)"
FIRMWARE = "{3}[Hardware Error]: event severity: fatal"


def peel(*raws: str) -> list[Line]:
    peeler = Peeler("a.log")
    lines = [
        line for number, raw in enumerate(raws, 1) for line in peeler.feed(raw.encode(), number)
    ]
    return [*lines, *peeler.finish()]


@pytest.mark.parametrize("text", [XID, EDAC, FIRMWARE, "demo: link is up"])
@pytest.mark.parametrize(
    "header",
    [
        "Jun 01 01:02:03 vq-07 kernel: ",
        "2026-06-01T01:02:03+00:00 vq-07 kernel: ",
        "2026-06-01T01:02:03Z vq-07 kernel: ",
    ],
)
def test_a_pod_and_its_container_before_a_header_hide_no_host(header: str, text: str) -> None:
    (line,) = peel(f"agent-0 reader {header}{text}")
    assert (line.text, line.speaker.host, line.speaker.label) == (text, "vq-07", "agent-0")
    assert line.origin == "kernel"


@pytest.mark.parametrize("text", [EDAC, FIRMWARE, "pcieport 0000:50:01.0: AER: demo"])
def test_a_host_before_its_kernel_is_believed_by_what_the_kernel_says(text: str) -> None:
    (line,) = peel(f"vq-07 kernel: {text}")
    assert (line.text, line.speaker.host) == (text, "vq-07")


def test_two_words_that_come_once_before_a_message_stay() -> None:
    (line,) = peel("attempt-2 failed demo")
    assert line.text == "attempt-2 failed demo"


@pytest.mark.parametrize(
    ("stream", "host"),
    [
        ("demo-job/algo-2-1780275723", "algo-2"),
        ("team/demo/0123456789abcdef0123456789abcdef", None),
    ],
)
def test_a_stream_behind_a_time_is_a_label_and_may_name_its_host(
    stream: str, host: str | None
) -> None:
    time = "2026-06-01T01:02:03.123000+00:00"
    message, torch = peel(f"{time} {stream} hello", f"{time} {stream} [rank3]: hello again")
    assert (message.text, message.speaker.host, message.speaker.label) == ("hello", host, stream)
    assert (torch.text, torch.speaker.host, torch.speaker.rank) == ("hello again", host, 3)
    assert message.place.time
    assert message.place.time.seconds == 1780275723.123


@pytest.mark.parametrize("word", ["data/part-2-1780275723", "checkpoints/demo-12", "a/b"])
def test_a_path_behind_a_time_stays(word: str) -> None:
    (line,) = peel(f"2026-06-01T01:02:03Z {word} loaded")
    assert line.text == f"{word} loaded"
