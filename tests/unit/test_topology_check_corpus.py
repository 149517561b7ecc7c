"""Labelled public dumps, where they lie beside the checkout."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ncdiag.diagnose.topology.check import check
from ncdiag.read.topology.read_topology import read_topology

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "topology"


def _labels() -> list[tuple[Path, dict[str, Any]]]:
    return [
        (file.parent / label["file"], label)
        for file in sorted(CORPUS.rglob("labels.jsonl"))
        for label in map(json.loads, file.read_text().splitlines())
        if "findings_any" in label or "findings_none" in label
    ]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus of topology dumps beside the checkout")
def test_labelled_faults_are_found_and_healthy_dumps_raise_no_alarm() -> None:
    wrong = []
    for path, label in _labels():
        found = check(read_topology(path.read_bytes()))
        hits = [finding for finding in found if finding.name in label.get("findings_any", ())]
        if "findings_any" in label and not hits:
            wrong.append(f"{path.name}: none of {label['findings_any']}")
        names = "|".join(map(re.escape, label.get("names_any", ())))
        if names and not any(re.search(names, f"{f.where} {f.explanation}") for f in hits):
            wrong.append(f"{path.name}: names none of {names}")
        alarms = [finding.name for finding in found if finding.severity != "info"]
        if label.get("findings_none") and alarms:
            wrong.append(f"{path.name}: {alarms}")
    assert wrong == []
