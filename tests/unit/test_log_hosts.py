"""Which lines prove that a host took part."""

import pytest

from ncdiag.read.log_reader import LogReader


@pytest.mark.parametrize(
    ("raw", "hosts"),
    [
        (b"[gq-12:5150:0:5150] Caught signal 11 (Segmentation fault: made up)", ["gq-12"]),
        (b"[1893456000.25] [gq-12:5150:0]   made_up.c:7   UCX  ERROR demo", ["gq-12"]),
        (b"[gq-12:5150:0] made up", []),
    ],
)
def test_ucx_speaks_for_its_host(raw: bytes, hosts: list[str]) -> None:
    reader = LogReader("a.log")
    reader.take(raw, 1, ())
    assert list(reader.finish().hosts) == hosts
