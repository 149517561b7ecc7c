import pytest
from health_reports import HOT, PORT, XID, host_health, report, silent

from ncdiag.cli.health.prolog import prolog
from ncdiag.model.errors import UndecidedError
from ncdiag.model.health import HealthReport, HostHealth


def test_a_fatal_finding_is_the_only_one_that_drains(capsys: pytest.CaptureFixture[str]) -> None:
    assert prolog(lambda: report(host_health("a", *HOT, PORT, XID))) == 1
    assert capsys.readouterr() == ("ncdiag: gpu3: Xid 79: the GPU has fallen off the bus\n", "")


@pytest.mark.parametrize("host", [host_health("a"), host_health("a", *HOT, PORT)])
def test_less_than_fatal_drains_nobody_and_says_nothing(
    host: HostHealth, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prolog(lambda: report(host)) == 0
    assert capsys.readouterr() == ("", "")


def test_a_host_that_is_not_known_is_not_drained(capsys: pytest.CaptureFixture[str]) -> None:
    assert prolog(lambda: report(silent("a", "no facts\x1b"))) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "ncdiag: this host could not be judged, and is not drained for that: no facts\\x1b\n"
    )


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UndecidedError("no such folder"), ": no such folder\n"),
        (ZeroDivisionError("a\nb"), ": ZeroDivisionError: a b\n"),
        (KeyboardInterrupt(), ": KeyboardInterrupt: \n"),
        (SystemExit(3), ": SystemExit: 3\n"),
        (MemoryError(), ": MemoryError: \n"),
    ],
)
def test_whatever_fails_with_us_drains_nobody(
    error: BaseException, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def look() -> HealthReport:
        raise error

    assert prolog(look) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ncdiag: this host could not be judged")
    assert err.endswith(told)


def test_a_reason_that_nobody_reads_drains_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Gone:
        def write(self, _text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    assert prolog(lambda: report(host_health("a", XID))) == 1
