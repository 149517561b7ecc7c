import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ncdiag.cli import main
from ncdiag.cli.reading import ReadingBar
from ncdiag.logs import ras_live
from ncdiag.model.errors import ExitCode, UsageError
from ncdiag.model.finding import FindingClass
from ncdiag.report.postmortem import classes

DOWN = (
    "{host}:501:620 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.9.8.{n}<0>\n"
    "{host}:501:620 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_0:1 Got async event : "
    "port error\n"
)
XID = (
    "2025-03-04T05:06:07+00:00 {host} kernel: NVRM: Xid (PCI:0000:43:00): 79, pid=501, "
    "name=python, GPU has fallen off the bus.\n"
)
HEAVY = {"torch", "pandas", "matplotlib", "distributed", "numpy", "jinja2", "mpi4py", "dask"}

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / "n7.log"
    path.parent.mkdir()
    path.write_text(XID.format(host="n7"))
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to read; name logs or folders, or --ras HOST for a running job"),
        (["gone.log"], "there is no gone.log; name a log, a folder of logs or a pattern"),
        (["a\nb\x1b7"], r"there is no a b\x1b7; name a log"),
        (["none-*.log"], "none-*.log: matches no file"),
        (["empty"], "empty: no file is there"),
        (["dangling"], "dangling: No such file or directory"),
        (["dangling", "none*"], "dangling: No such file or directory (and 1 more cannot be read)"),
        (["x.log", "--hosts", "gone.txt"], "there is no hosts file gone.txt"),
        (["x.log", "--html", "empty"], "empty is a folder; name a file to write"),
        (["x.log", "--html", "x.log"], "x.log is already there; name another file, or add --force"),
        (["x.log", "--html", "y", "--isolate-out", "y"], "y cannot hold the page and the list; "),
        (["x.log", "--isolate-out", "x.log"], "x.log is already there; "),
        (["x.log", "--max-bytes", "0"], "invalid value for '--max-bytes': a size must be above"),
        (["x.log", "--jobs", "0"], "invalid value for '--jobs': "),
        (["x.log", "--format", "xml"], "invalid value for '--format': "),
        (["--explain", "ib_flush"], "there is no class ib_flush; did you mean ib_flush_error?"),
        (["--explain", "qqqq"], "there is no class qqqq; --list-classes lists them all"),
        (["--explain", ""], "there is no class ; --list-classes lists them all"),
        (["--ras", "h:x"], "'h:x' names no RAS service; give HOST, HOST:PORT or"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.log").write_text("x\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    assert main.run(["parse-log", *arguments]) == ExitCode.USAGE
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"ncdiag: {message}")
    assert err.count("\n") == 1


def test_findings_exit_with_1_and_only_json_goes_to_stdout(log: Path, capfd: Capture) -> None:
    assert main.run(["parse-log", str(log), "--format", "json"]) == ExitCode.WRONG
    out, err = capfd.readouterr()
    document = json.loads(out)
    assert document["schema"] == "ncdiag/postmortem/1"
    assert document["findings"][0]["class"] == "gpu_fell_off_bus"
    assert document["findings"][0]["suspects"][0]["name"] == "n7" or any(
        one["name"] == "n7" for one in document["findings"][0]["suspects"]
    )
    assert [one["host"] for one in document["isolate"]] == ["n7"]
    assert err == ""


def test_an_unreadable_file_beside_good_ones_is_a_line_and_stands_in_the_inputs(
    log: Path, capfd: Capture
) -> None:
    bad = log.parent / "gone.log"
    bad.symlink_to("nowhere")
    assert main.run(["parse-log", str(log.parent), "--format", "json"]) == ExitCode.WRONG
    out, err = capfd.readouterr()
    errors = {one["path"]: one["error"] for one in json.loads(out)["inputs"]}
    assert errors == {str(bad): "No such file or directory", str(log): None}
    assert err == f"ncdiag: {bad}: No such file or directory\n"


