"""Some hundreds of small logs, each with what a correct answer says of it.

``expected.jsonl`` has a line for each: ``verdict`` (or several that are right), ``root_classes``
(one of them comes first; none: no root), classes that must be there and roots that must not,
suspects (one of them is named first) and who is none, hosts to isolate (``a|b`` under either name)
and those that may be, facts by dotted path of the JSON answer, attributes of the first finding.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.logs.read_logs import read_logs
from ncdiag.report.postmortem.json_report import render

CASES = Path(__file__).parents[1] / "data" / "postmortem" / "cases"
EXPECTED = [json.loads(line) for line in (CASES / "expected.jsonl").read_text().splitlines()]


def faults(expected: dict[str, Any], answer: dict[str, Any]) -> Iterator[str]:
    """What is wrong with an answer."""
    findings = answer["findings"]
    first = findings[0] if findings else {"class": None, "suspects": [], "attributes": {}}
    roots = {one["class"] for one in findings if one["role"] == "root"}
    verdicts = expected["verdict"]
    if answer["verdict"] not in (verdicts if isinstance(verdicts, list) else [verdicts]):
        yield f"verdict {answer['verdict']}"
    wanted = expected["root_classes"]
    quiet = answer["verdict"] == "ok" and "ok" in verdicts and not roots
    if (first["class"] not in wanted and not quiet) if wanted else roots:
        yield f"root {first['class']}, roots {roots}"
    missing = set(expected.get("must_include_classes", ())) - {one["class"] for one in findings}
    wrong = roots & set(expected.get("must_not_classes", ()))
    if missing or wrong:
        yield f"classes missing {missing}, wrong roots {wrong}"
    named = [bare(one["name"]) for one in first["suspects"]]
    suspects = [bare(name) for name in expected.get("suspects", ())]
    if suspects and not any(same(want, name) for want in suspects for name in named):
        yield f"suspects {named}"
    yield from isolation_faults(expected, [one["host"] for one in answer["isolate"]])
    for path, value in expected.get("facts", {}).items():
        if not agrees(value, found(answer, path)):
            yield f"{path}: {found(answer, path)!r}"
    for key, value in expected.get("attributes", {}).items():
        if first["attributes"].get(key) != value:
            yield f"attribute {key}: {first['attributes'].get(key)!r}"


def isolation_faults(expected: dict[str, Any], isolated: list[str]) -> Iterator[str]:
    due = [hosts.split("|") for hosts in expected.get("isolate", ())]
    fine = [host for hosts in due for host in hosts] + expected.get("isolate_ok", [])
    extra = [host for host in isolated if not any(same(host, name) for name in fine)]
    missing = [hosts for hosts in due if not any(same(a, b) for a in isolated for b in hosts)]
    if extra or missing:
        yield f"isolated {isolated}: extra {extra}, missing {missing}"


def bare(name: str) -> str:
    """A suspect's name without the word for its kind."""
    kind, _, rest = name.partition(" ")
    return rest if rest and kind in {"rank", "pid", "process", "host", "gpu", "nic"} else name


def same(one: str, other: str) -> bool:
    """Whether two names are of one host: a full name equals its short form."""
    one, other = one.lower(), other.lower()
    return one == other or (
        one.split(".")[0] == other.split(".")[0] and not one.replace(".", "").isdigit()
    )


def found(answer: Any, path: str) -> Any:
    for part in path.split("."):
        if part == "#":
            return len(answer)
        try:
            answer = answer[int(part)] if isinstance(answer, list) else answer[part]
        except (IndexError, KeyError, TypeError, ValueError):
            return None
    return answer


def agrees(want: Any, got: Any) -> bool:
    if isinstance(want, dict):
        return isinstance(got, list) and all(one in got for one in want["has"])
    if isinstance(want, list):
        return isinstance(got, list) and sorted(map(str, want)) == sorted(map(str, got))
    if isinstance(want, float):
        return isinstance(got, int | float) and got == pytest.approx(want, rel=1e-6)
    return bool(want == got)


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda one: one["file"])
def test_the_answer_is_right(expected: dict[str, Any]) -> None:
    postmortem = diagnose(read_logs([str(CASES / expected["file"])], jobs=1))
    answer = json.loads(render(postmortem))
    assert list(faults(expected, answer)) == [], expected.get("why", "")
