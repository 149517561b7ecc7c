"""Ctrl-C at any moment: the exit code is 130 and stderr has one line at most."""

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ncdiag.model.errors import ExitCode

ROOT = Path(__file__).parents[2]
# Ctrl-C as Python begins to import the module that is named.
AT_AN_IMPORT = """
import os, signal, sys
module = sys.argv.pop(1)
class Interrupts:
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
from ncdiag.__main__ import main
main()
"""
IN_A_DESTRUCTOR = """
import os, signal
from ncdiag.cli import main
class Destroyed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
def run(arguments):
    Destroyed()
    signal.pause()
main.run = run
main.main()
"""
IN_A_LIBRARY = """
import os, signal
from ncdiag.cli import main
def command(*arguments, **options):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("a library could not be loaded")
main.get_command = lambda app: type("Command", (), {"main": command})
main.main()
"""
AT_THE_END = """
import atexit, os, signal
from ncdiag.__main__ import main
atexit.register(os.kill, os.getpid(), signal.SIGINT)
main()
"""


def ended(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ROOT,
    )


@pytest.mark.parametrize(
    "module",
    [
        "ncdiag.cli.main",
        "typer",
        "ncdiag.cli.commands",
        "ncdiag.model.text",
        "ncdiag.cli.env",
        "ncdiag.cli.env.show",
        "ncdiag.report.env",
        "rich.table",
    ],
)
def test_ctrl_c_while_modules_are_imported_leaves_no_traceback(module: str) -> None:
    done = ended(AT_AN_IMPORT, module, "env", "show", "tcp")
    assert done.returncode == ExitCode.INTERRUPTED
    assert done.stderr in {"", "ncdiag: interrupted\n"}


@pytest.mark.parametrize("code", [IN_A_DESTRUCTOR, IN_A_LIBRARY])
def test_an_exception_that_is_lost_on_its_way_interrupts_all_the_same(code: str) -> None:
    done = ended(code)
    assert (done.returncode, done.stdout) == (ExitCode.INTERRUPTED, "")
    assert done.stderr in {"", "ncdiag: interrupted\n"}


def test_ctrl_c_on_the_way_out_leaves_no_traceback() -> None:
    done = ended(AT_THE_END, "--version")
    assert (done.returncode, done.stderr) == (ExitCode.INTERRUPTED, "")
    assert done.stdout.startswith("ncdiag ")


@pytest.mark.parametrize("delay_ms", [0, 5, 10, 20, 40, 60, 80, 100])
def test_ctrl_c_soon_after_the_start_is_silent_or_too_late(delay_ms: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "ncdiag", "env", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        while process.poll() is None and not catches_hangup(process.pid):
            wait_at_most(process, 0.001)
        wait_at_most(process, delay_ms / 1000)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    # With nothing left to run, Python gives signals back to the system: shells call that 130 too.
    killed = (-signal.SIGINT, "")
    assert (process.returncode, err) in {
        *((0, ""), (130, ""), (130, "ncdiag: interrupted\n")),
        killed,
    }


def wait_at_most(process: subprocess.Popen[str], timeout_s: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout_s)


def catches_hangup(pid: int) -> bool:
    """Whether the process minds SIGHUP, which Python itself does not: ncdiag has begun."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt")), "0:0")
    return bool(int(caught.partition(":")[2], 16) & 1 << signal.SIGHUP - 1)