def test_what_is_not_ours_is_inconclusive(tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "web.log"
    path.write_text('10.1.1.1 - - "GET / HTTP/1.1" 200\n' * 20)
    assert main.run(["parse-log", str(path)]) == ExitCode.UNDECIDED
    assert capfd.readouterr().out.startswith("INCONCLUSIVE  nothing of NCCL")


def test_hosts_to_isolate_go_to_a_file_also_when_there_are_none(
    log: Path, tmp_path: Path, capfd: Capture
) -> None:
    target = tmp_path / "isolate.txt"
    assert main.run(["parse-log", str(log), "--isolate-out", str(target)]) == ExitCode.WRONG
    assert target.read_text() == "n7\n"
    log.write_text("n7:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n")
    main.run(["parse-log", str(log), "--isolate-out", str(target), "--force"])
    assert target.read_text() == ""
    capfd.readouterr()


def test_a_file_that_cannot_be_written_costs_no_results(
    log: Path, tmp_path: Path, capfd: Capture
) -> None:
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "isolate.txt"
    assert main.run(["parse-log", str(log), "--isolate-out", str(below)]) == ExitCode.UNDECIDED
    out, err = capfd.readouterr()
    assert out.startswith("FINDINGS")
    assert err.startswith(f"ncdiag: cannot write {below}")
    assert err.count("\n") == 1


def test_the_page_is_written_whole(log: Path, tmp_path: Path, capfd: Capture) -> None:
    target = tmp_path / "new" / "page.html"
    assert main.run(["parse-log", str(log), "--html", str(target)]) == ExitCode.WRONG
    assert target.read_text().endswith("</html>")
    assert [path.name for path in target.parent.iterdir()] == ["page.html"]
    capfd.readouterr()


def test_a_hosts_file_names_addresses(tmp_path: Path, capfd: Capture) -> None:
    lines = "".join(
        f"w{n}:31:44 [0] transport/net_ib.cc:1298 NCCL WARN NET/IB : Got completion from peer "
        "10.9.8.7<52144> with status=12 opcode=0 len=0 vendor err 129\n"
        for n in range(1, 4)
    )
    (tmp_path / "job.log").write_text(lines)
    (tmp_path / "hosts.txt").write_text("gpu-07 address=10.9.8.7\nw[1-3]\n")
    arguments = ["parse-log", str(tmp_path / "job.log"), "--format", "json"]
    main.run(arguments)
    before = json.loads(capfd.readouterr().out)
    main.run([*arguments, "--hosts", str(tmp_path / "hosts.txt")])
    after = json.loads(capfd.readouterr().out)
    assert before["findings"][0]["suspects"][0]["name"] == "10.9.8.7"
    assert after["findings"][0]["suspects"][0]["name"] == "gpu-07"


def test_standard_input_is_a_log_too(log: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ncdiag", "parse-log", "-"],
        input=log.read_text(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitCode.WRONG
    assert done.stdout.startswith("FINDINGS  gpu_fell_off_bus")
    assert "standard input, 1 line of kernel" in " ".join(done.stdout.split())
    assert "stdin:1 " in done.stdout
    assert done.stderr == ""


def test_a_class_is_explained_and_near_names_are_found(capfd: Capture) -> None:
    assert main.run(["parse-log", "--explain", "GPU-fell-off-bus"]) == ExitCode.DONE
    out = capfd.readouterr().out
    assert out.startswith("gpu_fell_off_bus\n")
    assert "What to do" in out
    assert [line for line in out.splitlines() if len(line) > 80] == []
    with pytest.raises(UsageError, match="did you mean nvlink_error"):
        classes.find("nvlink_eror")


def test_all_classes_are_listed(capfd: Capture) -> None:
    assert main.run(["parse-log", "--list-classes"]) == ExitCode.DONE
    out = capfd.readouterr().out
    assert all(f"{one} " in out for one in FindingClass)
    assert main.run(["parse-log", "--list-classes", "--format", "json"]) == ExitCode.DONE
    document = json.loads(capfd.readouterr().out)
    assert document["schema"] == "ncdiag/finding-classes/1"
    assert [one["class"] for one in document["classes"]] == list(FindingClass)
    assert main.run(["parse-log", "--explain", "oom_kill", "--format", "json"]) == ExitCode.DONE
    assert [one["class"] for one in json.loads(capfd.readouterr().out)["classes"]] == ["oom_kill"]


def test_a_report_from_a_running_job_is_read_like_a_log(
    monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    asked = []

    def fetch(host: str, port: int) -> bytes:
        asked.append((host, port))
        return XID.format(host="n7").encode()

    monkeypatch.setattr(ras_live, "fetch", fetch)
    assert main.run(["parse-log", "--ras", "n7", "--format", "json"]) == ExitCode.WRONG
    assert asked == [("n7", 28028)]
    (summary,) = json.loads(capfd.readouterr().out)["inputs"]
    assert summary["path"] == "ras://n7:28028"


def test_a_job_that_does_not_answer_is_undecided(capfd: Capture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        target = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main.run(["parse-log", "--ras", target]) == ExitCode.UNDECIDED
    err = capfd.readouterr().err
    assert err.startswith(f"ncdiag: {target}: Connection refused; ")
    assert err.count("\n") == 1


def test_logs_are_read_although_the_job_does_not_answer(log: Path, capfd: Capture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        target = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main.run(["parse-log", str(log), "--ras", target]) == ExitCode.WRONG
    out, err = capfd.readouterr()
    assert out.startswith("FINDINGS")
    assert err.startswith(f"ncdiag: ras://{target}: Connection refused; ")


def test_an_interrupt_ends_with_130(
    log: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ncdiag.cli.reading.read_logs", interrupted)
    assert main.run(["parse-log", str(log)]) == ExitCode.INTERRUPTED
    assert capfd.readouterr().out == ""


def test_an_interrupt_while_a_stream_is_read_ends_without_a_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ncdiag", "parse-log", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin
    process.stdin.write(b"some line\n" * 200_000)  # more than a pipe holds: it is being read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (ExitCode.INTERRUPTED, b"")
    assert b"Traceback" not in err


def test_a_small_log_needs_nothing_heavy(log: Path) -> None:
    code = (
        "import sys\n"
        "from ncdiag.cli.main import run\n"
        f"run(['parse-log', {str(log)!r}, '--verbose'])\n"
        f"print('loaded:', *sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_a_bar_is_shown_on_a_terminal_only() -> None:
    from rich.console import Console

    with (Path(os.devnull)).open("w") as file:
        with ReadingBar(Console(file=file)) as quiet:
            quiet.progress(1, 2)
            assert quiet._bar is None
        with ReadingBar(Console(file=file, force_terminal=True)) as shown:
            shown.progress(1, 2)
            assert shown._bar is not None
            assert shown._bar.tasks[0].percentage == 50
