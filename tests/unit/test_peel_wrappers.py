"""Each wrapper alone, in pairs, and in any nesting."""

from itertools import permutations
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.place import Clock
from ncdiag.read.line import Line
from ncdiag.read.peel import Peeler

NCCL = "rack2-n7:4242:4250 [3] transport/net_ib.cc:811 NCCL WARN NET/IB : made up for a test"
KERNEL = "NVRM: Xid (PCI:0000:4b:00): 31, pid=77, name=demo"
NIGHT = 1780275723.0  # 2026-06-01T01:02:03Z


def peel(*raws: str | bytes, path: str = "a.log") -> list[Line]:
    peeler = Peeler(path)
    lines: list[Line] = []
    for number, raw in enumerate(raws, 1):
        lines += peeler.feed(raw.encode() if isinstance(raw, str) else raw, number)
    return lines + list(peeler.finish())


def only(*raws: str | bytes) -> Line:
    (line,) = peel(*raws)
    return line


class Form(NamedTuple):
    wrapper: str
    clock: Clock | None = None
    seconds: float = NIGHT
    rank: int | None = None
    label: str | None = None
    address: str | None = None
    origin: str | None = None


WALL, DAY, UPTIME = Clock.WALL, Clock.DAY, Clock.UPTIME
MORNING = 3723.0
FORMS = (
    Form("[1,12]<stdout>:", label="1,12", origin="mpi"),
    Form("[1,0]<stderr>:", label="1,0", origin="mpi"),
    Form("[prterun-rack2-n7-991@1,12]<stdout>: ", label="1,12", origin="mpi"),
    Form("[1,mpirank:4,algo-2]<stdout>:", label="1,mpirank:4", origin="mpi"),
    Form("Mon Jun  1 01:02:03 2026[1,4]<stdout>:", WALL, label="1,4", origin="mpi"),
    Form("[3] ", label="3"),
    Form("12: ", label="12"),
    Form(" 3: ", label="3"),
    Form("[default5]:", label="default5"),
    Form("[trainer0]: ", label="trainer0"),
    Form("[rank3]: ", rank=3, origin="torch"),
    Form("[rank: 11] ", rank=11, origin="torch"),
    Form("(TrainWorker pid=771, ip=10.9.8.7) ", address="10.9.8.7", origin="ray"),
    Form("(train_fn pid=771) ", origin="ray"),
    Form("(pid=771) ", origin="ray"),
    Form("(VllmWorkerProcess pid=771) "),
    Form("2026-06-01T01:02:03.000000001Z stdout F ", WALL),
    Form("2026-06-01T03:02:03+02:00 stderr F ", WALL),
    Form("[pod/llm-worker-0/pytorch] ", label="pod/llm-worker-0/pytorch"),
    Form("nccl_bench_1  | ", label="nccl_bench_1"),
    Form("bench    | ", label="bench"),
    Form("bench.3.a1b2c3d4@rack2-n7    | ", label="bench.3.a1b2c3d4"),
    Form("(worker1, rank=1, pid=771, ip=10.9.8.7) ", label="worker1", address="10.9.8.7"),
    Form("[rank=3] || ", rank=3, origin="torch"),
    Form("E20260601 01:02:03.000000 4242 demo.cc:99] ", WALL),
    Form("   314 \u2502 "),
    Form("rack2-n7: ", origin="pdsh"),
    Form("10.9.8.7: ", address="10.9.8.7", origin="pdsh"),
    Form("Jun  1 01:02:03 rack2-n7 python3[4242]: ", WALL, origin="syslog"),
    Form("<14>Jun 01 01:02:03 rack2-n7 slurmd: ", WALL, origin="slurm"),
    Form("2026-06-01 01:02:03 rack2-n7 user.info trainer: ", WALL, origin="syslog"),
    Form("2026-06-01T01:02:03+0000 rack2-n7 python3[4242]: ", WALL, origin="syslog"),
    Form("Mon 2026-06-01 01:02:03 UTC rack2-n7 python3[4242]: ", WALL, origin="syslog"),
    Form("<30>1 2026-06-01T01:02:03Z rack2-n7 python3 4242 - - ", WALL, origin="syslog"),
    Form("[  912.500000] rack2-n7 python3[4242]: ", UPTIME, 912.5, origin="syslog"),
    Form("E0601 01:02:03.000000 4242 torch/distributed/run.py:99] ", WALL, origin="elastic"),
    Form("[Jun 01 2026 01:02:03] [INFO] [tid 18] ", WALL, origin="fabric-manager"),
    Form("[2026-06-01 01:02:03] ", WALL),
    Form("[2026-06-01T01:02:03.000] ", WALL),
    Form("2026-06-01T01:02:03.000Z ", WALL),
    Form("2026-06-01 01:02:03,000 ", WALL),
    Form("2026-06-01 01:02:03,000 - trainer.core - INFO - ", WALL),
    Form("2026-06-01 01:02:03.000 | INFO     | trainer:run:12 - ", WALL),
    Form("[2026-06-01 01:02:03,000] [INFO] ", WALL),
    Form("06/01/2026 01:02:03 AM - INFO - __main__ - ", WALL),
    Form("2026/06/01 01:02:03 ", WALL),
    Form("Mon Jun  1 01:02:03 UTC 2026: ", WALL),
    Form("1780275723.25 ", WALL, NIGHT + 0.25),
    Form("[01:02:03] ", DAY, MORNING),
    Form("01:02:03.500 ", DAY, MORNING + 0.5),
    Form("Jun 01 01:02:03 ", WALL),
    Form("[NeMo I 2026-06-01 01:02:03 nemo_logging:381] ", WALL),
    Form("INFO:trainer.core:"),
    Form("  60311\t"),
    Form("   314 "),
    Form("60311:"),
    Form("job-9.out:60311:"),
    Form("> "),
    Form("> > "),
    Form(">"),
    Form("```"),
    Form("\ufeff"),
    Form("    "),
    Form("\x1b[0;31m"),
    Form("\x1b]0;a title\x07"),
    Form("[0m "),
    Form("^[[1;32m"),
    Form("ESC[31m"),
    Form("98%|#####  | 4/9\r"),
)
# These end what may stand around them: the rest of a line is theirs.
OUTERMOST = {"bench    | ", "\ufeff", "98%|#####  | 4/9\r", "[0m "}


