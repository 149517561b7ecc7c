"""``ncdiag env`` as an operator runs it."""

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ncdiag.cli import main
from ncdiag.cli.env import linting
from ncdiag.model.environment import LintFinding, LintSeverity
from ncdiag.model.text import is_hidden
from ncdiag.profiles import profile_files
from ncdiag.profiles.context import HostDevices
from ncdiag.profiles.placeholders import HostValues
from ncdiag.report.env.lint import show

FAKE = Path(__file__).parents[1] / "data/env/fake_nccl.py"
fake_nccl = runpy.run_path(str(FAKE))
SEED = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "ALL",
    "NCCL_TIMEOUT": "1800",
    "NCCL_ASYNC_ERROR_HANDLING": "1",
    "TORCH_NCCL_BLOCKING_WAIT": "0",
    "NCCL_IB_HCA": "=mlx5",
    "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_TOPO_DUMP_FILE": "/tmp/topo.xml",  # noqa: S108 - what was asked about
}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and an environment in which nothing is set."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("NCCL_", "TORCH_", "UCX_", "FI_", "OFI_", "RCCL_")):
            monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(linting, "SYSTEM_FILE", tmp_path / "etc/nccl.conf")


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main.run(["env", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.fixture
def on_a_host_with(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def put(hcas: tuple[str, ...], interface: str) -> None:
        devices = HostDevices("gpu1", hcas=hcas, interfaces=(interface, "lo"))
        values = HostValues("gpu1", {"hca.compute": ",".join(hcas), "nic.socket": interface})
        monkeypatch.setattr("ncdiag.health.devices.devices_here", lambda: devices)
        monkeypatch.setattr("ncdiag.health.devices.values_here", lambda: values)

    return put


def set_all(monkeypatch: pytest.MonkeyPatch, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def test_the_list_has_all_profiles_and_says_which_are_broken(run: Run, tmp_path: Path) -> None:
    code, out, err = run("list")
    assert (code, err) == (0, "")
    assert all(name in out for name in profile_files.names())
    folder = tmp_path / "ncdiag/profiles"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text("title = \n")
    code, out, err = run("list", "--format", "json")
    document = json.loads(out)
    assert code == 1
    assert document["schema"] == "ncdiag/env-profiles/1"
    assert [one["name"] for one in document["profiles"]] == [
        name for name in profile_files.names() if name != "mine"
    ]
    assert "mine.toml:1: " in err


def test_a_profile_is_shown_with_its_reasons_and_bases(run: Run) -> None:
    code, out, _ = run("show", "ib-ndr")
    assert code == 0
    assert "NCCL_IB_HCA  ={hca.compute}\n" in out
    assert "(from ib-hdr)" in out
    code, out, _ = run("show", "ib-ndr", "--format", "json")
    document = json.loads(out)
    assert document["schema"] == "ncdiag/env-profile/1"
    assert document["extends"] == ["ib-hdr"]
    assert all(one["reason"] for one in document["settings"])


def test_a_profile_is_shown_as_it_is_on_this_host(
    run: Run, on_a_host_with: Callable[..., None]
) -> None:
    on_a_host_with(("mlx5_0", "mlx5_1"), "eth0")
    code, out, _ = run("show", "ib-hdr", "--here")
    assert code == 0
    assert "NCCL_IB_HCA  =mlx5_0,mlx5_1\n" in out


def test_what_two_profiles_set_differently_is_a_diff(run: Run) -> None:
    code, out, _ = run("diff", "ib-hdr", "ib-ndr")
    assert code == 1
    assert out.splitlines()[:3] == ["--- ib-hdr", "+++ ib-ndr", "+NCCL_IB_ADAPTIVE_ROUTING=1"]
    assert run("diff", "ib-hdr", "ib-hdr")[0] == 0


def test_the_environment_is_compared_without_telling_secrets(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_all(monkeypatch, {"NCCL_ALGO": "Tree", "AWS_SECRET_ACCESS_KEY": "hunter2", "A": "hunter2"})
    code, out, _ = run("diff", "ring-only", "--format", "json")
    document = json.loads(out)
    assert code == 1
    assert document["changes"] == [{"name": "NCCL_ALGO", "first": "Ring", "second": "Tree"}]
    assert "hunter2" not in out
    set_all(monkeypatch, {"NCCL_ALGO": "Ring"})
    assert run("diff", "ring-only") == (0, "ring-only and the environment set the same\n", "")


HOSTILE = "NCCL_\x1b[31mX\n+NCCL_FAKE\x9b\u202e"
MANIFEST = 'kind: Pod\nspec: {containers: [{env: [{name: "%s", value: "%s"}]}]}\n'


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("job.yaml", MANIFEST % ((r"NCCL_\e[31mX\n+NCCL_FAKE\x9b\u202e",) * 2)),
        ("Dockerfile", f"FROM x\nENV NCCL_\x1b[31mX=2 NCCL_IB_HCA={HOSTILE[:8]}\u202e\n"),
        (None, HOSTILE),
    ],
)
def test_no_name_and_no_value_reaches_the_terminal(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str | None, text: str
) -> None:
    if file is None:
        monkeypatch.setenv(HOSTILE, text)
    else:
        (tmp_path / file).write_text(text)
    sources = [] if file is None else [file]
    for command in (["diff", "quiet", *sources], ["lint", *sources]):
        for output_format in ("text", "json"):
            _, out, err = run(*command, "--format", output_format)
            assert "NCCL_" in out
            hidden = {char for char in out + err if is_hidden(char)}
            assert hidden == {"\n"}
            assert not any(line.startswith("+NCCL_FAKE") for line in out.splitlines())


def test_values_filled_in_on_a_host_equal_their_form(run: Run, tmp_path: Path) -> None:
    base = {one.name: one.value or "" for one in profile_files.load("ib-hdr").settings}
    base |= {"NCCL_IB_HCA": "=mlx5_0,mlx5_1", "NCCL_SOCKET_IFNAME": "=eth0"}
    script = tmp_path / "job.sh"
    script.write_text("".join(f"export {name}='{value}'\n" for name, value in base.items()))
    assert run("diff", "ib-hdr", str(script))[0] == 0


def test_the_environment_block_of_the_seed_gets_its_two_errors_and_two_warnings(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_all(monkeypatch, SEED)
    code, out, _ = run("lint", "--format", "json")
    document = json.loads(out)
    found = [(one["severity"], one["variable"]) for one in document["findings"]]
    assert code == 1
    assert document["schema"] == "ncdiag/env-lint/1"
    assert sorted(found) == [
        ("error", "NCCL_IB_HCA"),
        ("error", "NCCL_TIMEOUT"),
        ("warning", "NCCL_ASYNC_ERROR_HANDLING"),
        ("warning", "NCCL_DEBUG_SUBSYS"),
    ]
    assert (document["errors"], document["warnings"], document["settings"]) == (2, 2, 8)
    assert all(one["place"] == "the environment" for one in document["findings"])


@pytest.mark.parametrize("name", profile_files.names())
@pytest.mark.parametrize("version", [None, "oldest", "2.30.7"])
def test_every_shipped_profile_passes_lint(run: Run, name: str, version: str | None) -> None:
    arguments = ["lint", name, "--format", "json"]
    if version == "oldest":
        wanted = profile_files.load(name).nccl
        arguments += ["--nccl", wanted.removeprefix(">=") if wanted else "2.18"]
    elif version:
        arguments += ["--nccl", version]
    code, out, _ = run(*arguments)
    assert (code, json.loads(out)["findings"]) == (0, [])


def test_the_hidden_layers_are_looked_at_and_who_wins_is_told(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/nccl.conf").write_text("NCCL_IB_TIMEOUT=14\nNCCL_TIMEOUT=5\n")
    (tmp_path / ".nccl.conf").write_text("NCCL_ALGO=Ring\n")
    set_all(monkeypatch, {"NCCL_IB_TIMEOUT": "22"})
    code, out, _ = run("lint")
    assert code == 1
    assert f"{tmp_path}/etc/nccl.conf:2" in out
    assert f"{tmp_path}/etc/nccl.conf:1" in out
    (tmp_path / "other.conf").write_text("NCCL_PROTO=Simple\n")
    set_all(monkeypatch, {"NCCL_CONF_FILE": str(tmp_path / "other.conf")})
    assert f"{tmp_path}/.nccl.conf" in run("lint")[1]
    places = {setting.place for setting in linting.layers()}
    assert f"{tmp_path}/other.conf:1" in places


def test_warnings_alone_do_not_fail(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("export NCCL_ASYNC_ERROR_HANDLING=1\n")
    code, out, _ = run("lint", str(script))
    assert code == 0
    assert "1 setting: 1 warning" in out


def test_a_file_that_sets_nothing_in_a_way_that_can_be_read_is_not_called_clean(
    run: Run, tmp_path: Path
) -> None:
    strange, plain = tmp_path / "job.cfg", tmp_path / "job.sh"
    strange.write_text("let NCCL_TIMEOUT be 5\n")
    plain.write_text("# NCCL_TIMEOUT=5\ntrue\n")
    code, out, _ = run("lint", str(strange))
    assert code == 3
    assert f"{strange}: holds names of variables but no setting that ncdiag can read" in out
    assert out.endswith("\n0 settings: undecided, 1 file unread\n")
    assert run("lint", str(strange), "tcp")[1].endswith("\n4 settings: undecided, 1 file unread\n")
    code, out, _ = run("lint", str(strange), "quiet", "--format", "json")
    assert (code, json.loads(out)["unread"]) == (3, [str(strange)])
    assert run("lint", str(plain))[:2] == (0, "0 settings: nothing is wrong\n")
    plain.write_text("export NCCL_TIMEOUT=5\n")
    assert run("lint", str(strange), str(plain))[0] == 1


def test_a_file_of_nccl_that_is_named_and_not_there_is_an_error(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".nccl.conf").write_text("NCCL_TIMEOUT=5\n")
    set_all(monkeypatch, {"NCCL_CONF_FILE": str(tmp_path / "none.conf")})
    code, out, _ = run("lint", "--format", "json")
    found = {(one["severity"], one["rule"]) for one in json.loads(out)["findings"]}
    assert (code, found) == (1, {("error", "conf_file_missing"), ("warning", "conf_file_unread")})
    (tmp_path / "none.conf").write_text("NCCL_IB_TC=106\n")
    assert run("lint")[0] == 0


@pytest.mark.parametrize("width", [40, 80])
def test_findings_are_wrapped_on_a_terminal_and_whole_elsewhere(width: int) -> None:
    message = "something is wrong here that takes quite some words to be told " * 2
    finding = LintFinding("rule", LintSeverity.ERROR, "NCCL_X", "job.sh:1", message, message)
    for terminal in (True, False):
        out = StringIO()
        console = Console(file=out, width=width, force_terminal=terminal, color_system=None)
        show([finding], 1, [], [], console)
        first, *rest = out.getvalue().splitlines()
        assert first.startswith("error  job.sh:1: NCCL_X: something")
        if terminal:
            assert all(len(line) <= width for line in [first, *rest])
            assert all(line.startswith("    ") for line in rest[:-1])
        else:
            assert len(rest) == 2
            assert first.endswith("[rule]")


def test_settings_are_not_called_clean_where_a_host_was_not_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = linting.Asked((), {"gpu1": "no route", "gpu2": "no route"})
    monkeypatch.setattr(linting, "fleet", lambda *_, **__: asked)
    assert run("lint", "tcp", "--nodes", "gpu[1-2]") == (
        3,
        "4 settings: undecided, 2 hosts not asked\n",
        "ncdiag: gpu[1-2] cannot be asked: no route\n",
    )
    Path("job.sh").write_text("export NCCL_DEBUG=loud\n")
    code, out, _ = run("lint", "job.sh", "--nodes", "gpu[1-2]")
    assert code == 1
    assert out.endswith("1 setting: 1 error, 2 hosts not asked\n")


def test_a_profile_wins_over_a_file_of_its_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "quiet").write_text("export NCCL_TIMEOUT=5\n")
    assert run("lint", "quiet")[0] == 0
    assert run("lint", "./quiet")[0] == 1


def test_operands_are_looked_at_one_by_one(run: Run) -> None:
    code, out, _ = run("lint", "nic-only", "single-node-nvlink", "tcp")
    assert (code, out) == (0, "14 settings: nothing is wrong\n")


def test_devices_of_this_host_are_looked_for(
    run: Run, on_a_host_with: Callable[..., None], tmp_path: Path
) -> None:
    on_a_host_with(("mlx5_0",), "eth0")
    assert run("lint", "ib-ndr", "--host")[0] == 0
    script = tmp_path / "job.sh"
    script.write_text("export NCCL_IB_HCA==mlx5_7\n")
    code, out, _ = run("lint", str(script), "--host")
    assert code == 1
    assert "mlx5_7" in out


def test_a_profile_that_cannot_be_filled_in_here_is_an_error_of_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = HostValues("gpu1", {"nic.socket": "eth0"}, {"hca.compute": "it has none"})
    monkeypatch.setattr("ncdiag.health.devices.values_here", lambda: nothing)
    code, out, _ = run("lint", "ib-ndr", "--host")
    assert code == 1
    assert "{hca.compute} cannot be filled in for gpu1: it has none [placeholder_empty]" in out


def test_a_broken_base_is_told_once_with_all_that_it_takes_along(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "ncdiag/profiles"
    own.mkdir(parents=True)
    (own / "ib-ndr.toml").write_text("title = 1\n")
    code, _, err = run("list")
    assert code == 1
    assert err.count("\n") == 1
    assert "(left out: gb200-nvl72, ib-ndr)" in err


def test_a_release_outside_the_profile_is_told(run: Run) -> None:
    code, out, _ = run("lint", "ib-ndr", "--nccl", "2.14.3", "--format", "json")
    rules = {one["rule"] for one in json.loads(out)["findings"]}
    assert "profile_version" in rules
    assert code in {0, 1}


def test_a_carriage_return_in_the_environment_is_no_fault_of_a_file(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "INFO\r")
    code, out, _ = run("lint")
    assert code == 1
    assert "[carriage_return]" in out
    assert "set NCCL_DEBUG without it" in out


def test_output_of_env_with_the_line_ends_of_windows_is_one_warning(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "settings").write_bytes(b"HOME=/root\r\nNCCL_DEBUG=WARN\r\nNCCL_NET=IB\r\n")
    code, out, _ = run("lint", "settings")
    assert code == 0
    assert out.count("carriage_return") == 1
    assert "2 settings: 1 warning" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lint", "nothing-of-the-kind"), "there is no profile nothing-of-the-kind"),
        (("lint", "job.sbtch"), "job.sbtch: there is no such file"),
        (("lint", "nope.yaml"), "nope.yaml: there is no such file"),
        (("list", "--format", "jsn"), "'json'. Did you mean 'json'? See"),
        (("lint", "tcp", "--ranks", "few"), "'--ranks': this is no whole number; see"),
        (("lint", "tcp", "--ranks", "0"), "'--ranks': it must be 1 or more; see"),
        (("lint", "./no/file"), "./no/file: No such file"),
        (("lint", "tcp", "--host", "--nodes", "gpu1"), "give one of them"),
        (("lint", "tcp", "--nccl", "new"), "not a version"),
        (("show", "tpc"), "did you mean tcp"),
        (("export", "tcp", "--to", "toml"), "'toml' is not one of"),
        (("audit", "x.log"), "missing option '--profile'"),
        (("audit", "--profile", "tcp", "x.log"), "there is no x.log"),
        (("run", "tcp"), "missing argument"),
        (("run", "ring-only", "--"), "no command to run"),
        (("run", "ring-only", "--", "./no/such"), "./no/such: it cannot be run"),
    ],
)
def test_wrong_use_is_one_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_export_is_filled_in_by_the_hosts_file(run: Run, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("gpu[1-2] nic=eth0,mlx5_0,mlx5_1:2\n")
    code, out, err = run("export", "ib-hdr", "--to", "nccl.conf", "--nodes", str(hosts))
    assert code == 0
    assert "NCCL_IB_HCA==mlx5_0,mlx5_1:2\nNCCL_IB_PCI" in out
    assert "NCCL_SOCKET_IFNAME==eth0\n" in out
    assert err == "ncdiag: filled in for gpu1\n"
    hosts.write_text("gpu1 nic=eth0,mlx5_0\ngpu2 nic=eth0,mlx5_1\n")
    code, out, err = run("export", "ib-hdr", "--nodes", str(hosts))
    assert (code, out) == (2, "")
    assert "gpu1 and gpu2 need different values" in err
    hosts.write_text("gpu1 nic=eth0\n")
    code, _, err = run("export", "ib-hdr", "--nodes", str(hosts))
    assert code == 2
    assert "{hca.compute} cannot be filled in for gpu1" in err
    assert "name it in nic= of a hosts file" in err


def test_what_a_format_cannot_say_goes_to_stderr(run: Run) -> None:
    code, out, err = run("export", "debug", "--to", "nccl.conf")
    assert code == 0
    assert out.startswith("NCCL_DEBUG=INFO\n")
    assert "TORCH" not in out
    assert "TORCH_NCCL_DUMP_ON_TIMEOUT is left out: PyTorch reads it" in err
    assert run("export", "debug", "--to", "nccl.conf", "--quiet")[2] == ""


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        (sys.executable, "-m", "ncdiag", "env", *arguments),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_command_runs_with_the_profile_and_its_exit_code_is_ours() -> None:
    script = 'printf "%s " "$NCCL_ALGO" "$@"; exit 7'
    done = command(
        "run", "ring-only", "--", "sh", "-c", script, "sh", "--help", "-x", "a b", NCCL_ALGO="Tree"
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "Ring --help -x a b ", "")


def test_a_command_does_not_inherit_ignored_signals() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc here")
    done = command("run", "ring-only", "grep", "SigIgn", "/proc/self/status")
    ignored = int(done.stdout.split()[1], 16)
    assert ignored & (1 << 12) == 0  # SIGPIPE is 13


def test_a_command_that_cannot_run_leaves_signals_as_they_were(run: Run) -> None:
    before = signal.getsignal(signal.SIGPIPE)
    assert run("run", "ring-only", "--", "./no/such")[0] == 2
    assert signal.getsignal(signal.SIGPIPE) is before


def test_unset_takes_a_variable_away_from_the_command(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'title = "T"\nsource = "S"\n[settings]\nNCCL_PROTO = { unset = true, reason = "R" }\n'
    )
    done = command("run", str(own), "--", "sh", "-c", "echo ${NCCL_PROTO-gone}", NCCL_PROTO="LL")
    assert done.stdout == "gone\n"


PORTABLE = {"ring-only", "tcp", "ib-ndr", "roce-v2", "nic-only", "gb200-nvl72"}


def exported(run: Run, name: str, target: str, folder: Path) -> Path:
    hosts = folder / "hosts.txt"
    hosts.write_text("gpu1 nic=eth0,mlx5_0,mlx5_1\n")
    code, out, _ = run("export", name, "--to", target, "--nodes", str(hosts))
    assert code == 0
    path = folder / "exported"
    path.write_text(out)
    return path


@pytest.mark.parametrize("name", sorted(PORTABLE))
def test_a_profile_exported_to_a_shell_is_proved_by_the_log(
    run: Run, name: str, tmp_path: Path
) -> None:
    script = exported(run, name, "sh", tmp_path)
    argv = ("sh", "-euc", '. "$1"; export NCCL_DEBUG=INFO; exec "$2" "$3"', "sh")
    done = subprocess.run(
        (*argv, str(script), sys.executable, str(FAKE)), capture_output=True, check=True
    )
    (tmp_path / "job.log").write_bytes(done.stdout)
    code, out, _ = run("audit", "--profile", name, str(tmp_path / "job.log"))
    assert code == 0, out
    assert out.splitlines()[-1].startswith(f"TAKEN: profile {name}, 1 process of 1 rank")


def mpiexec_of_mpich() -> str:
    path = shutil.which("mpiexec")
    told = path and subprocess.run((path, "--version"), capture_output=True, check=False).stdout
    if not path or b"HYDRA" not in (told or b""):
        pytest.skip("MPICH's mpiexec is not installed: pip install mpich")
    return path


@pytest.mark.parametrize("name", sorted(PORTABLE))
def test_a_profile_exported_to_hydra_is_proved_by_the_log(
    run: Run, name: str, tmp_path: Path
) -> None:
    mpiexec = mpiexec_of_mpich()
    options = exported(run, name, "hydra", tmp_path).read_text()
    line = f'exec "$1" -n 3 -genv NCCL_DEBUG INFO {options.strip()} "$2" "$3"'
    argv = ("sh", "-euc", line, "sh", mpiexec, sys.executable, str(FAKE))
    done = subprocess.run(argv, capture_output=True, check=True, timeout=60)
    (tmp_path / "job.log").write_bytes(done.stdout)
    code, out, _ = run("audit", "--profile", name, "job.log", "--format", "json")
    document = json.loads(out)
    assert (code, document["verdict"], document["findings"]) == (0, "taken", [])
    assert (document["processes"], document["ranks"]) == (3, 3)


def test_an_audit_tells_who_did_not_take_what(run: Run, tmp_path: Path) -> None:
    each = [{"NCCL_DEBUG": "INFO", "NCCL_ALGO": "Ring"}] * 3 + [{"NCCL_DEBUG": "INFO"}]
    texts = [
        fake_nccl["log"](one, rank, 4, f"gpu{rank}", "2.27.3") for rank, one in enumerate(each)
    ]
    (tmp_path / "job.log").write_text("".join(texts))
    code, out, _ = run("audit", "--profile", "ring-only", "job.log")
    assert code == 1
    assert "wrong   NCCL_ALGO=Ring was not taken on rank 3 (gpu3)" in out
    assert "3 taken, 1 not taken" in out
    code, out, _ = run("audit", "--profile", "ring-only", "job.log", "--format", "json")
    document = json.loads(out)
    assert document["schema"] == "ncdiag/env-audit/1"
    assert document["settings"][0]["outcomes"] == {"taken": 3, "not_taken": 1}
    assert document["findings"][0]["processes"] == {"count": 1, "ranks": "3", "hosts": "gpu3"}


def test_an_audit_of_a_quiet_log_is_undecided(run: Run, tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("NCCL version 2.27.3+cuda12.4\n")
    code, out, _ = run("audit", "--profile", "ring-only", "job.log")
    assert code == 3
    assert "INCONCLUSIVE" in out
    assert "NCCL_DEBUG=INFO" in out


def test_what_stands_in_a_log_cannot_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    log = fake_nccl["log"](
        {"NCCL_DEBUG": "INFO", "NCCL_ALGO": "Ri\x1b[2Jng\u202e"}, 0, 1, "gpu1", "2.27.3"
    )
    (tmp_path / "job.log").write_text(log)
    for arguments in ((), ("--format", "json")):
        _, out, _ = run("audit", "--profile", "ring-only", "job.log", *arguments)
        assert "\x1b" not in out
        assert "\u202e" not in out
