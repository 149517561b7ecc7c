import base64
import random
import zlib

import pytest

from ncdiag.cluster import answers
from ncdiag.cluster.answers import Answers, encode_answer


def data(host: str) -> bytes:
    return random.Random(host).randbytes(3000)


def test_answers_of_many_hosts_come_together_in_whatever_order_their_lines_come() -> None:
    told = {name: data(name) for name in ("h1", "h2", "h10")}
    lines = [line for name, one in told.items() for line in encode_answer(name, one).splitlines()]
    assert len(lines) > len(told)
    random.Random(1).shuffle(lines)
    heard = Answers()
    assert dict(one for line in lines if (one := heard.hear(b"2: " + line))) == told


def test_a_host_can_answer_again() -> None:
    heard = Answers()
    lines = [*encode_answer("h1", b"one").splitlines(), *encode_answer("h1", b"two").splitlines()]
    assert [heard.hear(line) for line in lines] == [("h1", b"one"), ("h1", b"two")]


def test_no_line_is_longer_than_what_slurm_passes_on_whole() -> None:
    assert max(map(len, encode_answer("h" * 253, data("h")).splitlines())) < 1000


def test_what_else_is_printed_and_what_is_damaged_is_passed_over() -> None:
    heard = Answers()
    [first, *_] = encode_answer("h1", data("h1")).splitlines()
    cut = base64.b64encode(zlib.compress(b"all of it")[:-6])
    for line in (
        b"",
        b"hello",
        b"ncdiag-host: h1 1/1 !!!",
        b"ncdiag-host: h1 1/1 AAAA",
        b"ncdiag-host: h1 2/1 AAAA",
        b"ncdiag-host: h1 0/0 AAAA",
        b"ncdiag-host: h1 1/1 " + cut,
        b"ncdiag-host: h1 1/1 " + b"A" * 5000,
        first,
    ):
        assert heard.hear(line) is None


def test_a_small_answer_that_unpacks_to_gigabytes_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_BYTES", 1000)
    heard = Answers()
    assert heard.hear(encode_answer("h1", bytes(999)).rstrip()) == ("h1", bytes(999))
    assert heard.hear(encode_answer("h1", bytes(1002)).rstrip()) is None
