"""What a run outlived did not end it, and what is heard after its end is no failure."""

from pathlib import Path

import pytest
from told_postmortem import answer

from ncdiag.model.finding import Postmortem

CLOSED = (
    "elm-1:70:79 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection "
    "closed by remote peer elm-2<41777>"
)
RAISED = (
    "Traceback (most recent call last):",
    '  File "/w/push.py", line 31, in push',
    "requests.exceptions.ConnectionError: no route",
)
STEPS = ("step 10 loss 2.11", "step 20 loss 2.04")
END = "Training complete"
XID = (
    "Mar 03 02:00:11 elm-1 kernel: NVRM: Xid (PCI:0000:5e:00): 79, pid=81, name=python, GPU has "
    "fallen off the bus."
)
BOOT = "Mar 03 02:30:00 elm-1 kernel: Linux version 6.8.0-45-generic (build@host) #45 SMP"
FAILED = "elm-1 srun[9]: [rank1]: AssertionError: the vocabulary has the wrong size"


def roots(told: Postmortem) -> list[str]:
    return [one.class_ for one in told.findings if one.role == "root"]


def test_an_exception_before_a_regular_end_was_handled(tmp_path: Path) -> None:
    assert roots(answer(tmp_path, *RAISED, *STEPS)) == ["application_exception"]
    told = answer(tmp_path, *RAISED, *STEPS, END)
    assert (told.verdict, roots(told)) == ("ok", [])


def test_an_exception_after_the_end_or_beside_a_failure_stands(tmp_path: Path) -> None:
    assert roots(answer(tmp_path, *STEPS, END, *RAISED)) == ["application_exception"]
    launcher = "srun: error: elm-1: task 1: Exited with exit code 1"
    assert roots(answer(tmp_path, *RAISED, END, launcher)) == ["application_exception"]


def test_connections_that_close_around_a_regular_end(tmp_path: Path) -> None:
    assert roots(answer(tmp_path, CLOSED)) == ["socket_closed_by_peer"]
    assert answer(tmp_path, *STEPS, END, CLOSED).verdict == "ok"
    signal = (
        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 12 closing signal "
        "SIGTERM"
    )
    assert answer(tmp_path, signal, *STEPS, END).verdict == "ok"
    assert roots(answer(tmp_path, *STEPS, signal)) == ["terminated_by_launcher"]


@pytest.mark.parametrize("word", ["epoch 3", "for epoch 3", "with errors", "of stage 1"])
def test_a_part_that_ended_is_no_end(word: str, tmp_path: Path) -> None:
    assert roots(answer(tmp_path, f"{END} {word}", CLOSED)) == ["socket_closed_by_peer"]


@pytest.mark.parametrize(
    "line",
    [
        "[44120.1] nfs: server nas-1 not responding, still trying",
        "[900.1] mce: CPU12: Core temperature above threshold, cpu clock throttled (total 3)",
    ],
)
def test_what_slowed_a_run_for_a_moment_is_a_warning(line: str, tmp_path: Path) -> None:
    assert answer(tmp_path, line, *STEPS).verdict == "findings"
    assert answer(tmp_path, line, *STEPS, END).verdict == "ok"
    assert answer(tmp_path, line, CLOSED, *STEPS).verdict == "findings"


def test_a_port_that_was_never_up_since_boot(tmp_path: Path) -> None:
    down = "[   12.010] igb 0000:05:00.1 eno2: igb: eno2 NIC Link is Down"
    assert roots(answer(tmp_path, down)) == ["nic_link_down"]
    told = answer(tmp_path, down, *STEPS, END)
    assert [(one.class_, one.role) for one in told.findings] == [("nic_link_down", "warning")]
    later = down.replace("   12.010", " 9012.010")
    assert roots(answer(tmp_path, later, *STEPS, END)) == ["nic_link_down"]


def test_a_fault_before_the_host_was_booted_is_of_another_job(tmp_path: Path) -> None:
    late, soon = f"Mar 19 14:00:00 {FAILED}", f"Mar 03 02:31:00 {FAILED}"
    assert "gpu_fell_off_bus" in roots(answer(tmp_path, XID, late))
    told = answer(tmp_path, XID, BOOT, late)
    assert (roots(told), told.isolate) == (["application_exception"], ())
    again = XID.replace("02:00", "02:40")
    for lines in ((XID, BOOT, soon), (BOOT, again, late), (XID, BOOT)):
        assert roots(answer(tmp_path, *lines))[0] == "gpu_fell_off_bus"
    other = BOOT.replace("elm-1", "elm-2")
    assert "gpu_fell_off_bus" in roots(answer(tmp_path, XID, other, late))
