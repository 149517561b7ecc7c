"""Hosts are drained and resumed on a real Slurm, by a real ncdiag that may be killed."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from slurm_lab import SlurmLab, missing, wait_for

from ncdiag.cli import main
from ncdiag.cluster.slurm_nodes import parse_nodes
from netlab.testing import Lab, netlab

HOSTS = tuple(f"h{number}" for number in range(1, 11))
# Blocks the second change, before or after it is made, until the file "go" is there.
BLOCKING = """#!/bin/sh
[ "$1" = update ] || exec {real} "$@"
echo >> {folder}/updates
[ $(wc -l < {folder}/updates) -eq {at} ] || exec {real} "$@"
{first}
touch {folder}/blocked
while [ ! -e {folder}/go ]; do sleep 0.05; done
{then}
"""
NOT_ALLOWED = """#!/bin/sh
[ "$1" = update ] && exec setpriv --reuid=65534 --clear-groups {real} "$@"
exec {real} "$@"
"""


@pytest.fixture(scope="module")
def cluster(
    lab_names: Iterator[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SlurmLab]:
    """Slurm over ten hosts, of which the policy of these tests lets three be out at a time."""
    if reason := missing():
        pytest.skip(f"Slurm: {reason}")
    name = next(lab_names)
    file = tmp_path_factory.mktemp("slurm") / f"{name}.toml"
    file.write_text('rate = "200mbit"\n[leaves]\nleaf1 = ["h[1-10]"]\n')
    netlab("up", str(file))
    try:
        with SlurmLab(Lab(name), HOSTS) as lab:
            yield lab
    finally:
        netlab("down", name)


class Operator:
    """Runs ncdiag and scontrol beside the cluster, with a store of its own."""

    def __init__(
        self,
        cluster: SlurmLab,
        folder: Path,
        patch: pytest.MonkeyPatch,
        capture: pytest.CaptureFixture[str],
    ) -> None:
        self.cluster = cluster
        self.folder = folder
        self._patch = patch
        self._capture = capture
        policy = "[budget]\nper_cent = 33\nper_leaf = 10\n"
        (folder / "policy.toml").write_text(policy)

    def argv(self, command: str, *more: str) -> list[str]:
        store = ("--store", str(self.folder / "store.sqlite"))
        policy = ("--policy", str(self.folder / "policy.toml"))
        with_policy = policy if command in ("apply", "plan") else ()
        return ["isolate", command, *more, *store, *with_policy]

    def ncdiag(
        self, command: str, *more: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in this process, which saves a second each time."""
        argv = self.argv(command, *more)
        with self._patch.context() as patched:
            for name, value in {**self.cluster.environment, **environment}.items():
                patched.setenv(name, value)
            code = main.run(argv)
        return subprocess.CompletedProcess(argv, code, *self._capture.readouterr())

    def start_apply(self, **environment: str) -> "subprocess.Popen[str]":
        """Run ``apply`` in a process of its own, which can be killed."""
        argv = self.argv("apply", "--to", "slurm", "--yes")
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "ncdiag", *argv],
            env={**self.cluster.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def accuse(self, hosts: str) -> None:
        done = self.ncdiag("add", hosts, "--reason", "sends slowly")
        assert done.returncode == 0, done.stderr

    def drain(self, host: str, reason: str) -> None:
        self.scontrol("update", f"nodename={host}", "state=drain", f"reason={reason}")

    def scontrol(self, *arguments: str) -> str:
        done = self.cluster.run("scontrol", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def drained(self) -> Mapping[str, str]:
        """The drained nodes, each with its reason."""
        nodes = parse_nodes(self.scontrol("show", "node", "--oneliner"))
        return {name: node.reason or "" for name, node in nodes.items() if "DRAIN" in node.words}

    def program(self, text: str, **values: str) -> dict[str, str]:
        """An environment in which scontrol is another program."""
        folder = self.folder / "bin"
        folder.mkdir()
        real = shutil.which("scontrol") or ""
        program = folder / "scontrol"
        program.write_text(text.format(real=real, folder=self.folder, **values))
        program.chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.fixture
def operator(
    cluster: SlurmLab,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Operator]:
    """Nobody is drained before, nor afterwards."""
    found = Operator(cluster, tmp_path, monkeypatch, capfd)
    assert found.drained() == {}
    yield found
    for host in found.drained():
        found.scontrol("update", f"nodename={host}", "state=undrain")


def test_exactly_the_planned_nodes_are_drained_and_undo_restores_exactly_those(
    operator: Operator,
) -> None:
    operator.drain("h9", "bad DIMM, ticket 7")
    operator.accuse("h[2-3,9],h77")
    planned = operator.ncdiag("plan", "--to", "slurm")
    assert planned.returncode == 1, planned.stderr
    assert operator.drained() == {"h9": "bad DIMM, ticket 7"}
    applied = operator.ncdiag("apply", "--to", "slurm", "--yes")
    assert applied.returncode == 0, applied.stderr
    assert "left alone  h9: Slurm says it is idle+drain: bad DIMM, ticket 7" in applied.stdout
    assert "left alone  h77: no host of that name there" in applied.stdout
    assert "slurm: isolated: h[2-3] (of 10 hosts)" in applied.stdout
    drained = operator.drained()
    assert drained.keys() == {"h2", "h3", "h9"}
    assert drained["h2"].startswith("ncdiag: operator: ")
    assert drained["h2"].endswith("sends slowly")
    assert drained["h9"] == "bad DIMM, ticket 7"
    again = operator.ncdiag("apply", "--to", "slurm", "--yes")
    assert (again.returncode, operator.drained()) == (0, drained)
    undone = operator.ncdiag("undo", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert operator.drained() == {"h9": "bad DIMM, ticket 7"}
    wait_for(
        lambda: {s for host, s in operator.cluster.states().items() if host != "h9"} == {"idle"},
        "the released nodes",
    )
    assert "undo" in operator.ncdiag("audit").stdout


def test_a_drain_that_an_administrator_took_over_is_not_undone(operator: Operator) -> None:
    operator.accuse("h[2-3]")
    assert operator.ncdiag("apply", "--to", "slurm", "--yes").returncode == 0
    operator.drain("h2", "mine: waits for a new NIC")
    undone = operator.ncdiag("undo", "--yes")
    assert undone.returncode == 0
    assert "left alone  h2: changed since: Slurm says it is idle+drain: mine" in undone.stdout
    assert operator.drained() == {"h2": "mine: waits for a new NIC"}


@pytest.mark.parametrize(
    ("first", "then"),
    [("", 'exec {real} "$@"'), ('{real} "$@"', "")],
    ids=["before-slurm-hears-of-it", "after-slurm-did-it"],
)
def test_killed_in_the_middle_and_repeated_the_end_is_right(
    operator: Operator, first: str, then: str
) -> None:
    operator.accuse("h[2-4]")
    real = shutil.which("scontrol") or ""
    values = {"at": "2", "first": first.format(real=real), "then": then.format(real=real)}
    running = operator.start_apply(**operator.program(BLOCKING, **values))
    wait_for((operator.folder / "blocked").exists, "the second change")
    running.kill()
    running.communicate(timeout=30)
    assert running.returncode == -signal.SIGKILL
    (operator.folder / "go").touch()
    assert operator.drained().keys() == ({"h2", "h3"} if first else {"h2"})
    again = operator.ncdiag("apply", "--to", "slurm", "--yes")
    assert again.returncode == 0, again.stderr
    assert operator.drained().keys() == {"h2", "h3", "h4"}
    undone = operator.ncdiag("undo", "--yes", "h[2-4]")
    assert undone.returncode == 0, undone.stderr
    assert operator.drained() == {}


def test_two_applies_at_once_keep_to_the_budget_together(operator: Operator) -> None:
    policy = operator.folder / "policy.toml"
    policy.write_text(f"{policy.read_text()}hosts = 1\n")
    operator.accuse("h5")
    real = shutil.which("scontrol") or ""
    values = {"at": "1", "first": "", "then": f'exec {real} "$@"'}
    first = operator.start_apply(**operator.program(BLOCKING, **values))
    wait_for((operator.folder / "blocked").exists, "the first apply")
    operator.accuse("h6")
    second = operator.start_apply()
    (operator.folder / "go").touch()
    said = [process.communicate(timeout=120)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 1), said
    assert "the safety budget is 1 host of 10 at a time" in said[1]
    assert operator.drained().keys() == {"h5"}


def test_a_slurm_that_refuses_is_a_line_for_each_host(operator: Operator) -> None:
    operator.accuse("h[2-3]")
    refused = operator.ncdiag("apply", "--to", "slurm", "--yes", **operator.program(NOT_ALLOWED))
    assert refused.returncode == 3
    said = " ".join(refused.stdout.split())
    for host in ("h2", "h3"):
        assert f"FAILED {host}: scontrol update: " in said
    assert said.count("this account may not change nodes") == 2
    assert operator.drained() == {}
    assert operator.ncdiag("apply", "--to", "slurm", "--yes").returncode == 0
    assert operator.drained().keys() == {"h2", "h3"}


def test_a_slurm_that_is_not_there_is_one_line(operator: Operator) -> None:
    operator.accuse("h2")
    missing = operator.ncdiag("apply", "--to", "slurm", "--yes", PATH=str(operator.folder))
    assert missing.returncode == 3
    assert missing.stderr.startswith("ncdiag: scontrol is not installed here; ")
    text = Path(operator.cluster.environment["SLURM_CONF"]).read_text()
    nowhere = operator.folder / "slurm.conf"
    nowhere.write_text(text.replace("SlurmctldPort=", "SlurmctldPort=1\n#"))
    silent = operator.ncdiag("plan", "--to", "slurm", SLURM_CONF=str(nowhere))
    assert silent.returncode == 3
    assert silent.stderr.count("\n") == 1
    assert "slurmctld is not running, or not to be reached" in silent.stderr
