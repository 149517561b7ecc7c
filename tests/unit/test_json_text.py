import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.json_text import encode
from ncdiag.report.json_document import layout

ROOT = Path(__file__).parents[2]
# These hand JSON to another part of ncdiag, or keep it for one; nobody looks at it.
BETWEEN_PROGRAMS = {
    "cli/topo/capturing.py",
    "cluster/fleet/protocol.py",
    "cluster/mpi/ways.py",
    "health/devices.py",
    "health/self_report.py",
    "health/topology/capture.py",
    "measure/bench/nccl_tests.py",
    "measure/bench/torch_child.py",
    "measure/bench/torch_engine.py",
    "measure/bench/torch_task.py",
    "measure/bench/wrapped.py",
    "measure/burn_in/loopback.py",
    "measure/burn_in/testbed.py",
    "measure/engines/mpi/control.py",
    "measure/engines/mpi/messages.py",
    "measure/engines/nccl_tests/engine.py",
    "measure/engines/nccl_tests/look.py",
    "measure/engines/perftest/engine.py",
    "measure/engines/perftest/task.py",
    "measure/engines/torch/child.py",
    "measure/engines/torch/engine.py",
    "measure/engines/torch/task.py",
    "measure/journal.py",
    "measure/nccl_tests_rank.py",
    "store/benches.py",
    "store/evidence_rows.py",
    "store/store.py",
}
ANY_TEXT = st.text(st.characters() | st.sampled_from("\x7f\x9b\u202e\u2028\U000e0041"))


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    share: float | None = None


def test_what_hides_or_reorders_text_is_escaped() -> None:
    text = "\x1b[31m\x7f\x9b31m\u202e\u2028\U000e0041 Köln 机柜"
    shown = rb"\u001b[31m\u007f\u009b31m\u202e\u2028\udb40\udc41 " + "Köln 机柜".encode()
    assert encode({text: text}) == b'{"%s":"%s"}' % (shown, shown)
    assert encode(text, indent=2) == b'"%s"' % shown
    assert layout({text: [Record(text)]}) == (
        b'{\n"%s": [\n {"name":"%s","share":null}\n]\n}\n' % (shown, shown)
    )


def test_bytes_that_are_no_utf8_stand_visibly_in_it() -> None:
    outside = b"=a\xff".decode(errors="surrogateescape")
    assert json.loads(encode([Record(outside, 0.5), "\U0001f600"])) == [
        {"name": "=a\\udcff", "share": 0.5},
        "\U0001f600",
    ]


def test_indented_it_is_the_same() -> None:
    document = {"a": [1, None, float("nan")], "b": {"c": "ü"}}
    assert json.loads(encode(document, indent=1)) == {"a": [1, None, None], "b": {"c": "ü"}}
    assert encode(document, indent=1).startswith(b'{\n "a"')


@given(st.recursive(ANY_TEXT, lambda t: st.lists(t) | st.dictionaries(ANY_TEXT, t), max_leaves=8))
def test_any_text_comes_back_and_nothing_hides_in_it(value: object) -> None:
    data = encode(value)
    categories = {unicodedata.category(char) for char in data.decode()}
    assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    try:
        plain = msgspec.json.encode(value)
    except UnicodeEncodeError:
        return
    assert json.loads(data) == json.loads(plain)


def test_no_other_module_makes_json_to_look_at() -> None:
    package = ROOT / "ncdiag"
    making = {
        str(path.relative_to(package))
        for path in package.glob("**/*.py")
        if re.search(r"json\.(?:dumps?|encode|Encoder)\b", path.read_text())
    }
    assert making == {*BETWEEN_PROGRAMS, "model/json_text.py"}
