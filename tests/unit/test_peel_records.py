"""Glued records come apart, cut ones together, doubled ones count once."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.place import Clock
from ncdiag.read.line import Line
from ncdiag.read.peel import Peeler

INFO = "node-4:71:75 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[2] via P2P/IPC"
WARN = "node-5:81:85 [0] proxy.cc:17 NCCL WARN made up for a test"
TORCH = "[rank6]:[E601 01:02:03.250000000 ProcessGroupNCCL.cpp:91] [Rank 6] made up"
OLD_TORCH = "[E ProcessGroupNCCL.cpp:91] [Rank 6] made up"
XID = "NVRM: Xid (PCI:0000:4b:00): 31, pid=77, name=demo"
VERSION = "NCCL version 2.9.9+cuda11.3"


def peel(*raws: str | bytes) -> list[Line]:
    peeler = Peeler("a.log")
    lines: list[Line] = []
    for number, raw in enumerate(raws, 1):
        lines += peeler.feed(raw.encode() if isinstance(raw, str) else raw, number)
    return lines + list(peeler.finish())


def shown(*raws: str | bytes) -> list[str]:
    return [line.shown for line in peel(*raws)]


GLUED = (
    (INFO + WARN.replace("node-5", "node-4"), [INFO, WARN.replace("node-5", "node-4")]),
    (f"{INFO} {WARN}", [INFO, WARN]),
    (f"{INFO}{TORCH}", [INFO, TORCH]),
    (f"{TORCH}{TORCH}", [TORCH, TORCH]),
    (f"step 3 |####   | 4/9{OLD_TORCH}", ["step 3 |####   | 4/9", OLD_TORCH]),
    (f"{OLD_TORCH}{OLD_TORCH}", [OLD_TORCH, OLD_TORCH]),
    (f"{VERSION}{VERSION}{VERSION}", [VERSION] * 3),
    (f"plain text {WARN}", ["plain text", WARN]),
    (f"{XID}{XID}", [XID, XID]),
    (f"{INFO}[2026-06-01 01:02:03] {WARN}", [INFO, f"[2026-06-01 01:02:03] {WARN}"]),
    (f"[1,3]<stdout>:{INFO}[1,4]<stdout>:{WARN}", [INFO, WARN]),
    (f"{INFO}Jun  1 01:02:03 gpu-9 kernel: {XID}", [INFO, f"Jun  1 01:02:03 gpu-9 kernel: {XID}"]),
)


@pytest.mark.parametrize(("raw", "expected"), GLUED)
def test_glued_records_come_apart(raw: str, expected: list[str]) -> None:
    # The first line makes the host known, so that it is told from a word before it.
    assert shown(INFO, raw)[1:] == expected


def test_glued_records_share_what_wraps_the_line() -> None:
    first, second = peel(f"[1,3]<stdout>:2026-06-01T01:02:03Z {INFO} {WARN}")
    assert (first.speaker.label, second.speaker.label) == ("1,3", "1,3")
    assert first.place == second.place
    assert second.place.time
    assert (second.speaker.host, second.origin) == ("node-5", "mpi")


def test_version_in_a_message_is_no_record() -> None:
    assert len(peel(f"[Rank 6] some error, {VERSION}")) == 1
    assert len(peel(f"node-4:71:75 [1] NCCL INFO {VERSION}")) == 1


def test_doubled_prefix_is_one() -> None:
    (line,) = peel(f"node-4:71:75 [1] NCCL INFO {INFO}")
    assert line.text.startswith("Channel 00/0")


def test_host_after_the_end_of_a_word_is_told_by_its_process() -> None:
    lines = peel(INFO, f"comm{INFO}", f"comm{WARN}")
    assert [line.speaker.host for line in lines] == ["node-4", None, "node-4", "commnode-5"]


def test_host_after_the_result_of_a_back_trace() -> None:
    lines = peel("node-4:71:75 [1] NCCL INFO init.cc:17 -> 2node-5:81:85 [0] NCCL INFO x")
    assert [line.speaker.host for line in lines] == ["node-4", "node-5"]
    assert lines[0].text == "init.cc:17 -> 2"


def test_host_of_a_rank_table_is_known() -> None:
    table = "#  Rank  0 Group  0 Pid     81 on     node-5 device  0 [0000:4b:00] Some GPU"
    lines = peel(table, f"    1024    256   float   sum{WARN}")
    assert lines[1].text == "    1024    256   float   sum"
    assert lines[2].speaker.host == "node-5"


def test_columns_of_numbers_are_neither_time_nor_wrapper() -> None:
    lines = peel(f"     1024      256 {WARN}")
    assert [line.text for line in lines] == ["     1024      256", "made up for a test"]
    assert lines[1].place.time is None


def test_container_pieces_are_joined() -> None:
    stamp = "2026-06-01T01:02:03Z"
    lines = peel(
        f"{stamp} stdout P {WARN[:30]}",
        f"{stamp} stderr P {INFO[:20]}",
        f"{stamp} stdout P {WARN[30:40]}",
        f"{stamp} stdout F {WARN[40:]}",
        f"{stamp} stderr F {INFO[20:]}",
        f"{stamp} stdout F {INFO}",
    )
    assert [line.shown for line in lines] == [WARN, INFO, INFO]
    assert [line.place.line for line in lines] == [1, 2, 6]


def test_container_piece_without_an_end_is_kept() -> None:
    assert shown(f"2026-06-01T01:02:03Z stdout P {WARN}") == [WARN]


def test_container_pieces_are_bounded() -> None:
    stamp = "2026-06-01T01:02:03Z stdout P "
    lines = peel(*[stamp + "x" * 9000] * 100)
    assert max(len(line.text) for line in lines) <= 65536


def test_json_of_collectors() -> None:
    docker = json.dumps({"log": WARN + "\n", "stream": "stderr", "time": "2026-06-01T01:02:03.5Z"})
    (line,) = peel(docker)
    assert line.shown == WARN
    assert line.place.time
    assert (line.place.time.seconds, line.place.time.clock) == (1780275723.5, Clock.WALL)
    for where in (
        {"kubernetes": {"host": "gpu-9"}},
        {"host": {"name": "gpu-9"}},
        {"host": "gpu-9"},
    ):
        (line,) = peel(json.dumps({"message": "plain text", **where}))
        assert (line.text, line.speaker.host) == ("plain text", "gpu-9")
    (line,) = peel(json.dumps({"message": "plain text", "host": "10.9.8.7"}))
    assert (line.speaker.host, line.speaker.address) == (None, "10.9.8.7")


def test_json_of_the_journal() -> None:
    record = {
        "MESSAGE": XID,
        "_TRANSPORT": "kernel",
        "_HOSTNAME": "gpu-9",
        "__REALTIME_TIMESTAMP": "1780275723500000",
    }
    (line,) = peel(json.dumps(record))
    assert (line.text, line.origin, line.speaker.host) == (XID, "kernel", "gpu-9")
    assert line.place.time
    assert line.place.time.seconds == 1780275723.5
    record["MESSAGE"] = list(XID.encode())  # type: ignore[assignment]
    assert shown(json.dumps(record)) == [XID]


def test_json_inside_a_wrapper_and_several_lines_inside_json() -> None:
    raw = "2026-06-01T01:02:03Z stdout F " + json.dumps({"log": f"{INFO}\n{WARN}\n"})
    assert shown(raw) == [INFO, WARN]


def test_json_that_was_cut_or_damaged_still_tells() -> None:
    raw = json.dumps({"stream": "stdout", "log": WARN + "\n"})
    assert shown(raw[:-9])[0] == WARN[: len(shown(raw[:-9])[0])]
    assert shown('{"log": "\\ud800 ' + WARN + '"}')[-1] == WARN
    assert shown('{"log": "\\u0000' + WARN + '"}') == [WARN]


def test_docker_pieces_are_joined() -> None:
    text = WARN + "y" * 16384
    pieces = [text[:16384], text[16384:] + "\n"]
    raws = [json.dumps({"log": piece, "stream": "stdout", "time": "x"}) for piece in pieces]
    (line,) = peel(*raws)
    assert line.text == text.split("NCCL WARN ")[1]


RETURNS = (
    (f" 10%\r 20%\r{WARN}\r\n", [WARN]),
    (f"{WARN}\r 30%", [WARN, " 30%"]),
    (" 10%\r 20%\r", [" 20%"]),
    ("plain\r\n", ["plain"]),
    ("\r\r\n", [""]),
)


@pytest.mark.parametrize(("raw", "expected"), RETURNS)
def test_progress_bars_leave_their_last_state(raw: str, expected: list[str]) -> None:
    assert shown(raw) == expected


COLOURS = (
    f"\x1b[31m{WARN}\x1b[0m",
    f"\x1b[38;5;9m{WARN}\x1b[K",
    f"[31m{WARN}[0m",
    f"[0m {WARN}",
    f"^[[31m{WARN}^[[0m",
    f"ESC[31m{WARN}ESC[0m",
    f"\\x1b[31m{WARN}\\x1b[0m",
    f"\x1b]8;;http://x\x1b\\{WARN}\x1b]8;;\x1b\\",
    f"{WARN[:20]}\x1b[1m{WARN[20:]}",
)


@pytest.mark.parametrize("raw", COLOURS)
def test_colours_are_taken_off(raw: str) -> None:
    assert shown(raw) == [WARN]


def test_text_out_of_a_web_page() -> None:
    (line,) = peel("node-4:71:75 [1] NCCL INFO eth0:10.9.8.7&lt;0&gt; &amp;amp;")
    assert line.text == "eth0:10.9.8.7<0> &amp;"
    assert peel("a &amp;&amp; b")[0].text == "a &amp;&amp; b"


def test_bytes_that_are_no_text() -> None:
    (line,) = peel(b"node-4:71:75 [1] NCCL INFO \xff\xfe\x00ok")
    assert line.text == "\ufffd\ufffdok"


def test_exact_repeat_of_an_event_is_one() -> None:
    assert len(peel(WARN, WARN)) == 1
    assert len(peel(f"2026-06-01T01:02:03Z {XID}", f"2026-06-01T01:02:03Z {XID}")) == 1


def test_repeats_that_may_be_real_stay() -> None:
    assert len(peel(WARN, "", WARN)) == 3
    assert len(peel(INFO, INFO)) == 2
    assert len(peel("plain text", "plain text")) == 2
    assert len(peel("", "")) == 2
    peeler = Peeler("a.log")
    assert len([*peeler.feed(WARN.encode(), 3), *peeler.feed(WARN.encode(), 9)]) == 2


def test_cut_record_is_joined_at_the_mark() -> None:
    call = "node-4:71:75 [1] NCCL INFO AllReduce: opCount 2 sendbuff 0x7 recvbuff 0x8 "
    lines = peel(f"{call}coun$", " 64 datatype 7", f"{call}count 64 dataty$", "pe 7")
    assert [line.text.split("0x8 ")[1] for line in lines] == ["count 64 datatype 7"] * 2
    assert [line.place.line for line in lines] == [1, 3]


def test_mark_without_a_continuation_joins_nothing() -> None:
    assert len(peel(f"{INFO}$", WARN)) == 2
    assert len(peel("user@gpu-9:~$", "plain text")) == 2


def wrapped(texts: list[str], width: int) -> list[str]:
    return [text[at : at + width] for text in texts for at in range(0, len(text), width)]


LONG = [
    f"node-4:71:75 [1] NCCL INFO {word} " + " ".join(f"{word}{n}" for n in range(40))
    for word in ("alpha", "beta", "gamma", "delta")
]


@pytest.mark.parametrize("width", [72, 80, 93, 120, 200])
def test_hard_wrapped_records_are_joined(width: int) -> None:
    assert shown(*wrapped(LONG, width)) == [text.strip() for text in LONG]


def test_lines_of_equal_width_by_chance_are_not_joined() -> None:
    warn = f"{WARN} {'x' * 40}"
    raws = [warn, "plain text", warn.replace("81", "82"), "plain text", warn.replace("85", "86")]
    raws.append("plain text")
    assert shown(*raws) == raws


def test_records_over_three_lines_prove_a_width_together() -> None:
    texts = [LONG[0], LONG[0].replace("71", "72")]
    assert shown(*wrapped(texts, 93)) == texts
    assert shown(*wrapped([LONG[0][:150]], 93)) == wrapped([LONG[0][:150]], 93)


def test_one_longer_line_refuses_the_width() -> None:
    raws = ["plain " * 30, *wrapped(LONG, 80)]
    assert len(peel(*raws)) == len(raws)


def test_waiting_for_a_width_is_bounded() -> None:
    peeler = Peeler("a.log")
    raws = [f"{WARN} {'x' * 60}", *["plain text"] * 1000]
    fed = [len(list(peeler.feed(raw.encode(), number))) for number, raw in enumerate(raws, 1)]
    assert sum(fed) == len(raws)
    assert fed[-1] == 1


@given(
    st.lists(st.sampled_from([*LONG, INFO, WARN, "", "plain", f"{INFO}$"]), max_size=12), st.data()
)
def test_no_line_is_lost(raws: list[str], data: st.DataObject) -> None:
    width = data.draw(st.integers(60, 200))
    lines = peel(*wrapped(raws, width))
    numbers = [line.place.line for line in lines]
    assert numbers == sorted(numbers)


def test_year_of_another_stamp_counts() -> None:
    lines = peel("2026-05-31T23:00:00Z first", "Jun  1 01:02:03 gpu-9 kernel: x")
    times = [line.place.time.seconds for line in lines if line.place.time]
    assert times[1] - times[0] == 7323


def test_without_any_year_order_holds_over_new_year() -> None:
    raws = [f"{day} 23:59:59 gpu-9 kernel: x" for day in ("Dec 30", "Dec 31", "Jan  1", "Jan  2")]
    times = [line.place.time.seconds for line in peel(*raws) if line.place.time]
    assert [after - before for before, after in pairwise(times)] == [86400] * 3
    assert times[0] < 366 * 86400


def test_impossible_dates_are_no_times() -> None:
    for raw in ("2026-13-41 01:02:03 x", "2026-06-01 25:02:03 x", "Feb 31 01:02:03 x"):
        (line,) = peel(raw)
        assert line.text.endswith("x")
    assert peel("Feb 29 01:02:03 x")[0].place.time


HOSTILE = (
    b"[" * 65536,
    b"> " * 32768,
    b"a" * 65536,
    b":1:1 [0] NCCL INFO " * 3400,
    b"x:1:1 [0] NCCL INFO " * 3200,
    b" NCCL INFO " * 5900,
    b"[E a.cpp:1] " * 5400,
    b"NCCL version 2" * 4600,
    b"1:" * 32768,
    b"0: " * 21000,
    b"\x1b[" * 32768,
    b"[0" * 32768,
    b"[0m" * 21000,
    b'{"log":"' + b"\\" * 65000,
    b'{"a":' * 13000,
    b"[" + b"1" * 65000,
    b"a." * 32768,
    b"a-1 " * 16000,
    b"ZZZ " * 16000 + b"a:1:1 [0] NCCL INFO x",
    b"\r" * 65536,
    b" " * 65536,
    b"2026-06-01 " * 5900,
    b"(a" * 32768,
    b"a$" * 32768,
)


@pytest.mark.parametrize("raw", HOSTILE, ids=lambda raw: repr(raw[:12]))
def test_hostile_line_is_read_in_time_and_space(raw: bytes) -> None:
    """Seconds at most: what is not linear here would not end."""
    lines = peel(raw, raw)
    assert lines
    assert sum(len(line.text) for line in lines) <= 2 * len(raw)
