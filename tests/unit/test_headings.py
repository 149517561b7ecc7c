"""Hosts that a heading names for the lines below it."""

from collections.abc import Sequence

import pytest

from ncdiag.read.log_reader import LogReader

FAULT = (
    "[  51.250000] NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=demo, GPU has fallen off the bus."
)
RULE = "-" * 16


def hosts(*lines: str, brief: bool = False) -> list[str | None]:
    """The hosts that the faults in ``lines`` are said to be on."""
    reader = LogReader("a.log", brief=brief)
    wanted: Sequence[bytes] = sorted(reader.needles | reader.facts)
    for number, line in enumerate(lines, 1):
        raw = line.encode()
        reader.take(raw, number, tuple(needle for needle in wanted if needle in raw))
    return [event.speaker.host for event in reader.finish().events]


@pytest.mark.parametrize(
    "heading",
    [
        [RULE, "vq-07", RULE],
        ["-" * 15, "vq-07", "-" * 15],
        [RULE, "vq-[01-06]", RULE, "all is well", RULE, "vq-07", RULE, "something else"],
        ["vq-07 | CHANGED | rc=0 >>"],
        ["vq-07 | SUCCESS | rc=0 >>"],
        ["vq-06 | UNREACHABLE! => {", "}", "vq-07 | FAILED | rc=2 >>"],
    ],
)
def test_the_lines_of_a_block_are_of_the_host_above_them(heading: list[str]) -> None:
    assert hosts(*heading, FAULT) == ["vq-07"]


@pytest.mark.parametrize(
    "heading",
    [
        [RULE, "vq-[07-08]", RULE],
        [RULE, "vq-07 vq-08", RULE],
        [RULE, "Failures:", RULE],
        [RULE, "summary", RULE],
        [RULE, "demo7.py", RULE],
        [RULE, "10.4.0.7", RULE],
        ["-" * 60, "vq-07", "-" * 60],
        [RULE, "vq-07"],
        [RULE, "vq-07", "and more", RULE],
        ["==> vq-07 <=="],
        ["### vq-07 ###"],
        ["10.4.0.7 | CHANGED | rc=0 >>"],
        [RULE, "vq-07", RULE, "text", RULE, "vq-[08-09]", RULE],
        ["vq-07 | CHANGED | rc=0 >>", "10.4.0.8 | CHANGED | rc=0 >>"],
    ],
)
def test_other_words_between_rules_name_no_host(heading: list[str]) -> None:
    assert hosts(*heading, FAULT) == [None]


def test_a_line_that_names_its_host_is_of_that() -> None:
    named = f"Mar  4 01:02:03 vq-09 kernel: {FAULT}"
    assert hosts(RULE, "vq-07", RULE, named) == ["vq-09"]


def test_where_lines_are_left_out_headings_prove_nothing() -> None:
    assert hosts(RULE, "vq-07", RULE, FAULT, brief=True) == [None]


KERNEL = "NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=demo, GPU has fallen off the bus."
PROMPT = "[demo@head ~]$"


@pytest.mark.parametrize("fault", [FAULT, KERNEL, f"[Mon Jun  1 01:02:03 2026] {KERNEL}"])
@pytest.mark.parametrize(
    "banner",
    [
        "== dmesg vq-07 (10.4.0.7) ==",
        "--- vq-07 dmesg ---",
        "--- journalctl -k -o short-iso on vq-07 (10.4.0.7) ---",
        "### vq-07: dmesg ###",
        "### vq-07: dmesg",
        "=== kernel log of vq-07 (mlx5_0, gpu3) ===",
        "==> logs/vq-07.dmesg <==",
        "==> /srv/kept/dmesg-vq-07.txt <==",
        "==> logs/vq-07/dmesg <==",
        "==> vq-07.log <==",
        "$ ssh vq-07 dmesg -T | grep Xid",
        f"{PROMPT} ssh vq-07 'dmesg -T | tail'",
        f"{PROMPT} ssh -q -o BatchMode=yes root@vq-07 sudo dmesg",
        f"{PROMPT} pdsh -w vq-07 dmesg",
        "root@vq-07:~# dmesg -H",
        "[root@vq-07 ~]# journalctl -k",
    ],
)
def test_a_kernels_lines_are_of_the_host_that_a_banner_names(banner: str, fault: str) -> None:
    assert hosts(banner, "", fault) == ["vq-07"]
    assert hosts(banner, fault, "some words", fault, brief=True) == [None]


@pytest.mark.parametrize(
    "banner",
    [
        "== vq-07 ==",
        "== dmesg ==",
        "== dmesg of vq-07 and vq-08 ==",
        "== dmesg of rank3 ==",
        "== dmesg of an H100 ==",
        "== dmesg of mlx5_0 ==",
        "== dmesg of attempt-2 ==",
        "==> vq-07 <==",
        "==> vq-07.out <==",
        "==> rank3.log <==",
        "==> logs/slurm-1207.log <==",
        "$ ssh vq-07 cat /var/log/demo",
        "$ ssh vq-[07-08] dmesg",
        "$ pdsh -w vq-07,vq-08 dmesg",
        "$ dmesg -T",
        "[root@vq-07 ~]# dmesg -F /tmp/other",
        "[root@vq-07 ~]# journalctl -D /mnt/other",
        "[root@vq-07 ~]# cat kept.txt",
        "vq-07 dmesg",
    ],
)
def test_other_banners_name_no_host(banner: str) -> None:
    assert hosts(banner, FAULT) == [None]


@pytest.mark.parametrize(
    "end",
    [
        "== summary ==",
        "==> job.log <==",
        "$ cat job.log",
        f"{PROMPT} exit",
        "rack2-n7:42:50 [3] misc/demo.cc:8 NCCL WARN made up for a test",
        "[rank3]: made up for a test",
        "Mar  4 01:02:03 vq-09 kernel: made up for a test",
        "vq-08 | CHANGED | rc=0 >>",
    ],
)
def test_a_banner_is_past_where_another_or_a_job_begins(end: str) -> None:
    first, *others = hosts("== dmesg vq-07 ==", FAULT, end, FAULT.replace("3b", "4c"))
    assert first == "vq-07"
    assert "vq-07" not in others


def test_a_file_of_no_kernels_log_is_no_hosts() -> None:
    assert hosts("==> vq-07.log <==", "step 7 done", FAULT) == [None]


def test_what_a_kernel_log_prints_like_a_banner_does_not_end_it() -> None:
    cut = ["------------[ cut here ]------------", "---[ end trace 00 ]---", "-- Reboot --"]
    assert hosts("== dmesg vq-07 ==", *cut, FAULT) == ["vq-07"]


def test_a_jobs_own_lines_are_not_of_the_host_in_a_banner() -> None:
    error = "RuntimeError: CUDA error: an illegal memory access was encountered"
    assert hosts("== dmesg vq-07 ==", FAULT, error) == ["vq-07", None]


@pytest.mark.parametrize("fault", [FAULT, f"Mar  4 01:02:03 vq-07 kernel: {KERNEL}"])
def test_an_address_in_a_banner_is_its_hosts(fault: str) -> None:
    reader = LogReader("a.log")
    wanted: Sequence[bytes] = sorted(reader.needles | reader.facts)
    for number, line in enumerate(("== dmesg vq-07 (10.4.0.7) ==", fault), 1):
        raw = line.encode()
        reader.take(raw, number, tuple(needle for needle in wanted if needle in raw))
    (event,) = reader.finish().events
    assert (event.speaker.host, event.speaker.address) == ("vq-07", "10.4.0.7")
