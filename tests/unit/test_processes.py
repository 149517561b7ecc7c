import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from live_processes import PATIENCE_S, runs, wait_until_gone

from ncdiag.cluster import processes
from ncdiag.cluster.children import name_of_signal, start
from ncdiag.cluster.die_with_parent import die_with_parent
from ncdiag.cluster.fleet.running import Running
from ncdiag.cluster.launchers import Launch
from ncdiag.cluster.processes import Ended, Pool, ask, run
from ncdiag.health.topology import programs
from ncdiag.model.secrets import TOKEN_VARIABLE, WEBHOOK_VARIABLE

FOREVER = "import time; time.sleep(3600)"


def python(code: str, *arguments: str, stdin: bytes = b"", **environment: str) -> Launch:
    argv = (sys.executable, "-I", "-S", "-c", code, *arguments)
    return Launch(argv=argv, hosts=("h",), stdin=stdin, environment=environment)


def ended(launch: Launch, **options: object) -> Ended:
    return run(launch, timeout_s=PATIENCE_S, **options)  # type: ignore[arg-type]


def test_it_tells_what_was_said_and_how_it_ended() -> None:
    done = ended(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"))
    assert (done.code, done.stdout, done.said) == (3, b"out\n", ("err",))
    assert (done.timed_out, done.stopped) == (False, False)
    assert done.error is None


def test_a_signal_is_told_as_subprocess_does() -> None:
    assert ended(python("import os; os.kill(os.getpid(), 15)")).code == -signal.SIGTERM


def test_more_input_than_a_pipe_holds_arrives_with_its_end() -> None:
    data = b"x" * 3_000_000
    assert ended(python("import sys; print(len(sys.stdin.read()))", stdin=data)).stdout == (
        b"3000000\n"
    )


def test_one_that_does_not_listen_may_end_all_the_same() -> None:
    assert ended(python("", stdin=b"x" * 3_000_000)).code == 0


def test_lines_come_as_they_are_said_and_the_last_needs_no_end() -> None:
    lines: list[bytes] = []
    heard = threading.Event()

    def hear(line: bytes) -> None:
        lines.append(line)
        heard.set()

    stop = threading.Event()

    def stop_once_heard() -> None:
        heard.wait(PATIENCE_S)
        stop.set()

    waiting = threading.Thread(target=stop_once_heard)
    waiting.start()
    code = f"import sys; sys.stdout.write('a\\n'); sys.stdout.flush(); {FOREVER}"
    done = ended(python(code), stop=stop, on_line=hear)
    waiting.join()
    assert (lines, done.stopped, done.code) == ([b"a"], True, -signal.SIGKILL)
    lines.clear()
    ended(python("import sys; sys.stdout.write('a\\n\\nb')"), on_line=hear)
    assert lines == [b"a", b"", b"b"]


def test_a_flood_is_bounded_and_holds_nobody_up() -> None:
    code = (
        "import sys\n"
        "for n in range(20): sys.stdout.write('x' * (1 << 20))\n"
        "for n in range(1000): print('y' * 9000, n, file=sys.stderr)\n"
    )
    done = ended(python(code))
    assert done.code == 0
    assert 16 << 20 <= len(done.stdout) < 17 << 20
    assert len(done.said) == 40
    assert max(map(len, done.said)) == 2000


def test_its_whole_group_is_killed_when_time_is_up(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', sys.argv[2]])\n"
        "open(sys.argv[1], 'w').write(f'{os.getpid()} {child.pid}')\n"
        "print('up', flush=True); time.sleep(3600)\n"
    )
    stop = threading.Event()
    done = ended(python(code, str(pids), FOREVER), stop=stop, on_line=lambda _: stop.set())
    assert done.stopped
    for pid in map(int, pids.read_text().split()):
        wait_until_gone(pid)
    done = run(python(FOREVER), timeout_s=0.1)
    assert (done.timed_out, done.code) == (True, -signal.SIGKILL)


def test_what_it_leaves_behind_keeps_nobody_waiting(tmp_path: Path) -> None:
    """A daemon of its own session holds the output open; its command has ended."""
    pids = tmp_path / "pids"
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', sys.argv[2]], start_new_session=True)\n"
        "open(sys.argv[1], 'w').write(str(child.pid)); print('said')\n"
    )
    done = ended(python(code, str(pids), FOREVER))
    try:
        assert (done.code, done.stdout, done.timed_out) == (0, b"said\n", False)
        assert runs(int(pids.read_text()))
    finally:
        os.kill(int(pids.read_text()), signal.SIGKILL)


def test_a_program_that_is_not_there_is_told() -> None:
    done = ended(Launch(argv=("/nowhere/mpiexec",), hosts=("h",)))
    assert done.code != 0
    assert "/nowhere/mpiexec: No such file or directory" in " ".join(
        (*done.said, str(done.error or ""))
    )


def test_its_environment_is_ours_and_what_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCDIAG_OURS", "1")
    code = "import os; print(os.environ['NCDIAG_OURS'], os.environ['NCDIAG_ADDED'])"
    assert ended(python(code, NCDIAG_ADDED="a b")).stdout == b"1 a b\n"


def test_a_pool_runs_no_more_than_it_may_and_all_in_the_end(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "mine = os.path.join(sys.argv[1], str(os.getpid()))\n"
        "open(mine, 'w').close(); print(len(os.listdir(sys.argv[1]))); os.remove(mine)\n"
    )
    with Pool(3) as pool:
        running = [
            pool.submit(python(code, str(tmp_path)), timeout_s=PATIENCE_S) for _ in range(20)
        ]
        counts = [int(one.result().stdout) for one in running]
    assert len(counts) == 20
    assert max(counts) <= 3


