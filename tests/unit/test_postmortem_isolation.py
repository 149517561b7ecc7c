"""Every class that may isolate a host: one log that does, and a twin that must not."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.diagnose.postmortem.classes import RULES, Isolate
from ncdiag.logs.read_logs import read_logs
from ncdiag.model.finding import FindingClass, Postmortem

FOLDER = Path(__file__).parents[1] / "data" / "postmortem" / "isolate"
SICK = "bad07"

# Besides those whose rule says so: a follower names its host when the driver asks for a reset.
ISOLATING = sorted(
    {class_.value for class_, rule in RULES.items() if rule.isolate is not Isolate.NO}
    | {FindingClass.XID_FOLLOWUP.value}
)


def answer(name: str) -> Postmortem:
    return diagnose(read_logs([str(FOLDER / name)], jobs=1))


def classes(found: Postmortem) -> Iterable[str]:
    return (str(finding.class_) for finding in found.findings)


@pytest.mark.parametrize("class_", ISOLATING)
def test_its_log_isolates_the_sick_host(class_: str) -> None:
    found = answer(f"{class_}.log")
    assert class_ in classes(found)
    assert [entry.host for entry in found.isolate] == [SICK]


@pytest.mark.parametrize("class_", ISOLATING)
def test_its_twin_isolates_nobody(class_: str) -> None:
    found = answer(f"{class_}.nobody.log")
    assert class_ in classes(found)
    assert not found.isolate


def test_every_log_belongs_to_a_class_that_may_isolate() -> None:
    assert {path.name.split(".")[0] for path in FOLDER.glob("*.log")} == set(ISOLATING)
