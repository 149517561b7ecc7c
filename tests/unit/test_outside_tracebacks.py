"""Exceptions that end programs, in Python and C++."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanned import scanned

from ncdiag.model.log import Event
from ncdiag.read.peel import Peeler
from ncdiag.read.tracebacks import TracebackReader

HEAD = "Traceback (most recent call last):"
FRAME = '  File "/srv/job/train.py", line 41, in main\n    step(batch)'


def read(text: str | bytes) -> list[Event]:
    return scanned(TracebackReader(), text).events


def exceptions(text: str) -> list[str]:
    return [event.attributes["exception"] for event in read(text) if event.attributes]


def test_final_line_of_a_traceback_names_the_exception() -> None:
    (event,) = read(f"{HEAD}\n{FRAME}\nValueError: shape (3, 4) is not square\nbye")
    assert event.class_name == "application_exception"
    assert event.attributes == {"exception": "ValueError"}
    assert event.details == {"file": "/srv/job/train.py"}
    assert event.place.line == 4
    assert event.text == "ValueError: shape (3, 4) is not square"


@pytest.mark.parametrize(
    "last",
    [
        "AssertionError",
        "MemoryError",
        "project.errors.ConfigError: no rank",
        "queue.Empty",
        "SystemExit: 3",
    ],
)
def test_names_of_exceptions(last: str) -> None:
    assert exceptions(f"{HEAD}\n{FRAME}\n{last}") == [last.split(":", maxsplit=1)[0]]


@pytest.mark.parametrize("prefix", ["", "[rank3]: ", "[default3]:", "[1,3]<stderr>:", "3: "])
def test_behind_a_launchers_prefix(prefix: str) -> None:
    body = f"{HEAD}\n{FRAME}\nKeyError: 'x'".split("\n")
    assert exceptions("\n".join(prefix + line for line in body)) == ["KeyError"]


def test_tracebacks_of_several_ranks_run_into_one_another() -> None:
    parts = [f"{HEAD}\n{FRAME}\n{name}: no".split("\n") for name in ("ValueError", "TypeError")]
    mixed = [
        f"[rank{rank}]: {line}"
        for pair in zip(*parts, strict=True)
        for rank, line in enumerate(pair)
    ]
    events = read("\n".join(mixed))
    assert {(e.speaker.rank, e.attributes["exception"]) for e in events} == {
        (0, "ValueError"),
        (1, "TypeError"),
    }


@pytest.mark.parametrize(
    "link",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
def test_chain_of_exceptions_is_one_event(link: str) -> None:
    (event,) = read(
        f"{HEAD}\n{FRAME}\nOSError: gone\n\n{link}\n\n{HEAD}\n{FRAME}\nRuntimeError: lost"
    )
    assert event.attributes == {"exception": "RuntimeError"}
    assert event.details["cause"] == "OSError"


@pytest.mark.parametrize(
    "last",
    [
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error",
        "RuntimeError: NCCL error: unhandled cuda error",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "torch.AcceleratorError: CUDA error: unspecified launch failure",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.",
        "torch.distributed.DistStoreError: Socket Timeout",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "OSError: [Errno 28] No space left on device",
        "RuntimeError: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(OpType=A)",
        "KeyboardInterrupt",
    ],
)
def test_errors_with_a_class_of_their_own_are_left_to_it(last: str) -> None:
    assert read(f"{HEAD}\n{FRAME}\n{last}") == []


def test_exception_that_carries_an_error_of_the_library_is_its_echo() -> None:
    chain = (
        f"{HEAD}\n{FRAME}\nRuntimeError: NCCL error: internal error\n\n"
        f"During handling of the above exception, another exception occurred:\n\n"
        f"{HEAD}\n{FRAME}\nTrainingFailedError: giving up"
    )
    assert read(chain) == []


def test_what_the_interpreter_ignores_is_ignored() -> None:
    ignored = f"Exception ignored in: <function f at 0x7f>\n{HEAD}\n{FRAME}\nAttributeError: no x"
    assert read(ignored) == []
    assert exceptions(f"{ignored}\n{HEAD}\n{FRAME}\nValueError: 1") == ["ValueError"]


def test_final_line_whose_traceback_was_cut_off() -> None:
    assert exceptions(f"{FRAME}\nIndexError: list index out of range") == ["IndexError"]
    assert exceptions("ModuleNotFoundError: No module named 'x'") == ["ModuleNotFoundError"]
    assert exceptions("an IndexError: list was handled") == []


def test_loader_and_ray_name_the_exception_they_wrap() -> None:
    loader = (
        f"{HEAD}\n{FRAME}\nKeyError: Caught KeyError in DataLoader worker process 2.\n"
        f"Original {HEAD}\n{FRAME}\nKeyError: 'image'"
    )
    assert exceptions(loader) == ["KeyError"]
    wrapped = "ray.exceptions.RayTaskError(TypeError): ray::f() (pid=4, ip=10.0.0.7)"
    ray = f"{HEAD}\n{FRAME}\n{wrapped}\n{FRAME}\nTypeError: no"
    assert exceptions(ray) == ["TypeError"]


def test_traceback_in_a_report_of_failures_is_indented() -> None:
    report = (
        f'  traceback : {HEAD}\n    File "/srv/job/train.py", line 41, in main\n      step(batch)\n'
        "  ZeroDivisionError: division by zero\n======"
    )
    assert exceptions(report) == ["ZeroDivisionError"]


def test_group_of_exceptions_gives_those_inside() -> None:
    group = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/srv/job/train.py", line 9, in main\n'
        "  | ExceptionGroup: two of them (2 sub-exceptions)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "/srv/job/train.py", line 5, in f\n'
        "    | ValueError: 1\n"
        "    +------------------------------------\n"
    )
    assert exceptions(group) == ["ValueError"]


def test_connection_lost_to_another_process_is_marked_as_an_echo() -> None:
    (event,) = read(f"{HEAD}\n{FRAME}\nBrokenPipeError: [Errno 32] Broken pipe")
    assert event.details["echo"] == "connection"


def test_last_words_of_a_cpp_program() -> None:
    thrown = "[3] terminate called after throwing an instance of 'std::length_error'"
    text = f"{thrown}\n[3]   what():  vector::reserve"
    (event,) = read(text)
    assert event.class_name == "application_exception"
    assert event.attributes == {"exception": "std::length_error"}
    assert exceptions(
        "libc++abi: terminating due to uncaught exception of type std::bad_alloc: x"
    ) == ["std::bad_alloc"]


@pytest.mark.parametrize(
    "text",
    [
        "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  x",
        "terminate called after throwing an instance of 'gloo::IoException'",
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  nccl call",
    ],
)
def test_last_words_that_carry_an_error_of_the_library(text: str) -> None:
    (event,) = read(text)
    assert event.class_name == "comm_aborted"
    assert not event.attributes


def test_reader_does_not_stay_open_for_ever() -> None:
    reader, peeler = TracebackReader(), Peeler("job.log")
    lines: Iterable[str] = (f"[rank4]: {HEAD}", *(f"[rank5]: step {n}" for n in range(400)))
    for number, text in enumerate(lines, 1):
        for line in peeler.feed(text.encode(), number):
            reader.read(line, ())
    assert not reader.open


SAMPLE = (
    f'[rank1]: {HEAD}\n[rank1]:   File "a.py", line 1, in f\n[rank1]: ValueError: x\n'
    "During handling of the above exception, another exception occurred:\n"
    f"{HEAD}\n{FRAME}\nray.exceptions.RayTaskError(TypeError): ray::f()\n{FRAME}\nTypeError: no\n"
    "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
)


def test_log_cut_anywhere() -> None:
    raw = SAMPLE.encode()
    for cut in range(len(raw)):
        read(raw[:cut])
        read(raw[cut:])


@given(st.lists(st.sampled_from([*SAMPLE.split("\n"), "", "| x", "  + y", "\x00"]), max_size=30))
def test_lines_in_any_order(lines: list[str]) -> None:
    read("\n".join(lines))


@given(st.binary(max_size=400))
def test_any_bytes(raw: bytes) -> None:
    read(HEAD.encode() + b"\n" + raw)
