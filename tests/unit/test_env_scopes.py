from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.environment import LintFinding, LintSeverity, Setting
from ncdiag.profiles.context import LintContext
from ncdiag.profiles.lint import lint
from ncdiag.profiles.rules.scopes import by_scope
from ncdiag.profiles.sources import read_settings

POD = """apiVersion: v1
kind: Pod
spec:
  containers:
  - {name: one, env: [{name: NCCL_IB_DISABLE, value: "1"}]}
"""
OTHER = POD.replace("NCCL_IB_DISABLE", "NCCL_IB_HCA").replace('"1"', "mlx5")
SERVICES = """services:
  a: {environment: {NCCL_IB_DISABLE: 1}}
  b: {environment: {NCCL_IB_HCA: mlx5}}
"""
BRANCHES = """import os
if a:
    os.environ["NCCL_DEBUG"] = "INFO"
else:
    os.environ["NCCL_DEBUG"] = "WARN"
"""
UPDATE = """import os
os.environ["NCCL_IB_DISABLE"] = "1"
os.environ.update({"NCCL_IB_HCA": "mlx5"})
"""


def found(text: str, name: str = "job.sh") -> tuple[LintFinding, ...]:
    return lint(read_settings(text.encode(), name), LintContext())


def rules(text: str, name: str = "job.sh") -> list[str]:
    return [one.rule for one in found(text, name)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"{POD}---\n{OTHER}", "pods.yaml"),
        (POD + OTHER.splitlines()[-1].replace("one", "two") + "\n", "pod.yaml"),
        (SERVICES, "compose.yaml"),
        ("FROM a AS x\nENV NCCL_IB_DISABLE=1\nFROM b\nENV NCCL_IB_HCA=mlx5\n", "Dockerfile"),
        ("NCCL_IB_DISABLE=1 a\nNCCL_IB_HCA=mlx5 b\n", "job.sh"),
        ("mpirun -x NCCL_IB_DISABLE=1 a\nmpirun -x NCCL_IB_HCA=mlx5 b\n", "job.sh"),
        ("srun --export=NCCL_DEBUG=INFO a\nsrun --export=NCCL_DEBUG=WARN b\n", "job.sh"),
        ("if a; then export NCCL_IB_DISABLE=1; else export NCCL_IB_HCA=mlx5; fi", "job.sh"),
        ("if a; then\n NCCL_DEBUG=INFO\nelif b; then\n NCCL_DEBUG=WARN\nfi", "job.sh"),
        ("case $x in a) export NCCL_DEBUG=INFO;; *) export NCCL_DEBUG=WARN;; esac", "job.sh"),
        ("[ a ] && export NCCL_DEBUG=INFO || export NCCL_DEBUG=WARN", "job.sh"),
        ("[ a ] && { export NCCL_IB_DISABLE=1; }\nexport NCCL_IB_HCA=mlx5", "job.sh"),
        ("f() {\n export NCCL_DEBUG=INFO\n}\ng() {\n export NCCL_DEBUG=WARN\n}", "job.sh"),
        ("(export NCCL_IB_DISABLE=1; a)\nexport NCCL_IB_HCA=mlx5", "job.sh"),
        ("export NCCL_DEBUG_SUBSYS=NET\nNCCL_DEBUG=INFO a", "job.sh"),
        ("if a; then export NCCL_DEBUG=INFO; fi\nexport NCCL_DEBUG_SUBSYS=NET", "job.sh"),
        ("export NCCL_DEBUG=WARN\nif a; then export NCCL_DEBUG=INFO; fi", "job.sh"),
        ("export NCCL_IB_HCA==mlx5_0\nexport NCCL_IB_HCA+=,mlx5_1", "job.sh"),
        ("export NCCL_IB_HCA==mlx5_0\nexport NCCL_IB_HCA=$NCCL_IB_HCA,mlx5_1", "job.sh"),
        ("a = {'NCCL_IB_DISABLE': '1'}\nb = {'NCCL_IB_HCA': 'mlx5'}\n", "run.py"),
        (BRANCHES, "run.py"),
        ("```\nNCCL_DEBUG=INFO\n```\nor\n```\nNCCL_DEBUG=WARN\n```\n", "page.md"),
    ],
)
def test_what_holds_for_different_things_is_not_judged_together(text: str, name: str) -> None:
    assert rules(text, name) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("export NCCL_IB_DISABLE=1\nNCCL_IB_HCA=mlx5 a", "job.sh"),
        ("export NCCL_IB_DISABLE=1\nif a; then export NCCL_IB_HCA=mlx5; fi", "job.sh"),
        ("if a; then\n export NCCL_IB_DISABLE=1\n export NCCL_IB_HCA=mlx5\nfi", "job.sh"),
        ("export NCCL_IB_DISABLE=1 && export NCCL_IB_HCA=mlx5", "job.sh"),
        ("for i in 1 2; do export NCCL_IB_DISABLE=1; done\nexport NCCL_IB_HCA=mlx5", "job.sh"),
        ("{ export NCCL_IB_DISABLE=1; }\nexport NCCL_IB_HCA=mlx5", "job.sh"),
        ("#SBATCH --export=NCCL_IB_DISABLE=1\nsrun --export=ALL,NCCL_IB_HCA=mlx5 a", "a.sbatch"),
        ("NCCL_IB_DISABLE=1 bash -c 'NCCL_IB_HCA=mlx5 a'", "job.sh"),
        ("FROM a AS x\nENV NCCL_IB_DISABLE=1\nFROM x\nENV NCCL_IB_HCA=mlx5\n", "Dockerfile"),
        ("FROM a\nENV NCCL_IB_DISABLE=1\nCMD NCCL_IB_HCA=mlx5 a\n", "Dockerfile"),
        (
            "services:\n  a: {environment: {NCCL_IB_DISABLE: 1}, command: NCCL_IB_HCA=mlx5 a}\n",
            "compose.yaml",
        ),
        (UPDATE, "run.py"),
    ],
)
def test_a_scope_is_judged_with_what_it_inherits(text: str, name: str) -> None:
    assert rules(text, name) == ["ib_off_but_tuned"]


