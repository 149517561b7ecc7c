"""Exported profiles, given back by what reads them: unchanged, or refused beforehand."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.model.environment import Profile, Setting
from ncdiag.model.errors import UsageError
from ncdiag.profiles.export import Exported, Target, export

HOSTILE = {
    "NCCL_T_QUOTES": """it's "quoted" `once` more""",
    "NCCL_T_DOLLARS": "$HOME $(HOME) ${HOME} $$ $",
    "NCCL_T_BLANKS": "  in  front and behind  ",
    "NCCL_T_SIGNS": "=mlx5_0,mlx5_1;^a&b|c<d>e#f!g*h?i[j]k{l}m~n",
    "NCCL_T_SLASHES": "\\n \\\\ %h %%",
    "NCCL_T_EMPTY": "",
    "NCCL_T_OPTION": "-x --genv",
    "NCCL_T_LETTERS": "größer \U0001f600",
    "NCCL_T_TAB": "a\tb",
}
BROKEN = {"NCCL_T_LINES": "one\ntwo\n", "NCCL_T_RETURN": "one\rtwo"}
PRINT = (
    "import json, os; "
    "print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('NCCL_T_')}))"
)
CLEAN = {
    "PATH": os.environ["PATH"],
    "HOME": "/nowhere",
    "LC_ALL": "C.UTF-8",
    # Open MPI does not start anything as root otherwise.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


def profile(values: Mapping[str, str | None]) -> Profile:
    each = (Setting(name, value, "here:1", "because") for name, value in values.items())
    return Profile("p", "title", "source", tuple(each), nccl=">=2.18")


def exported(values: Mapping[str, str | None], target: Target) -> str:
    result = export(profile(values), target)
    assert result.notes == ()
    return result.text


def run(*argv: str, env: Mapping[str, str] = CLEAN) -> dict[str, str]:
    done = subprocess.run(argv, capture_output=True, env=env, check=True, timeout=60)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("target", [Target.SH, Target.SLURM])
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_gets_what_the_profile_says(target: Target, shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "profile"
    script.write_text(exported(HOSTILE | BROKEN | {"NCCL_T_GONE": None}, target))
    code = '. "$1" && exec "$2" -c "$3"'
    argv = (shell, "-euc", code, shell, str(script), sys.executable, PRINT)
    assert run(*argv, env={**CLEAN, "NCCL_T_GONE": "1"}) == HOSTILE | BROKEN


def test_steps_of_a_job_started_without_its_environment_get_it_too() -> None:
    assert exported({"A": "1"}, Target.SLURM) == "export A=1\nexport SLURM_EXPORT_ENV=ALL\n"


@pytest.mark.parametrize(
    ("target", "identity"), [(Target.HYDRA, "MPICH"), (Target.OPENMPI, "Open MPI")]
)
def test_an_mpi_launcher_gives_every_rank_what_the_profile_says(
    target: Target, identity: str
) -> None:
    mpiexec = shutil.which("mpiexec")
    told = mpiexec and subprocess.run([mpiexec, "--version"], capture_output=True, check=False)
    kind = b"HYDRA" if target is Target.HYDRA else b"Open MPI"
    if not mpiexec or not told or kind not in told.stdout:
        pytest.skip(f"mpiexec of {identity} is not installed")
    options = exported(HOSTILE | BROKEN, target)
    code = 'options=$(cat); eval "exec $1 -n 1 $options \\"\\$2\\" -c \\"\\$3\\""'
    argv = ["sh", "-euc", code, "sh", mpiexec, sys.executable, PRINT]
    done = subprocess.run(argv, input=options.encode(), capture_output=True, env=CLEAN, check=True)
    assert json.loads(done.stdout) == HOSTILE | BROKEN


def as_docker_reads(text: str) -> dict[str, str]:
    """Docker's rules for a file of variables: no quotes, comments at the start of a line only."""
    lines = [line.lstrip() for line in text.split("\n")]
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def as_nccl_reads(text: str) -> dict[str, str]:
    """NCCL's rules for its file, with the limit of its buffers."""
    found: dict[str, str] = {}
    for line in text.encode().split(b"\n"):
        name, equals, value = line.partition(b"=")
        if equals and not line.startswith(b"#"):
            found.setdefault(name[:1023].decode(), value[:1023].decode())
    return found


READERS = {Target.DOCKER: as_docker_reads, Target.NCCL_CONF: as_nccl_reads}


@pytest.mark.parametrize("target", READERS)
def test_files_of_lines_hold_every_value_of_one_line(target: Target) -> None:
    assert READERS[target](exported(HOSTILE, target)) == HOSTILE
    for name, value in BROKEN.items():
        with pytest.raises(UsageError, match=f"{name}: {target} cannot hold .* a line break"):
            export(profile({name: value}), target)


def test_nccl_would_cut_a_long_value_off() -> None:
    assert exported({"NCCL_T": "ü" * 511}, Target.NCCL_CONF)
    with pytest.raises(UsageError, match="more than 1023 bytes"):
        export(profile({"NCCL_T": "ü" * 512}), Target.NCCL_CONF)


def as_kubernetes_expands(text: str) -> str:
    """``$$`` is a dollar; every ``$(`` that is left would be looked up."""
    left = text.replace("$$", "\0")
    assert "$(" not in left
    return left.replace("\0", "$")


@settings(max_examples=200, deadline=None)
@given(texts)
def test_kubernetes_gets_any_value(value: str) -> None:
    (entry,) = yaml.safe_load(exported({"NCCL_T": value}, Target.KUBERNETES))["env"]
    assert entry["name"] == "NCCL_T"
    assert as_kubernetes_expands(entry["value"]) == value


def test_kubernetes_gets_a_list_for_a_container() -> None:
    found = yaml.safe_load(exported(HOSTILE | BROKEN, Target.KUBERNETES))["env"]
    values = {one["name"]: as_kubernetes_expands(one["value"]) for one in found}
    assert values == HOSTILE | BROKEN
    assert yaml.safe_load(exported({}, Target.KUBERNETES)) == {"env": []}


@settings(max_examples=100, deadline=None)
@given(texts)
def test_json_gets_any_value(value: str) -> None:
    document = json.loads(exported({"NCCL_T": value, "NCCL_GONE": None}, Target.JSON))
    assert document["schema"] == "ncdiag/env-export/1"
    assert document["variables"] == {"NCCL_T": value, "NCCL_GONE": None}
    assert (document["profile"], document["nccl"]) == ("p", ">=2.18")


@settings(max_examples=40, deadline=None)
@given(texts)
def test_words_for_a_shell_stay_one_word(value: str) -> None:
    script = exported({"NCCL_T_ANY": value}, Target.SH) + 'printf %s "$NCCL_T_ANY"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert done.stdout == value.encode()


@pytest.mark.parametrize(
    "target", [t for t in Target if t not in {Target.SH, Target.SLURM, Target.JSON}]
)
def test_what_cannot_be_unset_is_left_out_and_told(target: Target) -> None:
    result = export(profile({"NCCL_GONE": None, "NCCL_HERE": "1"}), target)
    assert result.notes == (f"NCCL_GONE is to be unset, which {target} cannot do: see to it",)
    assert "NCCL_GONE" not in result.text
    assert "NCCL_HERE" in result.text


def test_the_file_of_nccl_gets_only_what_nccl_reads_from_it() -> None:
    result = export(profile({"NCCL_DEBUG": "WARN", "LD_LIBRARY_PATH": "/x"}), Target.NCCL_CONF)
    assert result == Exported(
        "NCCL_DEBUG=WARN\n",
        ("LD_LIBRARY_PATH is left out: another program reads it, not from this file",),
    )
