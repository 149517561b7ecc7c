"""A report of torchrun whose every line a logger of another program wrote."""

import pytest

from ncdiag.model.log import LogEvidence
from ncdiag.read.log_reader import LogReader

REPORT = """Traceback (most recent call last):
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
==================================
demo_job.py FAILED
----------------------------------
Failures:
[1]:
  time      : 2031-02-03_04:05:07
  host      : vk-52
  rank      : 12 (local_rank: 4)
  exitcode  : -15 (pid: 7713)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 7713
----------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2031-02-03_04:05:06
  host      : vk-52
  rank      : 11 (local_rank: 3)
  exitcode  : 7 (pid: 7712)
  error_file: <N/A>
  traceback : To enable traceback see: nowhere
=================================="""


def read(form: str) -> LogEvidence:
    reader = LogReader("a.log")
    for number, text in enumerate(REPORT.split("\n"), 1):
        raw = form.format(text).encode()
        reader.take(raw, number, tuple(n for n in reader.needles if n in raw))
    return reader.finish()


@pytest.mark.parametrize(
    "form",
    [
        "{}",
        "2031-02-03 04:05:09,120 INFO [pump-2] demo.app.Stream - {}",
        "2031-02-03T04:05:09.120Z [pump-2] ERROR demo.app.Stream - {}",
        'level=warn job=demo msg="{}"',
        'ts=2031-02-03T04:05:09Z level=warn caller="a b" message="{}"',
        'time="2031-02-03T04:05:09Z" level=warn msg="{}\\n"',
    ],
)
def test_a_report_under_any_logger_names_host_and_rank(form: str) -> None:
    told = [(f.host, f.rank, f.exitcode, f.first) for f in read(form).failures]
    assert told == [("vk-52", 12, "-15", False), ("vk-52", 11, "7", True)]


@pytest.mark.parametrize(
    "prefix", ["demo-pump-3 trainer ", "demo-7d9f6c5b48-x2v9k main ", "[rack-7] "]
)
def test_a_name_without_a_mark_is_taken_off_once_it_comes_again(prefix: str) -> None:
    told = [(f.host, f.rank) for f in read(f"{prefix}{{}}").failures]
    assert told == [("vk-52", 12), ("vk-52", 11)]
