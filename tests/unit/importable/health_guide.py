"""The pieces of ``docs/health.md`` that operators copy."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "health.md"
NCDIAG = "/opt/ncdiag/bin/ncdiag"


def blocks(kind: str) -> list[str]:
    """The blocks of that kind; of those without one where it is empty."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def gate_script() -> str:
    """What the prolog and the epilog run."""
    [script] = [text for text in blocks("sh") if "scontrol" not in text]
    return script


def drain_script() -> str:
    """The HealthCheckProgram."""
    [script] = [text for text in blocks("sh") if "scontrol" in text]
    return script


def slurm_settings() -> dict[str, str]:
    """The lines for slurm.conf."""
    [text] = [text for text in blocks("") if text.startswith("# slurm.conf")]
    return dict(line.split("=", 1) for line in text.splitlines()[1:])