def with_year(wrapper: str) -> list[str]:
    """The wrapped line after one that tells the year."""
    return ["[2026-05-31 23:00:00] rack2-n7:1:1 [0] NCCL INFO year", wrapper + NCCL]


def says_the_same(line: Line) -> None:
    assert line.text == "NET/IB : made up for a test"
    assert (line.level, line.location) == ("WARN", "transport/net_ib.cc:811")
    assert line.speaker[:2] == ("rack2-n7", "4242")
    assert line.speaker.device == "3"
    assert line.shown.endswith(NCCL)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: repr(form.wrapper))
def test_wrapper_tells_what_it_proves(form: Form) -> None:
    line = peel(*with_year(form.wrapper))[-1]
    says_the_same(line)
    assert line.place.line == 2
    time = line.place.time
    assert (time.clock if time else None) == form.clock
    if time:
        assert time.seconds == pytest.approx(form.seconds)
    said = line.speaker
    assert (said.rank, said.label, said.address) == (form.rank, form.label, form.address)
    assert line.origin == form.origin


@pytest.mark.parametrize("outer", FORMS, ids=lambda form: repr(form.wrapper))
def test_wrappers_nest_in_pairs(outer: Form) -> None:
    for inner in FORMS:
        columns_of_numbers = inner.wrapper == outer.wrapper == "   314 "
        if inner.wrapper in OUTERMOST or columns_of_numbers:
            continue
        raw = outer.wrapper + inner.wrapper + NCCL
        lines = peel(*with_year(outer.wrapper + inner.wrapper))
        assert len(lines) == 2, [raw, [line.shown for line in lines]]
        says_the_same(lines[-1])


