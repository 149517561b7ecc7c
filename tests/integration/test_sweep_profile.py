"""``sweep --profile`` over a fleet of loopback hosts: what measures gets the variables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Takes the place of torch, tells its environment and arguments, and cannot measure.
FAKE_TORCH = """
import json, os, pathlib, sys
told = {"environment": dict(os.environ), "argv": pathlib.Path("/proc/self/cmdline").read_text()}
folder = pathlib.Path(os.environ["PROFILE_TEST_FOLDER"])
(folder / f"{os.getpid()}.json").write_text(json.dumps(told))
raise ImportError("no torch here", name="torch.fake")
"""
PROFILE = """
title = "For this test"
source = "this test"
settings.NCCL_ALGO = { value = "Ring", reason = "It is looked for." }
settings.NCCL_IB_TC = { value = "106", reason = "It is looked for." }
settings.NCCL_IB_HCA = { value = "={hca.compute}", reason = "The sweep chooses NICs itself." }
settings.MY_PLACE = { value = "it's $HOME, \\"kept\\"", reason = "Values can be anything." }
"""


def sweep(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "torch").mkdir(exist_ok=True)
    (folder / "torch/__init__.py").write_text(FAKE_TORCH)
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PROFILE_TEST_FOLDER": str(folder),
        "NCCL_ALGO": "Tree",
        "NCCL_PROTO": "LL",
    }
    return subprocess.run(
        (sys.executable, "-m", "ncdiag", "sweep", *arguments),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=120,
    )


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc here")
def test_what_measures_finds_the_profile_in_its_environment(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(PROFILE)
    arguments = ("--nodes", "127.0.0.[2-3]", "--output", "out", "--profile", "mine.toml")

    done = sweep(tmp_path, *arguments)

    assert done.returncode == 3, done.stderr
    told = [json.loads(path.read_text()) for path in tmp_path.glob("*.json")]
    assert len(told) >= 2
    for one in told:
        environment = one["environment"]
        assert environment["NCCL_ALGO"] == "Ring"
        assert environment["NCCL_IB_TC"] == "106"
        assert environment["MY_PLACE"] == 'it\'s $HOME, "kept"'
        assert {"NCCL_PROTO", "NCCL_IB_HCA"} & environment.keys() == set()
        assert "NCCL_ALGO" in one["argv"]
        assert "Ring" not in one["argv"]
        assert "kept" not in one["argv"]
    assert "left out, as the engine torch sets them itself: NCCL_IB_HCA" in done.stderr
    plan = json.loads((tmp_path / "out/journal.jsonl").read_text().splitlines()[0])
    assert plan["profile"] == "mine.toml"

    (tmp_path / "mine.toml").write_text(PROFILE.replace("106", "104"))
    again = sweep(tmp_path, "--resume", "out")
    assert again.returncode == 2
    assert "the profile mine.toml has changed since the sweep began" in again.stderr


def test_a_profile_that_there_is_not_or_that_differs_by_host_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(PROFILE.replace("NCCL_IB_HCA", "UCX_NET_DEVICES"))
    common = ("--nodes", "127.0.0.[2-3]", "--output", "out")
    missing = sweep(tmp_path, *common, "--profile", "ib-ndrr")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "did you mean ib-ndr" in missing.stderr
    differs = sweep(tmp_path, *common, "--profile", "mine.toml")
    assert differs.returncode == 2
    assert "UCX_NET_DEVICES differs from host to host" in differs.stderr
    assert not (tmp_path / "out").exists()
