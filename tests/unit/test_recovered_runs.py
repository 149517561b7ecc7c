"""Runs that ended well although something in them was said to fail; and runs that did not."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from told_postmortem import answer

Roots = Callable[..., list[str]]

BIND = "ras/client_support.cc:171 NCCL WARN Call to bind failed: Address already in use"
VERSION = "NCCL version 2.26.5+cuda12.6"
REFUSED = (
    "[W1011 08:00:02.000000001 socket.cpp:752] [c10d] The client socket has failed to connect to "
    "[head0]:29555 (errno: 111 - Connection refused)."
)
GAVE_UP = (
    "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while "
    "trying to connect to (head0, 29555)."
)
GONE = (
    "[rank5]:[W1011 09:30:00.000000001 TCPStore.cpp:122] [c10d] recvValue failed on SocketImpl("
    "fd=71, addr=[tail1]:40404, remote=[head0]:29555): Connection reset by peer"
)
FINISHED = (
    "I1011 09:30:05.000000 77 torch/distributed/elastic/agent/server/api.py:930] [default] worker "
    "group successfully finished. Waiting 300 seconds for other agents to finish."
)
MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB."
TRACEBACK = ("Traceback (most recent call last):", '  File "fit.py", line 7, in <module>')
KILLED = (
    "(raylet) node_manager.cc:3001: 2 Workers (tasks / actors) killed due to memory pressure "
    "(OOM), 0 Workers crashed due to other reasons at node (ID: 0c, IP: 10.50.0.9)"
)
SUCCEEDED = "2025-10-11 09:00:00,000 SUCC cli.py:65 -- Job 'raysubmit_9z' succeeded"
DOWN = "[   13.500000] mlx5_core 0000:4b:00.0 ens9f1np1: Link down"
UP = "[   16.500000] mlx5_core 0000:4b:00.0 ens9f1np1: Link up"
LATE = "[ 9913.500000] mlx5_core 0000:4b:00.0 ens9f1np1: Link down"
LATE_UP = "[ 9916.500000] mlx5_core 0000:4b:00.0 ens9f1np1: Link up"
BOOTED = "[    0.000000] Linux version 6.1.0"
ACTION = "kernel: NVRM: Xid (PCI:0000:4b:00): 154, GPU recovery action changed from"
HINT = "WARNING: a low ulimit can cause errors like `OSError: [Errno 24] Too many open files`."


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    """The classes of the roots of a log."""

    def of(*lines: str) -> list[str]:
        return [str(f.class_) for f in answer(tmp_path, *lines).findings if f.role == "root"]

    return of


@pytest.mark.parametrize(
    "log",
    [
        [f"node6:31:31 [0] {BIND}"],
        [REFUSED, VERSION],
        [REFUSED, FINISHED],
        [GONE, FINISHED],
        [REFUSED, VERSION, GONE, FINISHED],
        [f"Caught {MEMORY} - retrying with half the batch"],
        [MEMORY, "this batch is left out", "Training finished after 9 epochs"],
        [MEMORY, GONE, FINISHED],
        [KILLED, "attempt 2 begins", SUCCEEDED],
        [BOOTED, DOWN, UP],
        [f"{ACTION} 0x1 (GPU Reset Required) to 0x0 (None)"],
        [HINT],
    ],
)
def test_what_a_run_lived_through_is_no_root(log: Sequence[str], roots: Roots) -> None:
    assert roots(*log) == []


@pytest.mark.parametrize(
    ("log", "root"),
    [
        ([f"node6:31:31 [0] {BIND.replace('ras/client_support', 'misc/socket')}"], "bootstrap_b"),
        ([REFUSED], "store_failure"),
        ([VERSION, REFUSED], "store_failure"),
        ([REFUSED, VERSION, GAVE_UP], "store_failure"),
        ([FINISHED, REFUSED.replace("08:00", "10:00")], "store_failure"),
        ([MEMORY], "cuda_out_of_memory"),
        (["Training finished", MEMORY], "cuda_out_of_memory"),
        ([*TRACEBACK, MEMORY, "Training finished"], "cuda_out_of_memory"),
        ([MEMORY, "Segmentation fault (core dumped)", FINISHED], "cuda_out_of_memory"),
        ([KILLED], "oom_kill"),
        ([KILLED, SUCCEEDED.replace("succeeded", "failed")], "oom_kill"),
        (["kernel: Out of memory: Killed process 9 (fit)", SUCCEEDED], "oom_kill"),
        ([BOOTED, DOWN], "nic_link_down"),
        ([BOOTED, LATE, LATE_UP], "nic_link_down"),
        ([f"{ACTION} 0x0 (None) to 0x2 (Node Reboot Required)"], "xid_followup"),
        (["OSError: [Errno 24] Too many open files"], "resource_limit"),
    ],
)
def test_what_ended_a_run_stays_a_root(log: Sequence[str], root: str, roots: Roots) -> None:
    assert any(found.startswith(root) for found in roots(*log))
