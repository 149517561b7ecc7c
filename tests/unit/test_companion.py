import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live_processes import runs

from ncdiag.cluster.fleet import companion
from ncdiag.cluster.fleet.companion import CompanionFailed, Companions, CompanionSpec

PATIENCE_S = 30.0
SERVER = """
import json, os, sys, time, subprocess
print(json.dumps({"pid": os.getpid(), "color": os.environ.get("COLOR")}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    match request:
        case "hang":
            time.sleep(600)
        case "crash":
            sys.exit("Traceback of no interest\\nRuntimeError: \\x1b[31mno more memory")
        case "close":
            os.close(1)
            time.sleep(600)
        case "child":
            child = subprocess.Popen(["sleep", "600"])
            print(child.pid, flush=True)
        case "noise":
            sys.stderr.write("x" * 1_000_000)
            print("done", flush=True)
        case _:
            print(json.dumps(request), flush=True)
"""


def spec(code: str = SERVER, **env: str) -> CompanionSpec:
    return CompanionSpec("echo", (sys.executable, "-c", code), env)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


@pytest.fixture
def echo() -> Iterator[Companions]:
    companions = Companions()
    try:
        companions.ensure(spec())
        yield companions
    finally:
        companions.close()


def pid_of(companions: Companions) -> int:
    return json.loads(companions.ready("echo", PATIENCE_S))["pid"]


def test_a_request_is_answered_by_the_same_process_each_time(echo: Companions) -> None:
    pid = pid_of(echo)
    answers = [echo.request("echo", str(n).encode(), PATIENCE_S) for n in range(3)]
    assert answers == [b"0", b"1", b"2"]
    assert pid_of(echo) == pid


def test_a_request_waits_for_the_start_of_its_companion(echo: Companions) -> None:
    assert echo.request("echo", b'"early"', PATIENCE_S) == b'"early"'


def test_large_requests_and_answers_pass_whole(echo: Companions) -> None:
    large = json.dumps("x" * 3_000_000).encode()
    assert echo.request("echo", large, PATIENCE_S) == large


def test_noise_on_stderr_does_not_block_the_companion(echo: Companions) -> None:
    assert echo.request("echo", b'"noise"', PATIENCE_S) == b"done"


def test_a_hang_is_killed_and_replaced(echo: Companions) -> None:
    pid = pid_of(echo)
    with pytest.raises(CompanionFailed, match=r"echo gave no answer within 0\.2 s"):
        echo.request("echo", b'"hang"', 0.2)
    assert not runs(pid)
    assert echo.request("echo", b"1", PATIENCE_S) == b"1"
    assert pid_of(echo) != pid


def test_a_stopped_companion_is_killed_and_replaced(echo: Companions) -> None:
    pid = pid_of(echo)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(CompanionFailed, match="gave no answer"):
        echo.request("echo", b"1", 0.2)
    assert not runs(pid)
    assert echo.request("echo", b"2", PATIENCE_S) == b"2"


def test_a_crash_tells_the_last_line_of_its_complaint_with_escapes_visible(
    echo: Companions,
) -> None:
    with pytest.raises(CompanionFailed) as failure:
        echo.request("echo", b'"crash"', PATIENCE_S)
    assert (
        str(failure.value) == "echo ended with exit code 1: RuntimeError: \\x1b[31mno more memory"
    )
    assert echo.request("echo", b"1", PATIENCE_S) == b"1"


def test_a_companion_killed_from_outside_is_said_to_be_killed(echo: Companions) -> None:
    pid = pid_of(echo)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(CompanionFailed, match="echo was killed"):
        echo.request("echo", b"1", PATIENCE_S)
    assert echo.request("echo", b"2", PATIENCE_S) == b"2"


def test_one_that_closes_its_output_is_killed(echo: Companions) -> None:
    pid = pid_of(echo)
    with pytest.raises(CompanionFailed, match="was killed"):
        echo.request("echo", b'"close"', PATIENCE_S)
    assert not runs(pid)


def test_the_children_of_a_companion_end_with_it(echo: Companions) -> None:
    grandchild = int(echo.request("echo", b'"child"', PATIENCE_S))
    assert runs(grandchild)
    with pytest.raises(CompanionFailed):
        echo.request("echo", b'"hang"', 0.2)
    wait_until(lambda: not runs(grandchild))


def test_ensure_keeps_a_companion_that_works(echo: Companions) -> None:
    pid = pid_of(echo)
    echo.ensure(spec())
    assert pid_of(echo) == pid


def test_python_is_the_interpreter_of_the_worker_itself(echo: Companions) -> None:
    pid = pid_of(echo)
    echo.ensure(CompanionSpec("echo", ("python", "-c", SERVER)))
    assert pid_of(echo) == pid


def test_ensure_replaces_a_companion_whose_environment_must_change(echo: Companions) -> None:
    pid = pid_of(echo)
    echo.ensure(spec(COLOR="blue"))
    hello = json.loads(echo.ready("echo", PATIENCE_S))
    assert hello["color"] == "blue"
    wait_until(lambda: not runs(pid))


