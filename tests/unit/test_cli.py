import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.main import get_command

import ncdiag
from ncdiag.cli import main, options
from ncdiag.cli.commands import Lazy
from ncdiag.model.errors import ExitCode, UndecidedError, UsageError

AddCommand = Callable[[Callable[..., object]], None]


@pytest.fixture
def add_command(monkeypatch: pytest.MonkeyPatch) -> AddCommand:
    """Adds a command called ``try`` for one test."""

    def try_command(function: Callable[..., object]) -> None:
        monkeypatch.setattr(sys.modules[__name__], "tried", function, raising=False)
        monkeypatch.setitem(main.COMMANDS, "try", Lazy(__name__, "tried"))

    return try_command


def commands() -> dict[str, object]:
    return dict(get_command(main.app).commands)


def parameters() -> list[tuple[str, str, str]]:
    """Command, option and help text of everything that can stand on the command line."""
    return [
        (name, parameter.opts[-1], parameter.help or "")
        for name, command in [("ncdiag", get_command(main.app)), *commands().items()]
        for parameter in command.params
    ]


def test_every_command_has_help() -> None:
    assert {"doctor"} <= set(commands())
    for name, command in commands().items():
        assert command.help, name


@pytest.mark.parametrize(("command", "option", "text"), parameters())
def test_every_option_has_help(command: str, option: str, text: str) -> None:
    assert text.endswith((".", "2h.")), f"{command} {option}"