LAUNCHERS = (
    "[1,12]<stdout>:",
    "[3] ",
    "12: ",
    "[default5]:",
    "[rank3]: ",
    "(TrainWorker pid=771, ip=10.9.8.7) ",
    "2026-06-01T01:02:03Z stdout F ",
    "[pod/llm-worker-0/pytorch] ",
    "nccl_bench_1  | ",
    "rack2-n7: ",
    "[2026-06-01 01:02:03] ",
    "01:02:03.500 ",
    "> ",
)


@given(st.lists(st.sampled_from(LAUNCHERS), max_size=5, unique=True))
def test_any_nesting_says_the_same(wrappers: list[str]) -> None:
    says_the_same(only("".join(wrappers) + NCCL))


@given(st.lists(st.sampled_from(LAUNCHERS), max_size=4), st.data())
def test_a_line_may_be_cut_anywhere(wrappers: list[str], data: st.DataObject) -> None:
    raw = ("".join(wrappers) + NCCL).encode()
    cut = data.draw(st.integers(0, len(raw)))
    for line in peel(raw[:cut], raw[cut:]):
        assert line.text == "" or line.text in raw.decode()


@given(st.lists(st.binary(max_size=200)))
def test_any_bytes_are_lines(raws: list[bytes]) -> None:
    numbers = [line.place.line for line in peel(*raws)]
    assert all(1 <= number <= len(raws) for number in numbers)


PIECES = st.sampled_from(
    [
        *LAUNCHERS,
        *(form.wrapper for form in FORMS),
        NCCL,
        KERNEL,
        "NCCL version 2.9.9+cuda11.3",
        '{"log":"',
        '"}',
        "\n",
        "\r",
        " stdout P ",
        "$",
        "[E ProcessGroupNCCL.cpp:12] ",
    ]
)


@given(st.lists(st.lists(PIECES | st.text(max_size=8), max_size=8), max_size=8))
def test_any_mixture_is_lines(lines: list[list[str]]) -> None:
    raws = ["".join(pieces) for pieces in lines]
    for line in peel(*raws):
        assert len(line.shown) <= 1000
        line.text.encode()


KERNEL_FORMS = (
    ("Jun  1 01:02:03 rack2-n7 kernel: ", WALL, NIGHT, "rack2-n7"),
    ("Jun  1 01:02:03 rack2-n7 kernel: [  912.500000] ", WALL, NIGHT, "rack2-n7"),
    ("<4>Jun  1 01:02:03 rack2-n7 kernel: ", WALL, NIGHT, "rack2-n7"),
    ("2026-06-01T01:02:03.000000+00:00 rack2-n7 kernel: ", WALL, NIGHT, "rack2-n7"),
    ("2026-06-01T01:02:03Z rack2-n7 kernel: ", WALL, NIGHT, "rack2-n7"),
    ("<4>1 2026-06-01T01:02:03Z rack2-n7 kernel - - - ", WALL, NIGHT, "rack2-n7"),
    ("Mon 2026-06-01 01:02:03 UTC rack2-n7 kernel: ", WALL, NIGHT, "rack2-n7"),
    ("1780275723.000000 rack2-n7 kernel: ", WALL, NIGHT, "rack2-n7"),
    ("[  912.500000] rack2-n7 kernel: ", UPTIME, 912.5, "rack2-n7"),
    ("[  912.500000] ", UPTIME, 912.5, None),
    ("<4>[  912.500000][ T4242] ", UPTIME, 912.5, None),
    ("[Mon Jun  1 01:02:03 2026] ", WALL, NIGHT, None),
    ("[Jun01 01:02] ", WALL, NIGHT - 3, None),
    ("kern  :warn  : [  912.500000] ", UPTIME, 912.5, None),
    ("kern  :err   : 2026-06-01T01:02:03,000000+00:00 ", WALL, NIGHT, None),
    ("2026-06-01T01:02:03,000000+00:00 ", WALL, NIGHT, None),
    ("4,771,912500000,-;", UPTIME, 912.5, None),
    ("kernel: ", None, 0.0, None),
    ("rack2-n7 kernel: ", None, 0.0, "rack2-n7"),
    ("rack2-n7: [  912.500000] ", UPTIME, 912.5, "rack2-n7"),
)