def test_closing_a_pool_kills_what_runs_and_starts_nothing_more(tmp_path: Path) -> None:
    up = threading.Event()
    code = f"import os, sys; print(os.getpid(), flush=True); {FOREVER}"
    pids: list[int] = []

    def hear(line: bytes) -> None:
        pids.append(int(line))
        up.set()

    pool = Pool(1)
    first = pool.submit(python(code), timeout_s=PATIENCE_S, on_line=hear)
    second = pool.submit(python(f"open({str(tmp_path / 'x')!r}, 'w')"), timeout_s=PATIENCE_S)
    assert up.wait(PATIENCE_S)
    pool.close()
    pool.close()
    assert first.result().stopped
    assert second.cancelled()
    assert not runs(pids[0])
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("started_by_us", [True, False])
def test_a_command_dies_with_whoever_started_it(tmp_path: Path, started_by_us: bool) -> None:  # noqa: FBT001
    pid = tmp_path / "pid"
    inner = f"import os; open({str(pid)!r}, 'w').write(str(os.getpid())); print('up', flush=True)"
    # Only of the second kind can the command be made by another process than the one that starts.
    argv = die_with_parent(
        (sys.executable, "-c", f"{inner}; {FOREVER}"), started_by_us=started_by_us
    )
    if started_by_us:
        starter = (
            "import subprocess, sys; from ncdiag.cluster.die_with_parent import die_with_parent\n"
            f"subprocess.run(die_with_parent([sys.executable, '-c', {f'{inner}; {FOREVER}'!r}]))"
        )
    else:
        starter = f"import subprocess; subprocess.run({argv!r})"
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE) as outer:
        assert outer.stdout
        assert outer.stdout.readline() == b"up\n"
        outer.kill()
    wait_until_gone(int(pid.read_text()))


def test_a_command_of_another_driver_never_starts() -> None:
    argv = list(die_with_parent(("/bin/echo", "x")))
    argv[argv.index(str(os.getpid()))] = "1"
    done = subprocess.run(argv, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_listener_that_fails_leaves_no_process_behind(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = (
        "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        f"print('x', flush=True); {FOREVER}"
    )

    def fail(_: bytes) -> None:
        raise ValueError("a bug of ours")

    with pytest.raises(ValueError, match="a bug of ours"):
        ended(python(code, str(pid)), on_line=fail)
    assert not Path(f"/proc/{pid.read_text()}").exists()  # not even as a zombie


def test_without_a_file_left_for_the_talk_no_process_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def begin(launch: Launch) -> "subprocess.Popen[bytes]":
        started.append(start(launch))
        return started[0]

    def none_left(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(processes, "start", begin)
    monkeypatch.setattr(processes, "_Talk", none_left)
    done = ended(python(FOREVER))
    assert (done.code, done.error) == (None, f"{sys.executable}: Too many open files")
    assert not Path(f"/proc/{started[0].pid}").exists()


def test_one_that_outlives_even_sigkill_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broken driver holds it; here it is spared."""
    started: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(processes, "kill_group", started.append)
    monkeypatch.setattr(processes, "_DEATH_S", 0.05)
    done = run(python(FOREVER), timeout_s=0.1)
    assert (done.timed_out, done.code) == (True, -signal.SIGKILL)
    started[0].kill()
    started[0].wait(PATIENCE_S)


def test_an_answer_is_kept_up_to_what_was_asked_for() -> None:
    code = "import sys; sys.stdout.write('x' * (1 << 20))"
    argv = (sys.executable, "-I", "-S", "-c", code)
    done = ask(argv, timeout_s=PATIENCE_S, most_bytes=100_000)
    assert done.code == 0
    assert 100_000 <= len(done.stdout) < 200_000


TELL_OURS = "import os, sys; sys.stderr.write(repr([n for n in os.environ if 'NCDIAG' in n]))"


def tell_a_fleet(launch: Launch) -> list[str]:
    said: list[str] = []

    async def hear() -> None:
        running = await Running.start(
            launch, lambda _: None, lambda _: None, lambda _, line: said.append(line)
        )
        await running.exited

    asyncio.run(hear())
    return said


def test_secrets_that_are_for_us_alone_reach_no_program_that_we_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(WEBHOOK_VARIABLE, "https://chat/secret")
    monkeypatch.setenv(TOKEN_VARIABLE, "0123456789abcdef")
    monkeypatch.setenv("NCDIAG_OTHER", "1")
    launch = python(TELL_OURS)
    assert ended(launch).said == ("['NCDIAG_OTHER']",)
    assert tell_a_fleet(launch) == ["['NCDIAG_OTHER']"]
    answer = programs.ask((sys.executable, "-c", TELL_OURS + "; sys.exit(1)"), timeout_s=60)
    assert answer.reason is not None
    assert answer.reason.endswith(": ['NCDIAG_OTHER']")


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    number = signal.SIGRTMIN + 5
    code = f"import os; os.kill(os.getpid(), {number})"
    answer = programs.ask((sys.executable, "-I", "-S", "-c", code), timeout_s=60)
    assert answer.reason is not None
    assert f"failed (signal {number})" in answer.reason
    assert name_of_signal(signal.SIGTERM) == "SIGTERM"