def test_the_same_thing_of_one_place_is_said_once() -> None:
    text = "export NCCL_IB_DISABLE=1 NCCL_IB_HCA=mlx5\n" + "NCCL_IB_TC=106 a\n" * 3
    assert rules(text) == ["ib_off_but_tuned"]


def test_a_value_that_is_replaced_in_its_scope_is_no_error() -> None:
    bad = "export NCCL_IB_HCA==mlx5\n"
    first, second = found(f"{bad}export NCCL_IB_HCA==mlx5_0\n")
    assert (first.rule, first.severity) == ("matches_nothing", LintSeverity.WARNING)
    assert (second.rule, second.severity) == ("set_twice", LintSeverity.INFO)
    for other in ("NCCL_IB_HCA==mlx5_0 a", "NCCL_IB_HCA+=,x", "if a; then NCCL_IB_HCA=m; fi"):
        assert found(bad + other)[0].severity is LintSeverity.ERROR
    first, _ = found(
        "NCCL_NET=IB\nNCCL_NET=Socket\nNCCL_IB_TC=x\nNCCL_IB_TC=1\n", "/etc/nccl.conf"
    )[:2]
    assert (first.severity, first.place) == (LintSeverity.ERROR, "/etc/nccl.conf:3")


def test_a_default_is_judged() -> None:
    assert rules("export NCCL_DEBUG=${NCCL_DEBUG:-INF}") == ["unknown_choice"]
    assert rules(": ${NCCL_DEBUG:=INF}") == ["unknown_choice"]
    assert rules("export NCCL_DEBUG=${LEVEL:-WARN} NCCL_IB_HCA=${A:-$B}") == []


def test_a_carriage_return_is_named() -> None:
    text = "export NCCL_DEBUG=WARN\r\nexport NCCL_IB_HCA==mlx5\r\nexport NCCL_IB_TC=106\r\n"
    made = found(text)
    assert [one.rule for one in made] == ["carriage_return"] * 3
    assert [one.severity for one in made] == ["error", "error", "warning"]
    assert made[0].fix == "run dos2unix job.sh"


def test_blanks_round_the_sign_are_an_error_of_the_variable() -> None:
    for text, name in (("export NCCL_DEBUG = INFO", "a.sh"), ("NCCL_DEBUG = INFO", "nccl.conf")):
        (one,) = found(text, name)
        assert (one.rule, one.variable) == ("name_blanks", "NCCL_DEBUG")
        assert "NCCL_DEBUG=INFO" in one.fix


def test_of_a_file_that_is_not_read_only_that_is_said() -> None:
    job = [Setting("NCCL_CONF_FILE", "/opt/nccl.txt", "the environment")]
    user = [Setting("NCCL_TIMEOUT", "1", "/home/me/.nccl.conf:1")]
    user += [Setting("NCCL_IB_TC", "high", "/home/me/.nccl.conf:2")]
    assert {one.rule for one in lint([*job, *user], LintContext())} == {"conf_file_unread"}
    job = [Setting("NCCL_CONF_FILE", "", "the environment")]
    errors = [one for one in lint([*job, *user], LintContext()) if one.severity == "error"]
    assert len(errors) == 2


def test_very_many_scopes_are_looked_at_in_part() -> None:
    text = "NCCL_IB_DISABLE=1 NCCL_IB_HCA=mlx5 a\n" * 5000
    assert 100 < len(rules(text)) < 1000


PARTS = st.lists(st.sampled_from(["a", "?b", "c", "?d"]), max_size=4).map(tuple)
NAMES = st.sampled_from(["NCCL_DEBUG", "NCCL_IB_HCA", "NCCL_X"])


@given(st.lists(st.tuples(NAMES, st.sampled_from(["1", None]), PARTS), max_size=12))
def test_a_scope_holds_only_what_it_or_one_around_it_sets(
    made: list[tuple[str, str | None, tuple[str, ...]]],
) -> None:
    settings = [
        Setting(name, value, f"x:{n}", scope=scope) for n, (name, value, scope) in enumerate(made)
    ]
    scopes = by_scope(settings)
    assert next(iter(scopes)) == ()
    for scope, effective in scopes.items():
        for name, one in effective.items():
            assert one.name == name
            if one.place:
                assert scope[: len(one.scope)] == one.scope
                assert PurePosixPath(one.place)
