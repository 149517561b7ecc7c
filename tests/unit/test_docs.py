import os
import re
import shlex
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ncdiag.cli import main

ROOT = Path(__file__).parents[2]
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")})
COMMANDS = dict(get_command(main.app).commands)
LINK = re.compile(r"\]\(([^)\s]+)\)")
EXAMPLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def options_of(command: TyperCommand | TyperGroup) -> set[str]:
    """The options of a command, or of all commands of a group."""
    below = getattr(command, "commands", {}).values()
    own = {option for parameter in command.params for option in parameter.opts}
    return own.union(*(options_of(one) for one in below))


def examples() -> list[object]:
    return [
        pytest.param(text, id=f"{page.name}-{number}")
        for page in PAGES
        for number, text in enumerate(EXAMPLE.findall(page.read_text()), start=1)
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_page_that_names_its_options(command: str) -> None:
    text = (ROOT / "docs" / f"{command}.md").read_text()
    known = options_of(COMMANDS[command]) - {"--help"}
    options = sorted(option for option in known if option.startswith("--"))
    assert [option for option in options if not re.search(rf"{option}\b(?!-)", text)] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_no_page_names_an_option_that_is_not_there(command: str) -> None:
    text = (ROOT / "docs" / f"{command}.md").read_text()
    known = options_of(COMMANDS[command])
    in_table = set(re.findall(r"^\| `(--[a-z-]+)", text, re.MULTILINE))
    assert in_table <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    targets = [(page.parent / link.partition("#")[0]) for link in links]
    assert [str(target) for target in targets if not target.exists()] == []


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    missing = [page.name for page in ROOT.glob("docs/*.md") if f"({page.name})" not in index]
    assert missing == ["README.md"]


@pytest.mark.parametrize("example", examples())
def test_an_example_prints_what_the_page_says(
    example: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    code = 0
    for step in re.split(r"^\$ ", example, flags=re.MULTILINE)[1:]:
        line, _, expected = step.partition("\n")
        match shlex.split(line):
            case ["cat", name]:
                Path(name).write_text(expected)
            case ["echo", "$?"]:
                assert expected == f"{code}\n"
            case ["ncdiag", *arguments]:
                code = main.run(arguments)
                out, err = capfd.readouterr()
                assert_alike(out + err, expected)
            case unknown:
                pytest.fail(f"an example may cat a file, echo $? or call ncdiag: {unknown}")


def assert_alike(printed: str, expected: str) -> None:
    """Equal but for trailing blanks, where ``...`` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in expected.rstrip().split("..."))
    shown = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
    assert re.fullmatch(pattern, shown, re.DOTALL), shown


def test_there_are_examples_and_they_can_fail() -> None:
    assert len(examples()) >= 4
    assert_alike("a 1 b\nc  \n", "a ... b\nc\n")
    with pytest.raises(AssertionError):
        assert_alike("a 1 b\nd\n", "a ... b\nc\n")


@pytest.mark.parametrize(
    "script", ["quickstart", "test", "netlab", "build-nccl-tests", "gpu-check"]
)
def test_every_script_can_be_started_and_stands_in_the_readme_or_the_docs(script: str) -> None:
    assert os.access(ROOT / "bin" / script, os.X_OK)
    texts = [page.read_text() for page in PAGES]
    assert any(f"bin/{script}" in text for text in texts)