@pytest.mark.parametrize(("wrapper", "clock", "seconds", "host"), KERNEL_FORMS)
def test_kernel_line(wrapper: str, clock: Clock | None, seconds: float, host: str | None) -> None:
    line = peel("[2026-05-31 23:00:00] first", wrapper + KERNEL)[-1]
    assert (line.text, line.origin, line.speaker.host) == (KERNEL, "kernel", host)
    assert line.level is None
    time = line.place.time
    assert (time.clock if time else None) == clock
    assert (time.seconds if time else 0.0) == pytest.approx(seconds)


def test_kernel_lines_of_drivers_are_no_hosts() -> None:
    line = only("[  912.500000] mlx5_core 0000:4b:00.0: a made-up message: 3")
    assert line.text == "mlx5_core 0000:4b:00.0: a made-up message: 3"
    assert (line.origin, line.speaker.host) == ("kernel", None)


TORCH = (
    (
        "[rank5]:[E601 01:02:03.250000000 ProcessGroupNCCL.cpp:91] [PG ID 1 Rank 5] late",
        (5, "ProcessGroupNCCL.cpp:91", "[PG ID 1 Rank 5] late", NIGHT + 0.25),
    ),
    (
        "[rank5]:[W1201 01:02:03.250000000 socket.cpp:91] [c10d] late",
        (5, "socket.cpp:91", "[c10d] late", NIGHT + 183 * 86400 + 0.25),
    ),
    (
        "[E ProcessGroupNCCL.cpp:91] [Rank 5] late",
        (None, "ProcessGroupNCCL.cpp:91", "[Rank 5] late", None),
    ),
)


@pytest.mark.parametrize(("raw", "expected"), TORCH)
def test_torch_prefix(raw: str, expected: tuple[int | None, str, str, float | None]) -> None:
    line = peel("[2026-05-31 23:00:00] first", raw)[-1]
    time = line.place.time
    found = (line.speaker.rank, line.location, line.text, time.seconds if time else None)
    assert found == pytest.approx(expected)
    assert (line.origin, line.shown) == ("torch", raw)


PREFIXES = (
    ("a-1:2:3 [4] NCCL INFO x", ("a-1", "2", "4", "INFO", None, None)),
    ("a-1:2:3 [-1] NCCL INFO x", ("a-1", "2", "-1", "INFO", None, None)),
    (
        "a_1.example:2:3 [4] init.cc:7 NCCL WARN x",
        ("a_1.example", "2", "4", "WARN", "init.cc:7", None),
    ),
    (
        "77:2:3 [4] /b/src/init.cc:7 (doIt) NCCL WARN x",
        ("77", "2", "4", "WARN", "/b/src/init.cc:7", "doIt"),
    ),
    ("...-42:2:3 [4] NCCL INFO x", ("...-42", "2", "4", "INFO", None, None)),
    ("<node>:2:3 [4] NCCL INFO x", ("<node>", "2", "4", "INFO", None, None)),
    ("a-1:2:3 NCCL CALL x", ("a-1", "2", None, "CALL", None, None)),
    ("a-1:2:3 [4] 17.250000 init.cc:7 NCCL TRACE x", ("a-1", "2", "4", "TRACE", "init.cc:7", None)),
    ("a-1:2:3 [4] doIt:7 NCCL TRACE x", ("a-1", "2", "4", "TRACE", "doIt:7", None)),
    (
        "a-1:2:3 [4] int ns::doIt(ns::type*, int):7 NCCL WARN x",
        ("a-1", "2", "4", "WARN", "int ns::doIt(ns::type*, int):7", None),
    ),
    ("2026.06.01_01h a-1:2:3 [4] NCCL INFO x", ("a-1", "2", "4", "INFO", None, None)),
    ("Monday 01 June 2026 01:02:03 a-1:2:3 [4] NCCL INFO x", ("a-1", "2", "4", "INFO", None, None)),
    ("[4] NCCL INFO x", (None, None, "4", "INFO", None, None)),
    ("init.cc:7 NCCL WARN x", (None, None, None, "WARN", "init.cc:7", None)),
    ("NCCL WARN x", (None, None, None, "WARN", None, None)),
)


