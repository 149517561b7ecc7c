import pytest

from ncdiag.cluster.slurm_job import asks_for_no_kill
from ncdiag.cluster.slurm_nodes import NodeState, allocated_nodes, parse_nodes
from ncdiag.model.errors import UsageError

TWO_NODES = """\
NodeName=h1 Arch=x86_64 OS=Linux 6.1.0 #1 SMP State=IDLE+DRAIN ThreadsPerCore=1 \
BootTime=None Reason=bad NIC [see #12] [root@2026-11-30T11:54:53] Comment=State=DOWN no
Node h9 not found
NodeName=h2 Arch=x86_64 OS=Linux State=MIXED ThreadsPerCore=1 ExtSensorsTemp=n/s
"""


def test_nodes_are_read_with_the_reason_somebody_gave() -> None:
    found = parse_nodes(TWO_NODES)
    assert list(found) == ["h1", "h2"]
    assert found["h1"].reason == "bad NIC [see #12]"
    assert found["h2"] == NodeState("h2", "MIXED")
    assert str(found["h1"]) == "Slurm says it is idle+drain: bad NIC [see #12]"


@pytest.mark.parametrize(
    ("state", "cannot_run", "not_allocated"),
    [
        ("IDLE", False, False),
        ("ALLOCATED", False, False),
        ("MIXED+DRAIN", False, True),
        ("IDLE+MAINT", False, True),
        ("DOWN", True, True),
        ("DOWN+NOT_RESPONDING", True, True),
        ("IDLE*", True, True),
        ("IDLE+CLOUD+POWERED_DOWN", True, True),
    ],
)
def test_a_drained_node_of_our_own_still_runs_steps(
    state: str, *, cannot_run: bool, not_allocated: bool
) -> None:
    node = NodeState("h1", state)
    assert (node.cannot_run, node.not_allocated) == (cannot_run, not_allocated)


def test_a_reason_cannot_move_the_cursor() -> None:
    assert str(NodeState("h1", "DOWN", "\x1b[2J")).isprintable()


def test_the_nodes_of_the_allocation_are_expanded() -> None:
    environment = {"SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "gpu[1-2,9],head"}
    assert allocated_nodes(environment) == {"gpu1", "gpu2", "gpu9", "head"}


@pytest.mark.parametrize("environment", [{}, {"SLURM_JOB_NODELIST": "a"}, {"SLURM_JOB_ID": "5"}])
def test_without_job_or_nodes_there_is_no_allocation(environment: dict[str, str]) -> None:
    assert allocated_nodes(environment) is None


def test_a_node_list_that_is_none_is_told() -> None:
    with pytest.raises(UsageError, match="SLURM_JOB_NODELIST: "):
        allocated_nodes({"SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "gpu[1-"})


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ("--no-kill -N4", True),
        ("-N 4 -k python x", True),
        ("-N4 -Qk", True),
        ("-N4", False),
        ("", False),
        ("-N4 pytest -k slow", False),
        ("-N 4 pytest --no-kill", False),
        ("-K -N4", False),
        ("--kill-command=TERM -N4", False),
    ],
)
def test_only_what_stands_before_the_command_asks_for_no_kill(words: str, *, asks: bool) -> None:
    assert asks_for_no_kill(words.split()) is asks
