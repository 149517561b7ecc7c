import re
from pathlib import Path

import pytest

from ncdiag.cli import main

ROOT = Path(__file__).parents[2]
COMMAND = "ncdiag topo check examples/topology/gpu02.xml"


def test_the_readme_shows_what_the_example_prints(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    readme = (ROOT / "README.md").read_text()
    shown = re.search(rf"^```text\n\$ {COMMAND}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert shown
    assert main.run(COMMAND.split()[1:]) == 1
    assert capfd.readouterr().out == shown[1]
