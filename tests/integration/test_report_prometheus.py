import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from ncdiag.model.verdict import SweepReport
from ncdiag.report import prometheus

MakeReport = Callable[..., SweepReport]

HOSTILE = 'a"} 1\n\\<b>'


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"slow_senders": {"h3": 0.2}, "unreachable": {"h8": "refused"}},
        {"names": [HOSTILE, "日本", "c"], "slow_senders": {HOSTILE: 0.2}},
        {"names": 0},
        {"expected_gbit_per_s": None, "errors": {("h1", "h2"): "hung"}},
    ],
)
def test_promtool_has_nothing_to_say(case: dict[str, Any], make_report: MakeReport) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing (package prometheus)")
    run = subprocess.run(
        [promtool, "check", "metrics"],
        input=prometheus.render(make_report(**case)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, "")
