"""Names that mean one device."""

from typing import Any

import pytest

from ncdiag.diagnose.postmortem.classes import RULES, Blame
from ncdiag.diagnose.postmortem.devices import canonical, each_once


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("0000:43:00.0", "0000:43:00"),
        ("00000000:43:00.0", "0000:43:00"),
        ("43:00.0", "0000:43:00"),
        ("0000:AF:00", "0000:af:00"),
        ("nvme2n1", "nvme2"),
        ("nvme2n1p3", "nvme2"),
    ],
)
def test_two_names_of_one_device(name: str, other: str) -> None:
    assert canonical(name) == canonical(other)


@pytest.mark.parametrize(
    ("name", "other"),
    [("0000:43:00.1", "0000:43:00"), ("nvme2", "nvme21n1"), ("mlx5_1", "mlx5_10")],
)
def test_two_devices(name: str, other: str) -> None:
    assert canonical(name) != canonical(other)


def test_a_device_keeps_the_name_that_was_printed_first() -> None:
    assert each_once(["0000:43:00", "0000:43:00.0", "0000:44:00"]) == ["0000:43:00", "0000:44:00"]


def test_one_disk_under_two_names_is_one_fault(bench: Any, post: Any, names: Any) -> None:
    events = [bench.event("storage_error", "a", device=name) for name in ("nvme2", "nvme2n1")]
    assert names.classes(post(*events)) == ["storage_error"]


def test_a_gpu_is_suspected_once_and_as_one(bench: Any, post: Any) -> None:
    known = bench.communicator(0, 2, bus_id="43000")
    error = bench.event("pcie_error", "a", device="0000:43:00.0")
    suspects = post(error, processes=[bench.process("a", communicators=[known])])
    kinds = {one.name: one.kind for one in suspects.findings[0].suspects}
    assert kinds["0000:43:00.0"] == "gpu"


def test_a_bare_line_gives_way_to_the_record_right_after_it(bench: Any, post: Any) -> None:
    bare = bench.event("ofi_memory_registration", error="write error")
    record = bench.event(
        "ofi_memory_registration", "a", pid="7", rc="-22", error="Invalid argument"
    )
    assert post(bare, record).findings[0].attributes == {"rc": "-22", "error": "Invalid argument"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_lines_of_one_lost_gpu_publish_what_the_fuller_one_tells(
    bench: Any, post: Any, names: Any, order: Any
) -> None:
    told = ({"pci": "0000:9b:00.0"}, {"pci": "0000:9b:00", "xid": "79"})
    answer = post(*(bench.event("gpu_fell_off_bus", "a", **told[n]) for n in order))
    lost = names.of(answer, "gpu_fell_off_bus")
    assert (lost.attributes, lost.count) == (told[1], 2)
    assert names.suspects(lost) == ["0000:9b:00", "a"]


def test_the_xid_of_another_gpu_is_not_that_of_the_first(bench: Any, post: Any) -> None:
    first = bench.event("gpu_fell_off_bus", "a", pci="0000:9b:00.0")
    other = bench.event("gpu_fell_off_bus", "a", pci="0000:9c:00", xid="79")
    assert post(first, other).findings[0].attributes == {"pci": "0000:9b:00.0"}


@pytest.mark.parametrize(
    "class_", [str(c) for c, rule in RULES.items() if Blame.APPLICATION in rule.blame]
)
def test_no_name_is_suspected_as_two_kinds(bench: Any, post: Any, names: Any, class_: str) -> None:
    suspects = names.suspects(post(bench.event(class_, rank=3)).findings[0])
    assert len(suspects) == len(set(suspects))


def test_who_ran_out_of_gpu_memory_is_suspected_once(bench: Any, post: Any, names: Any) -> None:
    event = bench.event("cuda_out_of_memory", rank=3, error="CUDA out of memory")
    assert names.suspects(post(event).findings[0]) == ["GPU memory", "the program", "3"]
