"""The health of hosts: with programs that hang, of a fleet, under Slurm, and for Prometheus."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from health_guide import NCDIAG, drain_script, gate_script
from slurm_lab import SlurmLab, wait_for

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples/health"
PROGRAMS = ROOT / "tests/data/health/programs"
# Far beyond what any run here may take, for a machine that is busy.
LONGEST_S = 60


def health(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "-m", "ncdiag", "health", *arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
        env={**os.environ, "COLUMNS": "80", **environment},
    )


def findings(document: Mapping[str, Any], number: int = 0) -> dict[str, Any]:
    return {one["check"]: one for one in document["hosts"][number]["findings"]}


def test_a_hung_nvidia_smi_costs_its_deadline_and_is_a_finding() -> None:
    path = f"{PROGRAMS}:{os.environ['PATH']}"
    done = health("--format", "json", PATH=path, NVIDIA_SMI_HANGS="1")
    document = json.loads(done.stdout)
    assert done.stderr == ""
    assert "nvidia-smi" in findings(document)["hung_program"]["text"]
    sources = {one["source"]: one for one in document["hosts"][0]["facts"]["sources"]}
    assert sources["nvidia-smi"]["state"] == "timed out"
    assert sources["proc"]["state"] == "read"
    assert done.returncode == 1


def test_a_dead_mount_and_a_closed_kernel_log_are_findings(tmp_path: Path) -> None:
    tree = tmp_path / "host"
    shutil.copytree(EXAMPLES / "gpu018", tree)
    (tree / "recorded/dmesg.txt").write_text("!denied\n")
    (tree / "recorded/nvml.json").write_text("!hung\n")
    mounts = [{"path": "/scratch", "kind": "nfs4", "state": "hung", "reason": "no answer"}]
    (tree / "recorded/mounts.json").write_text(json.dumps(mounts))
    done = health("--root", str(tree), "--format", "json")
    found = findings(json.loads(done.stdout))
    assert found["hung_mount"]["device"] == "/scratch"
    assert "source_denied" in found
    assert found["hung_program"]["device"] == "nvml"
    assert done.returncode == 1
    prolog = health("--root", str(tree), "--prolog")
    assert (prolog.returncode, prolog.stdout) == (0, "")


def test_a_fleet_is_asked_by_one_python_each_and_who_is_silent_is_unknown(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text(
        f"127.0.0.2 root={EXAMPLES / 'gpu017'} gpus=4\n"
        f"127.0.0.[3-4] root={EXAMPLES / 'gpu018'} gpus=4\n"
        f"127.0.0.5 root={tmp_path / 'nothing'}\n"
    )
    metrics = tmp_path / "fleet.prom"
    done = health(
        "--nodes", str(hosts), "--launcher", "local", "--interval", "100ms", "--format", "json",
        "--metrics", str(metrics),
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert [(one["host"], one["fitness"]) for one in document["hosts"]] == [
        ("127.0.0.2", "fatal"),
        ("127.0.0.3", "healthy"),
        ("127.0.0.4", "healthy"),
        ("127.0.0.5", "unknown"),
    ]
    assert "no folder" in document["hosts"][3]["error"]
    told = document["hosts"][1]["facts"]
    assert told["asked_s"] <= told["taken_s"] <= told["answered_s"]
    assert done.returncode == 1
    promtool(metrics.read_text())


@pytest.mark.parametrize("command", [(), ("--nagios",)])
def test_a_host_that_cannot_be_reached_is_unknown(command: tuple[str, ...]) -> None:
    # Nobody listens there: the port of an address that is this machine's own.
    ssh = ("--launcher", "ssh", "--ssh-option", "-oPort=1")
    done = health("--nodes", "127.0.0.2", *ssh, *command)
    assert done.returncode == 3
    assert "UNKNOWN" in done.stdout.splitlines()[-1]
    assert "port 1" in done.stdout
    assert "Traceback" not in done.stderr


def promtool(text: str) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is missing (package prometheus)")
    done = subprocess.run(
        [program, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_promtool_has_nothing_to_say_of_what_a_watch_writes(tmp_path: Path) -> None:
    file = tmp_path / "ncdiag.prom"
    with subprocess.Popen(
        (sys.executable, "-m", "ncdiag", "health", "--watch", "100ms", "--metrics", str(file),
         "--root", str(EXAMPLES / "gpu017")),
        stdout=subprocess.PIPE,
        text=True,
    ) as watch:  # fmt: skip
        wait_for(file.exists, "metrics")
        wait_for(lambda: "interval" in file.read_text(), "a second round")
        watch.terminate()
        out, _ = watch.communicate(timeout=LONGEST_S)
    assert watch.returncode == 130
    assert "FATAL: gpu017" in out
    assert 'check="gpu_missing"' in file.read_text()
    assert [one.name for one in tmp_path.iterdir()] == ["ncdiag.prom"]
    promtool(file.read_text())


# Which recorded host each node of Slurm is. h3 has none to read, h4 an ncdiag that does not start.
TREES = {"h1": "gpu017", "h2": "gpu018", "h3": "nothing"}


@pytest.fixture
def slurm(slurm_lab: SlurmLab) -> Iterator[SlurmLab]:
    """The lab, with the scripts of the guide in its folder, none of which is in use yet."""
    plain = (slurm_lab.folder / "slurm.conf").read_text()
    ncdiag = slurm_lab.folder / "ncdiag"
    ncdiag.write_text(
        "#!/bin/sh\n"
        f"case $SLURMD_NODENAME in {''.join(f'{h}) t={t};; ' for h, t in TREES.items())} esac\n"
        f': >"{slurm_lab.folder}/asked-$SLURMD_NODENAME"\n'
        '[ -n "$t" ] || exec /nowhere/python\n'
        f'exec {sys.executable} -m ncdiag "$@" --root {EXAMPLES}/$t\n'
    )
    for name, text in (("gate", gate_script()), ("drain", drain_script())):
        script = slurm_lab.folder / f"{name}.sh"
        path = f"PATH={os.environ['PATH']} SLURM_CONF={slurm_lab.folder}/slurm.conf"
        script.write_text(text.replace(NCDIAG, str(ncdiag)).replace("\n", f"\nexport {path}\n", 1))
        script.chmod(0o755)
    ncdiag.chmod(0o755)
    resume(slurm_lab)
    yield slurm_lab
    (slurm_lab.folder / "slurm.conf").write_text(plain)
    slurm_lab.run("scontrol", "reconfigure")


def configure(lab: SlurmLab, *lines: str) -> None:
    file = lab.folder / "slurm.conf"
    plain = file.read_text().partition("# of the test\n")[0]
    file.write_text("\n".join((f"{plain}# of the test", *lines, "")))
    assert lab.run("scontrol", "reconfigure").returncode == 0


def resume(lab: SlurmLab) -> None:
    for name, state in lab.states().items():
        if state.startswith("dr"):
            lab.run("scontrol", "update", f"NodeName={name}", "State=RESUME")
    lab.wait_until_idle()


def reason(lab: SlurmLab, node: str) -> str:
    return lab.run("sinfo", "-h", "-n", node, "-p", "all", "-o", "%E").stdout.strip()


@pytest.mark.root
@pytest.mark.parametrize("when", ["Prolog", "Epilog"])
def test_slurms_prolog_and_epilog_drain_the_node_with_a_fatal_finding_and_no_other(
    slurm: SlurmLab, when: str
) -> None:
    configure(slurm, f"{when}={slurm.folder}/gate.sh")
    others = slurm.run("srun", "-w", "h[2-4]", "-N3", "hostname")
    assert others.returncode == 0, others.stderr
    assert len(others.stdout.split()) == 3
    batch = ("sbatch", "-w", "h1", "-o", "/dev/null", "--wrap", "true")
    assert slurm.run(*batch).returncode == 0
    wait_for(lambda: slurm.states()["h1"].startswith("dr"), "the node with an Xid to be drained")
    for job in slurm.jobs():
        slurm.run("scancel", job)
    wait_for(lambda: not slurm.jobs(), "the end of all jobs")
    assert f"{when} error" in reason(slurm, "h1")
    assert {name: slurm.states()[name] for name in ("h2", "h3", "h4")} == dict.fromkeys(
        ("h2", "h3", "h4"), "idle"
    )


# The last of them: a check that is under way when the test ends may still drain its node.
@pytest.mark.root
def test_slurms_health_check_drains_the_node_with_a_fatal_finding_and_no_other(
    slurm: SlurmLab,
) -> None:
    configure(
        slurm,
        f"HealthCheckProgram={slurm.folder}/drain.sh",
        "HealthCheckInterval=1",
        "HealthCheckNodeState=ANY",
    )
    asked = [slurm.folder / f"asked-{host}" for host in slurm.hosts]
    wait_for(lambda: all(one.exists() for one in asked), "every node to be asked")
    wait_for(lambda: slurm.states()["h1"] == "drain", "the node with an Xid to be drained")
    for one in asked:
        one.unlink()
    # Asked again, so whatever the first answer of each node was, it has been acted on.
    wait_for(lambda: all(one.exists() for one in asked), "every node to be asked again")
    assert reason(slurm, "h1").startswith("ncdiag: gpu2: ")
    assert {name: slurm.states()[name] for name in ("h2", "h3", "h4")} == dict.fromkeys(
        ("h2", "h3", "h4"), "idle"
    )
