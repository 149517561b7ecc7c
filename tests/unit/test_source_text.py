"""Programs and documentation quote errors; nothing failed where they do."""

from pathlib import Path

import pytest
from told_postmortem import answer

XID = "NVRM: Xid (PCI:0000:5e:00): 79, pid=81, name=python, GPU has fallen off the bus."
WARN = "ash-3:81:90 [1] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : port error"


QUOTED = [
    f"# kernel: {XID}",
    f"    # {WARN}",
    f"// {XID}",
    f'+        "{WARN}\\n"',
    f"-    '{XID}',",
    f'sample = "{XID}"',
    f'    (re.compile(r"{XID}"), "drain"),',
    f'log.error("{WARN}")',
    f'    assert found == "{XID}"',
    "src/init.cc:1204:  WARN(\"Cuda failure 'out of memory'\");",
    "tools/check.py:12:    # torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate",
    '    WARN("Call to ibv_modify_qp failed with %d %s", ret, strerror(ret));',
    "Call to recv from %s failed : %s",
    "[1.5] NVRM: Xid (PCI:0000:xx:00): 79, pid=<pid>, name=<name>, GPU has fallen off the bus.",
    "| out of memory | `Out of memory: Killed process 4412 (python) total-vm:…` | add memory |",
    "$ dmesg -T | grep -E 'GPU has fallen off the bus|Out of memory: Killed process'",
    "[ops@head-1 ~]$ zgrep -c x a | awk '/oom-kill:constraint=CONSTRAINT_NONE/'",
    "+ grep -qE 'Xid .*79|fallen off the bus' run.log",
    'summary: "{{ $labels.instance }}: NVRM: Xid 79, GPU has fallen off the bus"',
]


@pytest.mark.parametrize("line", QUOTED)
def test_what_is_quoted_did_not_happen(line: str, tmp_path: Path) -> None:
    told = answer(tmp_path, "some text", line, "more of it")
    assert (told.verdict, told.findings, told.isolate) == ("inconclusive", (), ())


@pytest.mark.parametrize("line", ["ash-3 fallen off the bus: no", "was it 'fallen off the bus'?"])
def test_the_words_alone_say_nothing(line: str, tmp_path: Path) -> None:
    assert not answer(tmp_path, line).findings


@pytest.mark.parametrize(
    ("line", "class_"),
    [
        (XID, "gpu_fell_off_bus"),
        (f"- {XID}", "gpu_fell_off_bus"),
        (f"> {WARN}", "ib_port_error"),
        (f"job.py:12: {WARN}", "ib_port_error"),
        ("RuntimeError('CUDA error: an illegal memory access was encountered')", "cuda_error"),
        ("  GPU 3 has fallen off the bus", "gpu_fell_off_bus"),
        (f"$ {XID}", "gpu_fell_off_bus"),
        (f'time=2026-02-03 level=warn msg="{WARN}"', "ib_port_error"),
    ],
)
def test_what_happened_is_told_in_many_ways(line: str, class_: str, tmp_path: Path) -> None:
    assert [one.class_ for one in answer(tmp_path, line).findings] == [class_]