@pytest.mark.parametrize(("raw", "expected"), PREFIXES)
def test_library_prefix(raw: str, expected: tuple[str | None, ...]) -> None:
    line = peel(raw)[-1]
    said = line.speaker
    assert line.text == "x"
    found = (said.host, said.pid, said.device, line.level, line.location, line.function)
    assert found == expected


UNTOUCHED = (
    "        1024           256     float     sum      -1    21.5    0.05    0.09      0",
    "  time      : 2026-06-01_01:02:03",
    "[0]:",
    "Epoch 3: loss 1.5",
    "RuntimeError: a made-up one",
    "ValueError: 3",
    "step 12: loss 1.5",
    "gpu-7: an unproved host",
    "[7] an unproved stream",
    "7: an unproved stream",
    ">>> print(3)",
    "user@gpu-7:~$ ls",
    "  Algorithm   |    Tree    |    Ring",
    "rate[5m] of something",
    '{"header": {"id": "0x1"}, "op": "AllReduce"}',
    "{not json",
    "srun: error: gpu-7: task 3: Killed",
    "torch.distributed.elastic.x: [ERROR] failed",
)


@pytest.mark.parametrize("raw", UNTOUCHED)
def test_text_without_wrapper_stays(raw: str) -> None:
    assert only(raw).text == raw


OWN_NAMES = (
    ("srun: error: gpu-7: task 3: Killed", "slurm", None),
    ("slurmstepd: error: *** STEP 7.0 ***", "slurm", None),
    ("[gpu-7:881] *** Process received signal ***", "mpi", "gpu-7"),
    ("[gpu-8:77:0:79] Caught signal 8 (Floating point exception)", "ucx", "gpu-8"),
    ("[1893456000.250000] [gpu-8:77:0]  made_up.c:31   UCX  ERROR demo", "ucx", "gpu-8"),
    ("[gpu-8:77:0] made up", None, "gpu-8"),
    ("[proxy:0:1@gpu-7] HYD_made_up", "mpi", "gpu-7"),
    ("torch.distributed.elastic.multiprocessing.api: failed", "elastic", None),
    ("ERROR:torch.distributed.elastic.multiprocessing.api:failed", "elastic", None),
    ("[1780275723.250000] [gpu-7:881:0] ucx.c:7 UCX ERROR made up", "ucx", "gpu-7"),
)


@pytest.mark.parametrize(("raw", "origin", "host"), OWN_NAMES)
def test_messages_that_name_their_program(raw: str, origin: str | None, host: str | None) -> None:
    line = only(raw)
    assert (line.origin, line.speaker.host) == (origin, host)
    assert raw.endswith(line.text)


def labels(*numbers: int) -> list[str | None]:
    raws = [f"{number}: x{at}:1:1 [0] NCCL INFO x" for at, number in enumerate(numbers)]
    return [line.speaker.label for line in peel(*raws)]


def test_numbers_that_come_back_are_streams() -> None:
    assert labels(0, 0, 0, 1, 2, 3) == ["0", "0", "0", "1", "2", "3"]
    assert labels(7, 0, 7, 8, 9, 10) == ["7", "0", "7", "8", "9", "10"]


