import pytest

from ncdiag.cli import main

HOSTS = "127.0.0.[2-3]"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            ("--launcher", "local", "--time", "30", "--ssh-option", "-v"),
            "not used by the launcher local: --ssh-option, --time\n",
        ),
        (("--namespace", "ai", "--context", "x"), "launcher local: --namespace, --context\n"),
        (("--engine", "torch", "--nccl-tests-dir", "/x"), "engine torch: --nccl-tests-dir\n"),
    ],
)
@pytest.mark.parametrize("command", [("sweep",), ("bench", "all_reduce")])
def test_options_without_use_are_named_in_a_line(
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    options: tuple[str, ...],
    line: str,
) -> None:
    assert main.run([*command, "--nodes", HOSTS, "--dry-run", *options]) == 0
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert sorted(told.err.rsplit(": ")[-1]) == sorted(line.rsplit(": ", maxsplit=1)[-1])
    assert line.partition(":")[0] in told.err
    assert told.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--launcher", "ssh", "--selector", "app=x"), "--selector is for the launcher kubernetes"),
        (("--nodes", HOSTS, "--container-image", "x"), "--container-image is for the launcher sl"),
        (("--nodes", HOSTS, "--pair-test", "alltoall"), "--pair-test is for the engine nccl-tests"),
        (("--nodes", HOSTS, "--perftest", "ib_read_bw"), "--perftest is for the engine perftest"),
    ],
)
def test_options_that_decide_what_is_measured_are_refused(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert main.run(["sweep", "--dry-run", *options]) == 2
    assert capsys.readouterr().err.startswith(f"ncdiag: {message}")


def test_nothing_is_said_of_options_that_are_of_use(capsys: pytest.CaptureFixture[str]) -> None:
    own = ("--engine", "nccl-tests", "--pair-test", "alltoall", "--at-a-time", "2")
    assert main.run(["sweep", "--nodes", HOSTS, "--dry-run", *own]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--launcher", "shh", "--selector", "a=b"), "no launcher is called 'shh': did you mean"),
        (("--engine", "nccltests", "--perftest", "ib_read_bw"), "--perftest is for the engine"),
        (("--engine", "nccltests"), "unknown engine 'nccltests' (there are: mpi, nccl-tests,"),
    ],
)
def test_unknown_names_are_told_as_such(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert main.run(["sweep", "--nodes", HOSTS, "--dry-run", *options]) == 2
    assert capsys.readouterr().err.startswith(f"ncdiag: {message}")


@pytest.mark.parametrize("command", [("sweep",), ("bench", "all_reduce")])
def test_an_engine_that_is_nearly_right_is_offered(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert main.run([*command, "--nodes", HOSTS, "--engine", "nccltests", "--dry-run"]) == 2
    assert capsys.readouterr().err.endswith("; did you mean nccl-tests?\n")
