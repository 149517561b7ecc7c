import json
import re
from pathlib import Path

import pytest

from ncdiag.cli import main

ROOT = Path(__file__).parents[2]
COMMAND = "ncdiag parse-log examples/crash"


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")


def test_the_readme_shows_what_the_example_prints(capfd: pytest.CaptureFixture[str]) -> None:
    shown = re.search(
        rf"^```text\n\$ {COMMAND}\n(.*?)^```$",
        (ROOT / "README.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert shown
    assert main.run(COMMAND.split()[1:]) == 1
    assert capfd.readouterr().out == shown[1]


def test_the_example_blames_the_gpu_and_isolates_its_host_only(
    capfd: pytest.CaptureFixture[str],
) -> None:
    main.run([*COMMAND.split()[1:], "--format", "json"])
    document = json.loads(capfd.readouterr().out)
    assert document["findings"][0]["class"] == "gpu_fell_off_bus"
    assert [one["host"] for one in document["isolate"]] == ["node-b"]
