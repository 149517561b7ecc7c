"""What docs/health.md gives to copy: tried as far as it can be without a cluster."""

import configparser
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from health_guide import NCDIAG, blocks, drain_script, gate_script, slurm_settings
from typer.main import get_command

from ncdiag.cli import main

# Plays ncdiag for scripts, which must not trust it.
FATAL = "echo 'ncdiag: gpu3: Xid 79'; exit 1"


def commands() -> list[str]:
    """Every command of ncdiag in a block that is no example of the terminal."""
    texts = [text for kind in ("", "sh", "ini", "yaml") for text in blocks(kind)]
    lines = [line for text in texts for line in text.splitlines()]
    found = [match[1] for line in lines if (match := re.search(r"\bncdiag health( [^)]*)?", line))]
    listed = [
        match[1] for line in lines if (match := re.search(r"\[ncdiag, health,? ?(.*)\]", line))
    ]
    return [one or "" for one in found] + [one.replace(",", " ") for one in listed]


@pytest.mark.parametrize("line", commands())
def test_every_command_of_the_page_has_options_that_are_there(line: str) -> None:
    command: Any = get_command(main.app).commands["health"]  # type: ignore[attr-defined]
    context = command.make_context("health", shlex.split(line))
    assert context.params["prolog"] is ("--prolog" in line)


def test_there_are_such_commands() -> None:
    assert len(commands()) >= 9


def test_kubernetes_takes_the_manifests_of_the_page() -> None:
    package = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    documents = [yaml.safe_load(text) for text in blocks("yaml")]
    assert [document["kind"] for document in documents] == ["Pod", "DaemonSet"]
    for document in documents:
        package.validate(document, "1.33", strict=True)


def test_systemd_units_have_what_they_need() -> None:
    units = {}
    for text in blocks("ini"):
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment,method-assign] # keeps upper case
        unit.read_string(text)
        units[text.splitlines()[0].rpartition("/")[2]] = unit
    service, timer = units["ncdiag-health.service"], units["ncdiag-health.timer"]
    assert service["Service"]["Type"] == "oneshot"
    assert service["Service"]["ExecStart"].startswith(NCDIAG)
    assert timer["Timer"]["OnUnitActiveSec"] == "5min"
    assert timer["Install"]["WantedBy"] == "timers.target"


def test_slurm_is_told_the_programs_that_the_page_describes() -> None:
    settings = slurm_settings()
    assert settings["Prolog"] == settings["Epilog"] == "/etc/slurm/ncdiag-gate.sh"
    assert settings["HealthCheckProgram"] == "/etc/slurm/ncdiag-drain.sh"
    page = Path(main.__file__).parents[2] / "docs/health.md"
    assert all(f"`{settings[key]}`" in page.read_text() for key in ("Prolog", "HealthCheckProgram"))


def scripted(script: str, ncdiag: str, tmp_path: Path, node: str = "IDLE") -> tuple[int, str]:
    """Run a script of the page with a program that plays ncdiag; its code, and what Slurm hears."""
    program, scontrol, heard = tmp_path / "ncdiag", tmp_path / "scontrol", tmp_path / "heard"
    program.write_text(f"#!/bin/sh\n{ncdiag}\n")
    scontrol.write_text(
        f'#!/bin/sh\n[ "$1" = show ] && echo State={node} && exit\necho "$@" >{heard}\n'
    )
    for one in (program, scontrol):
        one.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(
        ["/bin/sh", "-c", script.replace(NCDIAG, str(program))],
        env={"PATH": path, "SLURMD_NODENAME": "gpu003"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    return done.returncode, heard.read_text() if heard.exists() else ""


@pytest.mark.parametrize(
    ("ncdiag", "drained"),
    [
        (FATAL, True),
        ("echo 'ncdiag: trouble of our own' >&2; exit 0", False),
        ("echo Traceback; exit 1", False),
        ("exit 2", False),
        ("kill -SEGV $$", False),
    ],
)
def test_the_scripts_drain_for_a_line_of_ncdiag_and_for_nothing_else(
    ncdiag: str,
    drained: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
) -> None:
    assert scripted(gate_script(), ncdiag, tmp_path) == (int(drained), "")
    code, heard = scripted(drain_script(), ncdiag, tmp_path)
    assert code == 0
    reason = "update NodeName=gpu003 State=DRAIN Reason=ncdiag: gpu3: Xid 79\n"
    assert heard == (reason if drained else "")


def test_a_missing_ncdiag_drains_nobody(tmp_path: Path) -> None:
    for script in (gate_script(), drain_script()):
        gone = script.replace(NCDIAG, "/nowhere/ncdiag")
        assert scripted(gone, "", tmp_path) == (0, "")


def test_a_node_that_is_drained_already_keeps_its_reason(tmp_path: Path) -> None:
    assert scripted(drain_script(), FATAL, tmp_path, node="IDLE+DRAIN") == (0, "")
