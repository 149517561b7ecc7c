import random

from ncdiag.health.self_report import Reports, SelfReport, encode_report
from ncdiag.model.host import HostFacts


def report(host: str) -> SelfReport:
    return SelfReport(
        host=host, facts=HostFacts(hostname=host), nearest_gpu={f"mlx5_{n}": n for n in range(99)}
    )


def test_reports_of_many_hosts_come_together_in_whatever_order_their_lines_come() -> None:
    told = {name: report(name) for name in ("h1", "h2", "h10")}
    lines = [line for one in told.values() for line in encode_report(one).splitlines()]
    assert len(lines) > len(told)
    random.Random(1).shuffle(lines)
    heard = Reports()
    found = [one for line in lines if (one := heard.hear(b"2: " + line))]
    assert {one.host: one for one in found} == told


def test_no_line_is_longer_than_what_slurm_passes_on_whole() -> None:
    assert max(map(len, encode_report(report("h" * 253)).splitlines())) < 1000


def test_what_else_is_printed_and_what_is_damaged_is_passed_over() -> None:
    heard = Reports()
    [first, *_] = encode_report(report("h1")).splitlines()
    for line in (b"", b"hello", b"ncdiag-host: h1 1/1 !!!", b"ncdiag-host: h1 1/1 AAAA", first):
        assert heard.hear(line) is None
