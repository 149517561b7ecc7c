import pytest

from ncdiag.cli import main

JOB = ("manifests", "job", "--image", "r/n:1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--", "--engin", "torch"), "behind --, for the sweep: no such option: --engin"),
        (("--", "--engine", "nccltests"), "unknown engine 'nccltests'"),
        (("--", "--budget", "ten"), "behind --, for the sweep: invalid value for '--budget'"),
        (("--", "gpu[1-3]"), "behind --, for the sweep: got unexpected extra argument"),
    ],
)
def test_what_the_sweep_would_refuse_in_its_pod_is_refused_here(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert main.run([*JOB, *arguments]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert told.err.startswith(f"ncdiag: {message}")


def test_an_option_of_the_sweep_is_told_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*JOB, "--engine", "torch"]) == 2
    assert "--engine is an option of the sweep" in capsys.readouterr().err
    assert main.run([*JOB, "--imagee", "x"]) == 2
    assert "no such option: --imagee" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("daemonset", "--nodes", "8", "--deadline", "2h"), "leave out --nodes, --deadline, or"),
        (("daemonset", "--", "--mode", "quick"), "leave out what stands behind --, or"),
        (("volcano", "--deadline", "2h"), "--deadline is for a job or mpijob"),
    ],
)
def test_what_a_kind_has_no_use_for_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    kind, *others = arguments
    assert main.run(["manifests", kind, "--image", "r/n:1", *others]) == 2
    assert message in capsys.readouterr().err


def test_an_image_in_upper_case_is_told_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["manifests", "job", "--image", "R/N:1"]) == 2
    assert "lower case" in capsys.readouterr().err
