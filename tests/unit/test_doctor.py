import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from live_processes import wait_until_gone

from ncdiag.cli import doctor
from ncdiag.cli.doctor import Answer, Part, Requirement
from ncdiag.cli.main import run

PYTHON = sys.executable


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No program on PATH but those put into the folder, and nothing slow to import."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(doctor, "_SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr(doctor, "_IMPORTS", {"torch": "print('2.13.0 pretended')"})
    return tmp_path


def put_program(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def part(parts: Sequence[Part], kind: str, name: str) -> Part:
    (found,) = (part for part in parts if (part.kind, part.name) == (kind, name))
    return found


def test_a_missing_program_comes_with_its_cure(bare_machine: Path) -> None:
    put_program(bare_machine, "iperf3", "echo 'iperf 3.12 (cJSON 1.7.15)'; echo more")
    parts = doctor.examine()
    assert part(parts, "program", "iperf3").version == "iperf 3.12 (cJSON 1.7.15)"
    tc = part(parts, "program", "tc")
    assert not tc.available
    assert tc.version is None
    assert tc.reason == "not found, needed for bin/netlab; apt-get install iproute2"


def test_launchers_and_engines_come_with_their_reasons(bare_machine: Path) -> None:
    parts = doctor.examine()
    assert part(parts, "launcher", "local").available
    ssh = part(parts, "launcher", "ssh")
    assert "apt-get install openssh-client" in (ssh.reason or "")
    assert part(parts, "engine", "torch").version == "2.13.0 pretended"
    put_program(bare_machine, "ssh", "echo OpenSSH_9.2p1 >&2")
    parts = doctor.examine()
    assert part(parts, "launcher", "ssh").available
    assert part(parts, "program", "ssh").version == "OpenSSH_9.2p1"


def test_starters_of_mpi_programs_are_told_with_what_they_call(bare_machine: Path) -> None:
    put_program(bare_machine, "ssh", "")
    put_program(bare_machine, "mpirun", "echo 'mpirun (Open MPI) 5.0.8'")
    parts = doctor.examine()
    assert part(parts, "starter", "openmpi").version == f"{bare_machine}/mpirun"
    assert "srun is not installed" in (part(parts, "starter", "slurm").reason or "")


def test_an_engine_of_mpi_needs_a_starter(bare_machine: Path) -> None:
    del bare_machine
    engine = part(doctor.examine(), "engine", "mpi")
    assert not engine.available
    assert engine.reason


def test_a_broken_program_says_why(bare_machine: Path) -> None:
    put_program(bare_machine, "nvidia-smi", "echo 'NVIDIA-SMI has failed \x1b[31m'; exit 9")
    put_program(bare_machine, "promtool", "exit 3")
    parts = doctor.examine()
    assert part(parts, "program", "nvidia-smi").reason == (
        r"fails (NVIDIA-SMI has failed \x1b[31m); install the NVIDIA driver"
    )
    assert part(parts, "program", "promtool").reason == (
        "fails (exit code 3); apt-get install prometheus"
    )


@pytest.mark.usefixtures("bare_machine")
def test_an_engine_whose_library_does_not_load_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        doctor, "_IMPORTS", {"torch": "raise ImportError('libtorch.so: cannot open')"}
    )
    engine = part(doctor.examine(), "engine", "torch")
    assert engine.reason == (
        f"fails (ImportError: libtorch.so: cannot open); {PYTHON} -m pip install 'torch>=2.4'"
    )
    assert run(["doctor"]) == 1
    assert "No sweep can run here: no engine (see above)." in capsys.readouterr().out


def test_a_library_is_missing_or_too_old_with_the_command_that_puts_it_right() -> None:
    missing = doctor._library(Requirement("no-such-library", "1.2", "extra gpu"), {})
    assert missing.reason == f"not installed; {PYTHON} -m pip install 'no-such-library>=1.2'"
    old = doctor._library(Requirement("msgspec", "99", "ncdiag"), {})
    assert old.reason is not None
    assert "is too old; " in old.reason
    assert doctor._library(Requirement("msgspec", "0.1", "ncdiag"), {}).available


def test_the_libraries_are_those_of_the_core_and_the_extras() -> None:
    found = {requirement.name: requirement for requirement in doctor._requirements()}
    assert found["distributed"].needed_for == "ncdiag"
    assert found["torch"] == Requirement("torch", "2.4", "extra torch")
    assert "pytest" not in found
    assert "ncdiag" not in found


def test_a_program_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {pid_file}; wait"
    # The first answer is in before the hanging one has used up the time.
    answers = doctor.ask(
        {"quick": ["/bin/echo", "here"], "hanging": ["/bin/sh", "-c", script]}, timeout_s=2
    )
    assert answers == {"quick": Answer(line="here"), "hanging": Answer(failure="gives no answer")}
    wait_until_gone(int(pid_file.read_text()))


def test_a_program_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    put_program(tmp_path, "tool", "true")
    (tmp_path / "tool").write_text("#!/no/such/interpreter\n")
    answer = doctor.ask({"tool": [os.fspath(tmp_path / "tool")]}, timeout_s=5)["tool"]
    assert answer == Answer(failure=f"fails ({tmp_path / 'tool'}: No such file or directory)")


@pytest.mark.usefixtures("bare_machine")
def test_json_is_all_that_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "ncdiag/doctor/1"
    assert document["sweep"] is True
    assert {part["kind"] for part in document["parts"]} == {
        "launcher",
        "starter",
        "engine",
        "program",
        "library",
    }
    assert all(part["available"] == (part["reason"] is None) for part in document["parts"])


@pytest.mark.usefixtures("bare_machine")
def test_text_fits_eighty_columns_and_ends_with_the_conclusion(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["doctor"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("ncdiag ")
    assert lines[-1] == "A sweep can run here (launcher local; engine torch)."
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if line.endswith(" ")] == []


def test_what_an_mpi_lacks_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    lacks = {"available": False, "reason": "no mpirun here"}
    parts = [
        Part(kind="launcher", name="openmpi", needed_for="sweep", **lacks),
        Part(kind="starter", name="openmpi", needed_for="engine mpi", **lacks),
    ]
    doctor._print_text(parts, no_color=True)
    shown = capsys.readouterr().out
    assert shown.count("no mpirun here") == 1
    assert "--  openmpi  as above" in shown


def test_without_a_library_of_the_core_no_sweep_can_run() -> None:
    def usable(kind: str, name: str, needed_for: str, *, available: bool = True) -> Part:
        return Part(kind=kind, name=name, available=available, needed_for=needed_for)

    ways = [usable("launcher", "local", "sweep"), usable("engine", "torch", "sweep")]
    broken = usable("library", "pandas", "ncdiag", available=False)
    unneeded = usable("library", "mpi4py", "extra mpi", available=False)
    assert doctor.sweep_can_run([*ways, unneeded])
    assert not doctor.sweep_can_run([*ways, broken])
    assert not doctor.sweep_can_run(ways[:1])
    assert doctor._conclusion([*ways, broken]).startswith("No sweep can run here: a library is")
