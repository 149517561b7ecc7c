import csv
import re
from pathlib import Path

import pytest

from ncdiag.model.environment import Reader, ValueType, Variable
from ncdiag.profiles import catalogue
from ncdiag.profiles.catalogue import belongs, concerns, is_complete, near, variable, variables

FACTS = Path(__file__).parents[3] / "shared" / "facts" / "env_vars.md"
FOLDER = Path(catalogue.__file__).parent / "variables"
ROWS = variables()


def test_no_name_stands_in_two_files() -> None:
    names = [
        row["name"]
        for file in FOLDER.glob("*.csv")
        for row in csv.DictReader(file.read_text().splitlines())
    ]
    assert len(names) == len(set(names)) == len(ROWS)


def test_every_row_is_whole() -> None:
    assert len(ROWS) > 400
    for row in ROWS:
        check_row(row)


def check_row(row: Variable) -> None:
    assert re.fullmatch(r"[A-Z][A-Z0-9_]*", row.name)
    assert row.meaning.endswith(".")
    assert len(row.source) > 8
    if row.type in (ValueType.ENUM, ValueType.ENUM_LIST):
        assert len(row.values) > 1
    if row.replaced_by is not None:
        successor = variable(row.replaced_by)
        assert successor is not None
        assert successor.reader is not Reader.NOBODY
        assert successor.removed is None
    if row.minimum is not None and row.maximum is not None:
        assert row.minimum < row.maximum
    if row.since is not None and row.removed is not None:
        assert row.since < row.removed
    if row.reader is Reader.NCCL:
        assert row.since is not None
    if row.type is ValueType.INTEGER and row.values:
        assert all(re.fullmatch(r"-?\d+", value) for value in row.values)


@pytest.mark.parametrize(
    ("name", "near_names"),
    [
        ("NCCL_IB_HCAS", ("NCCL_IB_HCA",)),
        ("NCCL_HCA_IB", ("NCCL_IB_HCA",)),
        ("NCCL_IFNAME", ("NCCL_SOCKET_IFNAME",)),
        ("NCLL_DEBUG", ("NCCL_DEBUG",)),
        ("nccl_debug ", ("NCCL_DEBUG",)),
        ("NCCL_IB_RETRY_COUNTS", ("NCCL_IB_RETRY_CNT",)),
        ("COMPLETELY_DIFFERENT", ()),
    ],
)
def test_near_names(name: str, near_names: tuple[str, ...]) -> None:
    assert near(name)[: len(near_names)] == near_names
    assert len(near(name)) >= len(near_names)
    assert near_names or not near(name)


def test_a_name_nobody_reads_is_never_proposed() -> None:
    assert "NCCL_TIMEOUT" not in near("NCCL_TIMEOUTS")


def test_a_name_without_end_takes_no_time_without_end() -> None:
    assert near("NCCL_" + "A" * 1_000_000) == ()


@pytest.mark.parametrize(
    ("name", "complete", "known_family", "of_interest"),
    [
        ("NCCL_WHATEVER", True, True, True),
        ("TORCH_NCCL_WHATEVER", True, True, True),
        ("NCCL_INSPECTOR_WHATEVER", False, True, True),
        ("UCX_WHATEVER", False, True, True),
        ("RANK", False, True, True),
        ("rank", False, False, False),
        ("nccl_debug", False, False, True),
        ("NCLL_DEBUG", False, False, True),
        ("export NCCL_DEBUG", False, False, True),
        ("HCCL_DEBUG", False, False, False),
        ("AWS_SECRET_ACCESS_KEY", False, False, False),
        ("", False, False, False),
    ],
)
def test_families(name: str, *, complete: bool, known_family: bool, of_interest: bool) -> None:
    assert is_complete(name) is complete
    assert belongs(name) is known_family
    assert concerns(name) is of_interest


def test_every_name_of_the_collected_facts_is_known() -> None:
    if not FACTS.exists():
        pytest.skip(f"{FACTS.name} is not beside the checkout: names are not compared with it")
    text = FACTS.read_text()
    text = re.sub(r"\w+_\*|\w+…|_[A-Z_]+\W*\.\.\.|`NCCL_MIN/MAX_CHANNELS`", " ", text)
    quoted = re.findall(r"`((?:TORCH_|OFI_|RCCL_|UCX_)?NCCL_[A-Z0-9_]+)`", text)
    rows = re.findall(r"^\| `?((?:NCCL|TORCH)_[A-Z0-9_]+)`? \|", text, re.MULTILINE)
    names = {name for name in quoted + rows if not name.endswith("_")}
    assert len(names) > 250
    # Names that belong to a whole family of which nothing else is known, and a part of a name.
    families = {"NCCL_PARAM", "DEFINE_NCCL_PARAM"}
    assert sorted(name for name in names - families if variable(name) is None) == []