def test_ensure_restarts_a_companion_that_ended(echo: Companions) -> None:
    pid = pid_of(echo)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not runs(pid))
    echo.ensure(spec())
    assert pid_of(echo) != pid


def test_what_a_killed_companion_said_before_is_not_given_as_the_reason(echo: Companions) -> None:
    pid = pid_of(echo)
    echo.request("echo", b'"noise"', PATIENCE_S)
    wait_until(lambda: bool(echo._slots["echo"].child.result()._said))
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(CompanionFailed, match=r"^echo was killed$"):
        echo.request("echo", b"1", PATIENCE_S)


SLOW_ANEW = f"""
import os, pathlib, sys, time
mark = pathlib.Path(sys.argv[1])
if mark.exists():
    while not mark.with_name("go").exists():
        time.sleep(0.01)
mark.touch()
exec({SERVER!r})
"""


def test_a_request_that_meets_a_companion_started_anew_leaves_it_time_to_end(
    tmp_path: Path,
) -> None:
    companions = Companions()
    try:
        mark = tmp_path / "mark"
        companions.ensure(CompanionSpec("echo", (sys.executable, "-c", SLOW_ANEW, str(mark))))
        os.kill(pid_of(companions), signal.SIGKILL)
        with pytest.raises(CompanionFailed, match="was killed"):
            companions.request("echo", b"1", PATIENCE_S)
        reason = r"^echo, started anew after a failure, was not ready within 0\.1 s$"
        with pytest.raises(CompanionFailed, match=reason):
            companions.request("echo", b"1", PATIENCE_S, 0.1)
        with companions._slots["echo"].busy, pytest.raises(CompanionFailed, match=reason):
            companions.request("echo", b"1", PATIENCE_S, 0.1)
        (tmp_path / "go").touch()
        pid = pid_of(companions)
        assert companions.request("echo", b"2", PATIENCE_S, 0.1) == b"2"
        assert pid_of(companions) == pid
    finally:
        companions.close()


def test_replacing_a_companion_fails_the_request_it_was_busy_with(echo: Companions) -> None:
    pid_of(echo)
    failures: list[str] = []

    def ask() -> None:
        try:
            echo.request("echo", b'"hang"', PATIENCE_S)
        except CompanionFailed as failure:
            failures.append(str(failure))

    asking = threading.Thread(target=ask)
    asking.start()
    wait_until(echo._slots["echo"].busy.locked)
    echo.ensure(spec(COLOR="red"))
    asking.join(PATIENCE_S)
    assert failures == ["echo was killed"]
    assert json.loads(echo.ready("echo", PATIENCE_S))["color"] == "red"


def test_a_start_that_fails_tells_why_and_is_tried_again() -> None:
    companions = Companions()
    try:
        companions.ensure(spec("import no_such_module"))
        for _ in range(2):
            with pytest.raises(CompanionFailed, match="No module named 'no_such_module'"):
                companions.ready("echo", PATIENCE_S)
    finally:
        companions.close()


def test_a_program_that_does_not_exist_is_named() -> None:
    companions = Companions()
    try:
        companions.ensure(CompanionSpec("ghost", ("/no/such/program",)))
        with pytest.raises(CompanionFailed, match="/no/such/program: No such file or directory"):
            companions.ready("ghost", PATIENCE_S)
    finally:
        companions.close()


def test_a_slow_start_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    companions = Companions()
    try:
        companions.ensure(spec("import time; time.sleep(600)"))
        wait_until(companions._slots["echo"].child.done)
        pid = companions._slots["echo"].child.result().pid
        with pytest.raises(CompanionFailed, match="was not ready within"):
            companions.request("echo", b"1", 0.1)
        assert runs(pid)
        monkeypatch.setattr(companion, "START_LIMIT_S", 0.0)
        with pytest.raises(CompanionFailed, match="was not ready within"):
            companions.request("echo", b"1", 0.1)
        assert not runs(pid)
    finally:
        companions.close()


def test_an_unknown_companion_is_a_failure_in_one_line(echo: Companions) -> None:
    with pytest.raises(CompanionFailed, match="no companion is called other"):
        echo.request("other", b"1", 1.0)


def test_a_request_of_two_lines_is_refused(echo: Companions) -> None:
    with pytest.raises(ValueError, match="one line"):
        echo.request("echo", b"1\n2", 1.0)


def test_closing_leaves_no_process_and_allows_no_start(echo: Companions) -> None:
    pid = pid_of(echo)
    echo.close()
    assert not runs(pid)
    with pytest.raises(CompanionFailed, match="closing"):
        echo.ensure(spec())


def test_a_companion_dies_with_a_worker_that_is_killed() -> None:
    worker = f"""
import sys
from ncdiag.cluster.fleet.companion import CompanionSpec, companions
spec = CompanionSpec("echo", (sys.executable, "-c", {SERVER!r}))
companions().ensure(spec)
print(companions().ready("echo", 30).decode(), flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        pid = json.loads(process.stdout.readline())["pid"]
        assert runs(pid)
        process.kill()
    wait_until(lambda: not runs(pid))
