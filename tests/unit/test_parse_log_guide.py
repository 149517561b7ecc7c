import re

import pytest

from ncdiag.cli import main
from ncdiag.diagnose.postmortem.guide import GUIDE
from ncdiag.diagnose.postmortem.guide.codes import CODES, code_meaning
from ncdiag.model.finding import FindingClass

COMMANDS = set(main.get_command(main.app).commands)


def test_no_class_is_without_a_guide() -> None:
    assert set(GUIDE) == set(FindingClass)


@pytest.mark.parametrize("class_", FindingClass)
def test_a_guide_says_what_it_means_and_what_to_do(class_: FindingClass) -> None:
    guide = GUIDE[class_]
    assert 2 <= len(re.findall(r"[.](?: |$)", guide.meaning)) <= 5
    assert guide.meaning.endswith(".")
    assert len(guide.meaning) < 560
    assert 1 <= len(guide.actions) <= 4
    assert all(action and not action.endswith(".") for action in guide.actions)
    assert guide.next
    assert "\n" not in guide.next


@pytest.mark.parametrize("class_", FindingClass)
def test_commands_of_ncdiag_in_a_guide_are_there(class_: FindingClass) -> None:
    guide = GUIDE[class_]
    text = " ".join((*guide.actions, guide.next))
    named = set(re.findall(r"\bncdiag ([a-z-]+)", text))
    assert named <= COMMANDS


def test_numbers_are_explained_where_they_are_known() -> None:
    status = code_meaning(FindingClass.IB_COMPLETION_ERROR, {"status": "12"})
    assert status.startswith("status 12 means retries used up")
    assert code_meaning(FindingClass.IB_COMPLETION_ERROR, {"status": "999"}) == ""
    assert code_meaning(FindingClass.IB_COMPLETION_ERROR, {}) == ""
    assert code_meaning(FindingClass.HANG_INIT, {"status": "12"}) == ""
    assert "bus" in code_meaning(FindingClass.GPU_FELL_OFF_BUS, {"xid": "79"})


@pytest.mark.parametrize("class_", CODES)
def test_every_number_is_one_and_means_something(class_: FindingClass) -> None:
    name, meanings = CODES[class_]
    assert name.isalpha()
    assert all(
        re.fullmatch(r"-?\d+|SIG[A-Z]+", number) and text for number, text in meanings.items()
    )
