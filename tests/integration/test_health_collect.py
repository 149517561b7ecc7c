"""Collecting facts for real: a child process, programs and file systems that hang."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ncdiag.health.collect import HealthTask, collect_for_driver, collect_health, encode_task
from ncdiag.model.health import COLLECTOR_KILLED, Source, SourceState

TREES = Path(__file__).parents[1] / "data/health/trees"
# In mount and process namespaces of its own: mounts a file system of which nobody answers for, as
# a dead server's, and prints what is told of it.
HUNG_MOUNT = """
import ctypes, json, os, sys
from ncdiag.health.collect import collect_health
from ncdiag.model.health import Source
libc = ctypes.CDLL(None, use_errno=True)
answers_nothing = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={answers_nothing},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"dead", sys.argv[1].encode(), b"fuse", 0, options):
    sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
facts = collect_health(sources=(Source.MOUNTS, Source.PROC))
told = {mount.path: (mount.kind, mount.state, mount.reason) for mount in facts.mounts}
reading = facts.reading(Source.MOUNTS)
print(json.dumps([told, reading.state, reading.seconds, facts.uptime_s]))
"""


def test_this_host_tells_its_facts_in_one_go() -> None:
    facts = collect_health()
    states = {one.source: one.state for one in facts.sources}
    assert set(states) == set(Source)
    assert states[Source.PROC] is SourceState.READ
    assert states[Source.LIMITS] is SourceState.READ
    assert facts.hostname
    assert facts.uptime_s
    assert facts.memory_total_bytes
    assert "/" in {mount.path for mount in facts.mounts}


def test_a_recorded_host_tells_its_facts_and_none_of_this_one() -> None:
    facts = collect_health(TREES / "healthy-8-gpus-ib")
    assert facts.hostname == "gpu001"
    assert facts.boot_id == "0f2c7d0e-77aa-4a0f-9c1d-51d0a2a1c0de"
    assert [port.hca for port in facts.ib_ports] == [f"mlx5_{number}" for number in range(8)]
    assert len(facts.gpus) == 8
    assert facts.versions["kernel"] == "6.8.0-55-generic"
    assert facts.clock
    assert facts.clock.kept_by == "chrony"
    assert {one.state for one in facts.sources} == {SourceState.READ, SourceState.ABSENT}


def test_a_gpu_off_the_bus_is_told_by_the_kernel_log_alone() -> None:
    facts = collect_health(TREES / "xid-79", sources=(Source.KERNEL_LOG,))
    assert (79, "0000:5d:00.0") in {(event.code, event.device) for event in facts.kernel_events}


def test_what_hangs_costs_its_deadline_and_is_said_to(tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(TREES / "cpu-only", root, symlinks=True)
    (root / "recorded/systemctl.txt").write_text("!hung\n")
    (root / "recorded/dmesg.txt").write_text("!denied\n")
    (root / "recorded/clock.txt").write_text("!failed no daemon\n")
    facts = collect_health(root)
    told = {one.source: (one.state, one.reason) for one in facts.sources}
    state, reason = told[Source.SERVICES]
    assert state is SourceState.TIMED_OUT
    assert reason
    assert reason.startswith("no answer within ")
    assert told[Source.KERNEL_LOG][0] is SourceState.DENIED
    assert told[Source.CLOCK] == (SourceState.FAILED, "no daemon")
    assert told[Source.PROC][0] is SourceState.READ


def test_the_limit_holds_where_everything_hangs(tmp_path: Path) -> None:
    for name in ("systemctl.txt", "dmesg.txt", "clock.txt"):
        (tmp_path / "recorded").mkdir(exist_ok=True)
        (tmp_path / "recorded" / name).write_text("!hung\n")
    hung = (Source.SERVICES, Source.KERNEL_LOG, Source.CLOCK)
    facts = collect_health(tmp_path, sources=hung, limit_s=1.0)
    assert {one.state for one in facts.sources} == {SourceState.TIMED_OUT}


def test_a_collector_that_cannot_even_start_costs_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = tmp_path / "python"
    frozen.write_text("#!/bin/sh\nexec sleep 60\n")
    frozen.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(frozen))
    (reading,) = collect_health(tmp_path, sources=(Source.PROC,), limit_s=0.3).sources
    assert reading.state is SourceState.TIMED_OUT


def test_a_collector_that_breaks_is_said_to_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python"
    broken.write_text('#!/bin/sh\nprintf \'{"source": "proc", "sta\'\n')
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    (reading,) = collect_health(tmp_path, sources=(Source.PROC,)).sources
    assert reading.state is SourceState.FAILED
    assert reading.reason == "the collector ended before it answered"
    broken.write_text("#!/bin/sh\nkill -9 $$\n")
    (reading,) = collect_health(tmp_path, sources=(Source.PROC,)).sources
    assert (reading.state, reading.reason) == (SourceState.FAILED, COLLECTOR_KILLED)


def test_nobody_waits_for_a_collector_that_has_told_all_and_cannot_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = tmp_path / "python"
    line = '{"source": "proc", "state": "read", "facts": {"cpus": 3}}'
    held.write_text(f"#!/bin/sh\necho '{line}'\nexec sleep 60\n")
    held.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(held))
    limit_s = 30.0
    began_s = time.monotonic()
    facts = collect_health(tmp_path, sources=(Source.PROC,), limit_s=limit_s)
    assert time.monotonic() - began_s < limit_s
    assert facts.cpus == 3


def test_a_driver_is_told_as_json() -> None:
    task = HealthTask(root=str(TREES / "cpu-only"), sources=(Source.PROC,))
    told = json.loads(collect_for_driver(encode_task(task)))
    assert (told["hostname"], told["cpus"]) == ("cpu001", 112)


def test_a_dead_file_system_is_hung_and_the_others_are_not(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not Path("/dev/fuse").exists() or not shutil.which("unshare"):
        pytest.skip("needs root, /dev/fuse and unshare to mount what never answers")
    # The kernel ends everything in the namespace with its first process.
    argv = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
    done = subprocess.run(
        (*argv, sys.executable, "-P", "-c", HUNG_MOUNT, str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "cannot mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    told, state, _, uptime = json.loads(done.stdout)
    assert told[str(tmp_path)] == ["fuse", "hung", "no answer within 2 s"]
    assert told["/"][1] == "ok"
    assert state == "read"
    assert uptime > 0
