"""Slurm as a place, by what scontrol answers; a real one is in the integration tests."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.isolate.places.base import LeftAloneError, given_reason
from ncdiag.isolate.places.slurm import SlurmPlace, asked
from ncdiag.model.errors import NcdiagError, UndecidedError, UsageError
from ncdiag.model.isolation import PlaceState

REASON = given_reason("sends 0.12 of what it should")
SCONTROL = """#!/bin/sh
echo "$*" >> "{folder}/asked"
case "$1 $4" in
  "show ") cat "{folder}/nodes" ;;
  "show "*) grep "^NodeName=$4 " "{folder}/nodes" || {{ echo "Node $4 not found"; exit 1; }} ;;
  *) {update} ;;
esac
"""


def node(name: str, state: str, rest: str = "") -> str:
    return (
        f"NodeName={name} Arch=x86_64 NodeAddr=10.0.0.1 NodeHostName={name} OS=Linux 6.1 #1 SMP "
        f"State={state} ThreadsPerCore=1 Partitions=all  ExtSensorsTemp=n/s {rest}\n"
    )


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("IDLE", "", PlaceState.AVAILABLE),
        ("MIXED+PLANNED", "", PlaceState.AVAILABLE),
        ("ALLOCATED+COMPLETING", "", PlaceState.AVAILABLE),
        ("IDLE+CLOUD+POWERED_DOWN", "", PlaceState.AVAILABLE),
        ("IDLE*", "", PlaceState.AVAILABLE),
        ("IDLE+DRAIN", "Reason=ncdiag: slow host [root@2026-11-30T11:54:53]", PlaceState.OURS),
        ("MIXED+DRAIN", "Reason=ncdiag: slow [a@b] [root@2026-11-30T11:54:53]", PlaceState.OURS),
        ("DOWN+DRAIN+NOT_RESPONDING", "Reason=ncdiag: x [root@2026-11-30]", PlaceState.OURS),
        ("IDLE+DRAIN", "Reason=bad DIMM, see ncdiag: no [root@2026-11-30]", PlaceState.THEIRS),
        ("IDLE+DRAIN", "", PlaceState.THEIRS),
        ("DOWN*", "Reason=Not responding [slurm@2026-11-30]", PlaceState.THEIRS),
        ("DOWN*", "Reason=ncdiag: x [root@2026-11-30]", PlaceState.THEIRS),
        ("IDLE+MAINT+RESERVED", "", PlaceState.THEIRS),
        ("IDLE+REBOOT_ISSUED", "Reason=update [root@2026-11-30]", PlaceState.THEIRS),
        ("IDLE+SOMETHING_OF_A_LATER_SLURM", "", PlaceState.THEIRS),
        ("FAIL", "", PlaceState.THEIRS),
    ],
)
def test_a_node_is_ours_only_if_it_is_drained_with_our_reason(
    state: str, reason: str, expected: PlaceState
) -> None:
    assert asked(node("gpu01", state, reason)).of("gpu01").state is expected


def test_a_reason_that_looks_like_fields_says_nothing_of_the_state() -> None:
    found = asked(node("gpu01", "IDLE+DRAIN", "Reason=State=IDLE NodeName=gpu02 State=IDLE [a@b]"))
    assert list(found.standings) == ["gpu01"]
    assert found.of("gpu01").state is PlaceState.THEIRS


def test_why_a_node_is_left_alone_is_said_without_control_characters() -> None:
    why = asked(node("gpu01", "IDLE+DRAIN", "Reason=bad \x1b[2J [root@2026-11-30]")).of("gpu01").why
    assert why == "Slurm says it is idle+drain: bad \\x1b[2J"


@pytest.mark.parametrize(
    "text",
    [
        'sends "0.12" of what=it [should] (see `x`)',
        "two\nlines\tand   blanks",
        "köln | 机柜 \x1b[31m",
        "x" * 1000,
        "ncdiag: twice marked",
        " [root@2026]",
    ],
)
def test_our_reason_comes_back_from_scontrol_as_it_was_given(text: str) -> None:
    reason = given_reason(text)
    line = node("gpu01", "IDLE+DRAIN", f"Reason={reason} [root@2026-11-30T11:54:53] Comment=x")
    assert asked(line).of("gpu01").reason == reason
    assert given_reason(reason) == reason
    assert len(reason) <= 200
    assert reason.isascii()
    assert reason.isprintable()


def test_hosts_are_found_by_full_short_and_own_names_but_never_by_guess() -> None:
    text = (
        node("gpu01", "IDLE")
        + node("gpu02.a.example", "IDLE+DRAIN")
        + node("n3.a", "IDLE")
        + node("n3.b", "DOWN")
        + node("n4", "DOWN").replace("NodeHostName=n4", "NodeHostName=machine4")
    )
    found = asked(text)
    assert found.own_name("gpu01.cluster.example") == "gpu01"
    assert found.own_name("gpu02") == "gpu02.a.example"
    assert found.own_name("machine4.cluster.example") == "n4"
    assert found.of("n3").state is PlaceState.MISSING
    assert found.of("n3.b").state is PlaceState.THEIRS
    assert found.of("gpu1").state is PlaceState.MISSING
    assert found.of("10.0.0.1").state is PlaceState.MISSING


@given(st.text() | st.text("NodeamSt= \nReson[]@-:ncdiag+DRAINIDLE", max_size=200))
def test_any_answer_is_read_and_only_what_it_says_is_ours(text: str) -> None:
    for standing in asked(text).standings.values():
        assert standing.state in (PlaceState.AVAILABLE, PlaceState.OURS, PlaceState.THEIRS)
        assert standing.state is not PlaceState.OURS or (standing.reason or "").startswith(
            "ncdiag:"
        )


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a scontrol on PATH that knows the nodes of its file ``nodes``."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    put(tmp_path, "exit 0")
    nodes = node("gpu01", "IDLE") + node("gpu02", "IDLE+DRAIN", f"Reason={REASON} [root@2026]")
    (tmp_path / "nodes").write_text(nodes + node("gpu03", "IDLE+DRAIN", "Reason=mine [root@2026]"))
    return tmp_path


def put(folder: Path, update: str) -> None:
    program = folder / "scontrol"
    program.write_text(SCONTROL.format(folder=folder, update=update))
    program.chmod(0o755)


def updates(folder: Path) -> list[str]:
    return [line for line in (folder / "asked").read_text().splitlines() if "update" in line]


def test_draining_and_undraining_are_one_call_each(slurm: Path) -> None:
    SlurmPlace().isolate("gpu01", REASON, "plan")
    SlurmPlace().release("gpu02", REASON)
    assert updates(slurm) == [
        f"update nodename=gpu01 state=drain reason={REASON}",
        "update nodename=gpu02 state=undrain",
    ]


def test_what_stands_as_it_should_is_not_touched(slurm: Path) -> None:
    SlurmPlace().isolate("gpu02", REASON, "plan")
    SlurmPlace().release("gpu01", REASON)
    assert updates(slurm) == []


def test_what_somebody_else_drained_is_left_alone(slurm: Path) -> None:
    with pytest.raises(LeftAloneError, match="idle\\+drain: mine"):
        SlurmPlace().isolate("gpu03", REASON, "plan")
    with pytest.raises(LeftAloneError, match="changed since: Slurm says it is idle\\+drain: mine"):
        SlurmPlace().release("gpu03", REASON)
    with pytest.raises(LeftAloneError, match="changed since: ncdiag: sends"):
        SlurmPlace().release("gpu02", given_reason("another reason of ncdiag"))
    assert updates(slurm) == []


def test_a_node_that_is_not_there_is_one_line(slurm: Path) -> None:
    with pytest.raises(UsageError, match="scontrol show: Node gpu09 not found"):
        SlurmPlace().isolate("gpu09", REASON, "plan")
    assert updates(slurm) == []


@pytest.mark.parametrize(
    ("says", "kind", "line"),
    [
        ("Invalid user id", UsageError, r"Invalid user id \(this account may not change nodes"),
        ("Invalid node name specified", UsageError, "scontrol update: .*Invalid node name"),
        (
            "Unable to contact slurm controller (connect failure)",
            UndecidedError,
            "slurmctld is not running",
        ),
    ],
)
def test_a_refusal_is_one_line_that_says_whose_fault_it_is(
    slurm: Path, says: str, kind: type[NcdiagError], line: str
) -> None:
    put(slurm, f'echo "slurm_update error: {says}" >&2; exit 1')
    with pytest.raises(kind, match=line):
        SlurmPlace().isolate("gpu01", REASON, "plan")


def test_a_scontrol_that_hangs_costs_its_time_and_is_told(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncdiag.isolate.places.slurm._ANSWER_S", 0.5)
    (slurm / "scontrol").write_text("#!/bin/sh\nexec sleep 1000\n")
    with pytest.raises(UndecidedError, match=r"scontrol show: no answer within 0\.5 s"):
        SlurmPlace().ask()


@pytest.mark.parametrize("program", ["echo 'slurm_load_node: Access denied' >&2; exit 1", "date"])
def test_a_scontrol_that_tells_of_no_nodes_leaves_it_undecided(slurm: Path, program: str) -> None:
    (slurm / "scontrol").write_text(f"#!/bin/sh\n{program}\n")
    with pytest.raises(UndecidedError, match=r"scontrol (show: .*Access denied|did not answer)"):
        SlurmPlace().ask()


def test_without_scontrol_it_says_where_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UndecidedError, match="scontrol is not installed here"):
        SlurmPlace().ask()
