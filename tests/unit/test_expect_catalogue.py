"""Every machine of the catalogue: sources, and derivations that multiply out."""
# ruff: noqa: RUF001 (a derivation is written with the multiplication sign operators read)

import re
from collections.abc import Iterable
from itertools import product as product_of

import pytest

from ncdiag.expect.collective import Conditions, expect_collective
from ncdiag.expect.derivation import Line, Term, product
from ncdiag.expect.gpus import GPUS
from ncdiag.expect.hardware import MACHINES, find_machine
from ncdiag.expect.machine import Machine
from ncdiag.expect.pair import expect_far_gpus, expect_gpus, expect_hosts
from ncdiag.expect.traffic import Algorithm, Collective
from ncdiag.model.errors import UndecidedError, UsageError

ALL = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
NUMBER = re.compile(r"(?:^|(×|/) )(\d[\d.]*(?:e[+-]?\d+)?)(?= |$)")
ROUNDED_TO_FOUR_DIGITS = 2e-3


def multiplied(formula: str) -> float:
    result = 1.0
    for sign, number in re.findall(NUMBER, formula):
        result = result / float(number) if sign == "/" else result * float(number)
    return result


def assert_multiplies_out(lines: Iterable[Line]) -> None:
    for line in lines:
        assert multiplied(line.formula) == pytest.approx(
            line.gb_per_s, rel=ROUNDED_TO_FOUR_DIGITS
        ), str(line)


def test_the_check_can_fail() -> None:
    line = product("x", Term(18, "links"), Term(20.6, "GB/s"), Term(8, "bit", inverse=True))
    assert line.formula == "18 links × 20.6 GB/s / 8 bit"
    assert_multiplies_out([line])
    with pytest.raises(AssertionError):
        assert_multiplies_out([Line("x", line.formula, line.gb_per_s * 1.01)])


@ALL
def test_every_expectation_has_a_derivation_that_multiplies_out(machine: Machine) -> None:
    for collective, nodes in product_of(Collective, (2, 3, 40)):
        found = expect_collective(machine, collective, nodes)
        assert_multiplies_out(found.derivation)
        *_, last = found.derivation
        assert last.gb_per_s == found.busbw_gb_per_s > 0
        leading = [line.gb_per_s for line in found.derivation[:-1]]
        assert found.algbw_gb_per_s in leading
        assert found.binding


@ALL
def test_every_pair_has_a_derivation_that_multiplies_out(machine: Machine) -> None:
    hosts = expect_hosts(machine, machine, conditions=Conditions(gdr=False))
    assert len(hosts.rails) == len(machine.rails)
    assert_multiplies_out(hosts.derivation)
    for rail in hosts.rails:
        assert_multiplies_out(rail.derivation)
        assert min(line.gb_per_s for line in rail.derivation) == rail.gb_per_s
    far = expect_far_gpus(machine, machine, 0, machine.gpus - 1)
    assert_multiplies_out(far.derivation)
    if machine.gpus > 1:
        assert_multiplies_out(expect_gpus(machine, 0, 1).derivation)


@ALL
def test_every_figure_has_its_source(machine: Machine) -> None:
    figures = {"gpus", "rails", "slot"}
    figures |= {"fabric"} if machine.fabric is not None else set()
    figures |= {"c2c_gb_per_s"} if machine.c2c_gb_per_s is not None else set()
    assert set(machine.sources) == figures
    assert all(len(source) >= 6 for source in machine.sources.values())
    assert GPUS[machine.gpu].generation == machine.generation


@pytest.mark.parametrize(
    "name",
    [
        "h100-8x400g",
        "h200-8x400g",
        "b200-8x400g",
        "b300-8x800g",
        "gb200-nvl72",
        "gb300-nvl72",
        "gh200-1x400g",
        "a100-8x200g",
        "a100-4x200g",
        "a800-8x200g",
        "h800-8x400g",
        "h20-8x400g",
        "v100-4x100g",
        "mi250x-4x200g",
        "mi300x-8x400g",
        "mi355x-8x400g",
        "l40s-pcie",
        "aws-p4d",
        "aws-p5",
        "azure-nd-h100-v5",
    ],
)
def test_the_catalogue_has_it(name: str) -> None:
    assert find_machine(name).name == name
    assert find_machine(f" {name.upper().replace('-', '_')}") == MACHINES[name]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("h100-8x200g", "h100-8x400g"),
        ("h100", "h100-8x400g"),
        ("p5", "aws-p5"),
        ("gb200", "gb200-nvl72"),
        ("mi300", "mi300x-8x400g"),
        ("azure-h100", "azure-nd-h100-v5"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=rf"did you mean .*\b{near}\b"):
        find_machine(name)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("H100", "h100-8x400g"),
        ("dgx-h100", "h100-8x400g"),
        ("DGX_A100", "a100-8x200g"),
        ("hgx-b200", "b200-8x400g-roce"),
        ("b200", "b200-8x400g"),
        ("h100-8x40g", "h100-8x400g"),
        ("nd-h200", "azure-nd-h200-v5"),
        ("dgx-1", "v100-4x100g"),
    ],
)
def test_the_nearest_name_stands_first(name: str, first: str) -> None:
    with pytest.raises(UsageError, match=rf"did you mean {first}[,?]"):
        find_machine(name)


@pytest.mark.parametrize("name", ["", "zzzz", "\x1b[31m" + "x" * 500, "-"])
def test_a_name_like_no_other_is_one_clear_line(name: str) -> None:
    with pytest.raises(UsageError, match="in the catalogue") as caught:
        find_machine(name)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_machine_without_nics_says_so() -> None:
    machine = Machine(name="bare", gpu="GPU", generation="", gpus=8, rails=())
    with pytest.raises(UsageError, match="bare has no NIC"):
        expect_collective(machine, Collective.ALL_REDUCE, 2, gpus_per_node=1)
    with pytest.raises(UndecidedError, match="bare has no NIC"):
        expect_hosts(machine, machine)
    with pytest.raises(UsageError, match="nothing can be expected"):
        expect_collective(machine, Collective.ALL_REDUCE, 1, algorithm=Algorithm.RING)
