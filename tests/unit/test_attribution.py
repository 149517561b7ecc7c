import pytest

from ncdiag.cluster.launcher import Launch
from ncdiag.cluster.launchers.attribution import attribute, lines_about
from ncdiag.cluster.launchers.slurm import TASK_LABEL

STEP = Launch(argv=("srun",), hosts=("h3", "h1", "h12"), label=TASK_LABEL)
SAID = [
    "0: ValueError: mine",
    "1: ValueError: other",
    "srun: error: h3: task 0: Exited with exit code 1",
    "srun: error: h[12-13]: tasks 2-3: Killed",
    "srun: error: Node failure on h1",
    "srun: error: Unable to create step for job 14: no",
]


def test_a_host_is_charged_with_its_own_lines_and_with_those_about_all() -> None:
    assert lines_about(STEP, "h3", SAID) == ["ValueError: mine", SAID[2], SAID[5]]
    assert lines_about(STEP, "h1", SAID) == ["ValueError: other", SAID[4], SAID[5]]
    assert lines_about(STEP, "h12", SAID) == [SAID[3], SAID[5]]


def test_a_command_for_one_host_says_all_about_it() -> None:
    launch = Launch(argv=("ssh",), hosts=("h1",))
    assert lines_about(launch, "h1", SAID) == SAID


def test_a_step_that_slurm_ends_is_over_for_all() -> None:
    line = "slurmstepd: error: *** STEP 5.0 ON h1 CANCELLED AT 2026-11-30T11:40:20 ***"
    assert tuple(attribute(STEP, line)[0]) == STEP.hosts


@pytest.mark.parametrize("line", ["7: of no task", "h[1-", "h[", "", "h1x: h", "[1-9999999999]"])
def test_what_names_nobody_is_about_all(line: str) -> None:
    assert tuple(attribute(STEP, line)[0]) == STEP.hosts