def test_numbers_that_count_lines_are_no_streams() -> None:
    assert set(labels(*range(1, 30))) == {None}
    assert set(labels(*range(60311, 60340))) == {None}
    assert labels(*range(100, 130))[1:] == [None] * 29


def test_numbers_inside_a_container_count_once() -> None:
    stamp = "2026-06-01T01:02:03Z stdout F "
    raws = [f"{stamp}[{number}] [rank0]: x{number}" for number in range(60311, 60330)]
    assert {line.speaker.label for line in peel(*raws)} == {None}


NUMBERED = (
    "# a heading",
    "    1024    256   float   sum      -1    21.5    0.05    0.09      0",
    "  time      : 2026-06-01_01:02:03",
    "plain text",
    "",
    "    2048    512   float   sum      -1    21.5    0.05    0.09      0",
)


@pytest.mark.parametrize("form", ["{:6d}\t{}", "{:7d} {}", "{}:{}", "{:5d} \u2502 {}", "{}: {}"])
@pytest.mark.parametrize("first", [1, 8812])
def test_numbers_of_lines_are_taken_off_any_text(form: str, first: int) -> None:
    head = [f"some:1:1 [0] NCCL INFO {number}" for number in range(4)]
    raws = [form.format(number, text) for number, text in enumerate((*head, *NUMBERED), first)]
    assert [line.text for line in peel(*raws)][4:] == list(NUMBERED)


def test_a_proved_form_is_believed_on_plain_lines_too() -> None:
    proved = ("[7] a-1:2:3 [4] NCCL INFO x", "a-1: a-1:2:3 [4] NCCL INFO x")
    plain = ("[7] plain text", "[7] ", "a-1: plain text")
    texts = [line.text for line in peel(*proved, *plain)]
    assert texts == ["x", "x", "plain text", "", "plain text"]


def test_a_logger_is_known_again() -> None:
    logger = "2026-06-01 01:02:03.000 | INFO     | trainer:run:12 - "
    raws = (f"{logger}{NCCL}", f"{logger}  plain text", "INFO: plain text")
    assert [line.text for line in peel(*raws)][1:] == ["  plain text", "INFO: plain text"]


def test_nccl_tests_name_their_host_themselves() -> None:
    raws = ("a-1: a-1:2:3 [4] NCCL INFO x", "a-1: Test NCCL failure common.cu:9 'made up'")
    assert peel(*raws)[-1].text == raws[1]


def test_repeats_are_counted() -> None:
    line = only("(TrainWorker pid=7, ip=10.9.8.7) plain text [repeated 6x across cluster]")
    assert (line.text, line.repeats, line.speaker.pid) == ("plain text", 6, "7")
    first = only(
        "(f pid=7) plain text [repeated 2x across cluster] (Ray deduplicates logs by default. Set"
        " RAY_DEDUP_LOGS=0 to disable log deduplication.)"
    )
    assert (first.text, first.repeats) == ("plain text", 2)


def test_best_time_of_several_counts() -> None:
    line = only("20:00:00.5 [2026-06-01 01:02:03] a-1:2:3 [4] NCCL WARN x")
    assert line.place.time
    assert line.place.time.seconds == NIGHT


def test_shown_keeps_what_the_library_printed() -> None:
    for launcher, collector in permutations(("[1,3]<stdout>:", "[pod/a/b] "), 2):
        line = only(f"{launcher}{collector}[2026-06-01 01:02:03] {NCCL}")
        assert line.shown == f"[2026-06-01 01:02:03] {NCCL}"


@pytest.mark.parametrize("said", ["worker-3 got ", "[node-3] ", "pool-xk9cd saw "])
def test_words_before_one_record_are_no_pod_and_no_host(said: str) -> None:
    line = peel(f"{said}[rank7]: RuntimeError: demo")[0]
    assert (line.text, line.speaker.label) == (f"{said}[rank7]: RuntimeError: demo", None)
