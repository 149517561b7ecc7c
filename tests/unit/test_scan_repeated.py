import io
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.model.log import Event, LogEvidence
from ncdiag.read import shapes
from ncdiag.read.blocks import blocks
from ncdiag.read.events import PER_FORM
from ncdiag.read.log_reader import LogReader
from ncdiag.read.selection import Selection

MESSAGES = (
    "c{h}:{p}:9 [0] NCCL WARN Cuda failure 2 'out of memory'",
    (
        "c{h}:{p}:9 [0] misc/socket.cc:51 NCCL WARN socketProgress: Connection closed by remote"
        " peer c9<4{p}>"
    ),
    "[2026-02-03 04:05:{s:02d}] c{h}:{p}:9 [1] NCCL WARN Cuda failure 'launch failure'",
    (
        "{h}: c{h}:{p}:9 [0] NCCL WARN Duplicate GPU detected : rank 3 and rank {h} both on"
        " CUDA device 4b000"
    ),
    "c{h}:{p}:9 [0] NCCL INFO bootstrap.cc:7{h} -> 2",
    "[ 7{s}.120000] NVRM: Xid (PCI:0000:4b:00): 79, pid=1{h}, GPU has fallen off the bus.",
    "step {p} done",
)
FILLER = "nothing to see\n" * 3000


def read(text: str, *, brief: bool) -> LogEvidence:
    reader = LogReader("log", brief=brief)
    selection = Selection(reader, every_line=not brief, size=len(text))
    for block in blocks(io.BytesIO(text.encode())):
        selection.read(block)
    return reader.finish()


def key(event: Event) -> tuple[object, ...]:
    place, last = event.place, event.last
    said = event.form, event.speaker, dict(event.attributes), event.text
    return (*map(str, said), place, last, event.count)


def log(seed: int, lines: int, hosts: int = 3) -> str:
    chance = random.Random(seed)
    said = [
        chance.choice(MESSAGES).format(h=chance.randrange(hosts), p=71, s=chance.randrange(60))
        for _ in range(lines)
    ]
    # Lines that follow one another may be doubles of a collector; these are none.
    return FILLER + "\n-\n".join(said) + "\n" + FILLER


@pytest.mark.parametrize("seed", range(4))
def test_what_is_counted_is_what_reading_each_line_gives(seed: int) -> None:
    text = log(seed, 400)
    brief, full = read(text, brief=True), read(text, brief=False)
    assert len(full.events) > 10
    assert sorted(map(key, brief.events)) == sorted(map(key, full.events))
    assert brief.hosts.keys() == full.hosts.keys()
    assert [one.host for one in brief.processes] == [one.host for one in full.processes]
    assert brief.ends == full.ends


def findings(evidence: LogEvidence) -> dict[tuple[object, ...], int]:
    postmortem = diagnose(evidence, {})
    told = {
        (one.class_, one.role, one.severity, tuple(map(str, one.suspects))): one.count
        for one in postmortem.findings
    }
    return {("isolate", *(one.host for one in postmortem.isolate)): 0, **told}


def test_a_flood_leads_to_the_findings_that_reading_each_line_does() -> None:
    text = log(7, 6_000, hosts=40)
    brief, full = findings(read(text, brief=True)), findings(read(text, brief=False))
    assert len(full) > 4
    assert brief == full


def test_a_flood_is_counted_to_the_last_line() -> None:
    hosts = 3 * PER_FORM
    lines = [
        f"c{host % hosts}:71:9 [0] NCCL WARN Cuda failure 2 'out of memory'\n-\n"
        for host in range(12 * hosts)
    ]
    evidence = read(FILLER + "".join(lines) + FILLER, brief=True)
    same = [event for event in evidence.events if event.class_name == "cuda_out_of_memory"]
    assert len(same) == PER_FORM
    # Of what is counted without a look, up to a sample's worth is not counted yet at the end.
    assert 0 <= len(lines) - sum(event.count for event in same) <= shapes.MOST_SKIPPED
    assert len(evidence.hosts) == hosts


@settings(max_examples=60)
@given(st.lists(st.one_of(st.sampled_from(MESSAGES), st.text(max_size=60)), max_size=12), st.data())
def test_any_cut_and_any_bytes_are_read(parts: list[str], data: st.DataObject) -> None:
    text = "\n".join(part.replace("{", "<").replace("}", ">") for part in parts).encode()
    noise = data.draw(st.binary(max_size=20))
    cut = data.draw(st.integers(0, len(text)))
    for brief in (True, False):
        reader = LogReader("log", brief=brief)
        selection = Selection(reader, every_line=not brief, size=len(text))
        for block in blocks(io.BytesIO(text[:cut] + noise + text[cut:])):
            selection.read(block)
        reader.finish()


def test_a_flood_hides_no_message_of_another_class() -> None:
    form = (
        "c{h}:71:9 [0] NCCL WARN NET/IB : Got completion from peer 10.9.8.7<4000> with status={s}"
        " opcode=0 len=0 vendor err 129 (Recv)\n-\n"
    )
    flood = "".join(form.format(h=n % 700, s=5) for n in range(6000))
    evidence = read(FILLER + flood + form.format(h=3, s=12) + flood + FILLER, brief=True)
    counts: dict[str, int] = {}
    for event in evidence.events:
        counts[event.class_name] = counts.get(event.class_name, 0) + event.count
    assert counts == {"ib_flush_error": 12_000, "ib_completion_error": 1}