@pytest.mark.parametrize("arguments", [[], *([name] for name in commands())])
def test_help_fits_eighty_columns(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main.run([*arguments, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert [line for line in lines if len(line) > 80] == []


def test_help_shows_node_sets_in_full(
    capsys: pytest.CaptureFixture[str], add_command: AddCommand
) -> None:
    def command(nodes: options.Nodes = None) -> None:
        """Look at gpu[001-128]."""

    add_command(command)
    assert main.run(["try", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Look at gpu[001-128]." in shown
    assert "gpu[001-128,130]" in shown


def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"ncdiag {ncdiag.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing command; see 'ncdiag --help'"),
        (["docter"], "no such command 'docter'. Did you mean 'doctor'? See 'ncdiag --help'"),
        (["--vershun"], "no such option: --vershun (Possible options: --version); see"),
        (["doctor", "--fromat", "json"], "no such option: --fromat (Possible options: --format)"),
        (["doctor", "--format"], "option '--format' requires an argument; see"),
        (["doctor", "--format", "xml"], "invalid value for '--format': "),
        (["doctor", "extra"], "got unexpected extra argument(s) (extra); see 'ncdiag doctor"),
        (["\x1b[31m"], r"no such command '\x1b[31m'"),
    ],
)
def test_wrong_use_is_one_line_on_stderr(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ncdiag: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("hosts.txt:3: no\nsuch\x1b host"), 2, r"hosts.txt:3: no such\x1b host"),
        (UndecidedError("nothing measured"), 3, "nothing measured"),
        (KeyboardInterrupt(), 130, None),
        (OSError(errno.ENOSPC, "No space left on device", "r/links.csv"), 3,
         "r/links.csv: No space left on device"),
        (TimeoutError("no answer"), 3, "TimeoutError: no answer"),
        (ZeroDivisionError("division\nby zero"), 3, None),
    ],
)  # fmt: skip
def test_every_error_is_one_line_and_an_exit_code(
    error: BaseException,
    code: int,
    line: str | None,
    add_command: AddCommand,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def command() -> None:
        raise error

    add_command(command)
    assert main.run(["try"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ncdiag: ") or isinstance(error, KeyboardInterrupt)
    assert err.count("\n") <= 1
    if line:
        assert err == f"ncdiag: {line}\n"


def test_a_bug_says_where_it_is_and_how_to_see_more(
    add_command: AddCommand,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def command() -> None:
        raise KeyError("rail")

    add_command(command)
    main.run(["try"])
    err = capsys.readouterr().err
    assert "internal error: KeyError: 'rail' (test_cli.py:" in err
    assert "Traceback" not in err
    monkeypatch.setenv("NCDIAG_DEBUG", "1")
    main.run(["try"])
    assert "Traceback" in capsys.readouterr().err


def test_a_command_returns_its_exit_code(add_command: AddCommand) -> None:
    add_command(lambda: ExitCode.WRONG)
    assert main.run(["try"]) == 1


def start(arguments: list[str], stdout: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from ncdiag.cli.main import main; main()", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_reader_that_went_away_gets_no_message() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = start(["--help"], write_end)
    os.close(write_end)
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == ExitCode.UNDECIDED


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        process = start(["--help"], full.fileno())
        err = process.communicate(timeout=60)[1]
    assert err == "ncdiag: output: No space left on device\n"
    assert process.returncode == ExitCode.UNDECIDED


def test_a_terminal_without_unicode_still_gets_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    process = start(["doctor", "--help"], subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    assert err == ""
    assert process.returncode == 0
    assert "--format" in out


def try_options(add_command: AddCommand, arguments: list[str]) -> tuple[int, dict[str, object]]:
    seen: dict[str, object] = {}

    def command(budget: options.Budget = None, faulty_below: options.FaultyBelow = 0.8) -> None:
        seen.update(budget=budget, faulty_below=faulty_below)

    add_command(command)
    return main.run(["try", *arguments]), seen


def test_durations_and_shares_become_numbers(add_command: AddCommand) -> None:
    code, seen = try_options(add_command, ["--budget", "10m", "--faulty-below", "0.75"])
    assert code == 0
    assert seen == {"budget": 600.0, "faulty_below": 0.75}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "ten"], "invalid value for '--budget': not a duration: 'ten' (examples:"),
        (["--faulty-below", "80"], "invalid value for '--faulty-below': '80' is no share"),
        (["--faulty-below", "nan"], "invalid value for '--faulty-below': 'nan' is no share"),
        (["--faulty-below", "0"], "invalid value for '--faulty-below': '0' is no share"),
    ],
)
def test_a_bad_value_names_its_option(
    arguments: list[str],
    message: str,
    add_command: AddCommand,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, seen = try_options(add_command, arguments)
    assert (code, seen) == (2, {})
    assert capsys.readouterr().err.startswith(f"ncdiag: {message}")


def test_abort_counts_as_an_interrupt(
    add_command: AddCommand, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        raise typer.Abort

    add_command(command)
    assert main.run(["try"]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "ncdiag: interrupted\n"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """``line`` as a shell runs it, with ``$NCDIAG`` for the command."""
    command = f"{sys.executable} -c 'from ncdiag.cli.main import main; main()'"
    return subprocess.run(
        ["/bin/sh", "-c", line.replace("$NCDIAG", command)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_closed_streams_change_nothing_but_what_is_seen() -> None:
    assert shell("$NCDIAG --version >&-").returncode == 0
    assert shell("$NCDIAG report /nowhere >&- 2>&- <&-").returncode == ExitCode.USAGE
    silent = shell("$NCDIAG report /nowhere 2>&-")
    assert (silent.returncode, silent.stdout) == (ExitCode.USAGE, "")
    full = shell("$NCDIAG report /nowhere 2>/dev/full")
    assert (full.returncode, full.stdout) == (ExitCode.USAGE, "")
    empty = shell("$NCDIAG sweep --nodes - --dry-run <&-")
    assert empty.returncode == ExitCode.USAGE
    assert empty.stderr.startswith("ncdiag: stdin: no hosts in it")


def test_a_closed_stream_is_not_taken_by_the_next_file() -> None:
    code = "from ncdiag.cli import main as m; m._open_closed_streams(); print(m.os.dup(1))"
    lowest = shell(f"{sys.executable} -c '{code}' <&- 2>&-").stdout
    assert int(lowest) > 2


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_end_counts_as_an_interrupt(name: str) -> None:
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.%s, signal.SIG_DFL)\n"  # what runs the tests may ignore it
        "from ncdiag.cli import main\n"
        "main.run = lambda _: os.kill(os.getpid(), signal.%s) or signal.pause()\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code % (name, name)], check=False, timeout=60)
    assert done.returncode == ExitCode.INTERRUPTED


def test_a_long_message_is_cut_in_its_middle(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["report", "/nowhere", "/nowhere", "x" * 100_000]) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert len(err) < 1100
    assert err.startswith("ncdiag: got unexpected extra argument")
    assert err.endswith("see 'ncdiag report --help'\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-bytes", "0"],
        ["--max-bytes", "999999999999999T"],
        ["--measure-time", "0s"],
        ["--measure-time", "999999999999999d"],
        ["--budget", "999999999999999d"],
        ["--seed", "99999999999999999999999999"],
    ],
)
def test_a_value_beyond_all_sense_is_wrong_use(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["sweep", "--nodes", "127.0.0.2,127.0.0.3", "--dry-run", *arguments])
    assert code == ExitCode.USAGE
    assert capsys.readouterr().err.startswith(f"ncdiag: invalid value for '{arguments[0]}'")
