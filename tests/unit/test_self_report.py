from ncdiag.cluster.answers import Answers
from ncdiag.health.self_report import SelfReport, decode_report, encode_report
from ncdiag.model.host import HostFacts


def report(host: str) -> SelfReport:
    return SelfReport(host=host, facts=HostFacts(hostname=host), nearest_gpu={"mlx5_0": 3})


def test_a_report_comes_out_as_it_went_in() -> None:
    heard = Answers()
    [answer] = [
        one for line in encode_report(report("h1")).splitlines() if (one := heard.hear(line))
    ]
    assert decode_report(*answer) == report("h1")


def test_neither_another_host_nor_something_else_is_a_report() -> None:
    heard = Answers()
    [answer] = [
        one for line in encode_report(report("h1")).splitlines() if (one := heard.hear(line))
    ]
    assert decode_report("h2", answer[1]) is None
    assert decode_report("h1", b"{}") is None
