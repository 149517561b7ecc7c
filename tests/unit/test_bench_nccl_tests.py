"""What comes back from rank 0: text, the report, and how it ended."""

import base64
import json
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from ncdiag.cluster.launch import Launch
from ncdiag.cluster.launcher import LauncherOptions
from ncdiag.cluster.launchers.local import LocalLauncher
from ncdiag.cluster.processes import Ended
from ncdiag.expect.traffic import Collective
from ncdiag.measure.bench import nccl_tests
from ncdiag.measure.bench.base import BenchPlan
from ncdiag.measure.bench.nccl_tests import End, NcclTestsBench, _whose_table, gpus_of_each, split
from ncdiag.measure.bench.sizes import parse_sizes
from ncdiag.measure.bench.wrapped import END_MARK, REPORT_MARK, _argv, _lines_of, unpack
from ncdiag.model.benchmark import Benchmark, TableRank
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Gpu, Host, HostFacts
from ncdiag.model.place import Place


def test_text_report_and_end_are_told_apart() -> None:
    packed = base64.b64encode(zlib.compress(b'{"version": 3}')).decode()
    end = json.dumps({"host": "h1", "code": 7})
    lines = ("# nThread 1", f"{REPORT_MARK}{packed[:8]}", " 8 2", f"{REPORT_MARK}{packed[8:]}")
    stdout = "\n".join((*lines, f"{END_MARK}{end}", ""))
    text, ended, report = split(stdout.encode())
    assert report == b'{"version": 3}'
    assert ended
    assert (ended.host, ended.code) == ("h1", 7)
    assert [line for line in text.splitlines() if line] == [b"# nThread 1", b" 8 2"]


def test_labels_that_a_launcher_puts_before_lines_do_no_harm() -> None:
    end = json.dumps({"host": "h1", "error": "not there"})
    _, ended, _ = split(f"0: {END_MARK}{end}\n".encode())
    assert ended
    assert ended.error == "not there"


def test_a_damaged_end_is_none() -> None:
    assert split(f"{END_MARK}{{".encode())[1] is None


@pytest.mark.parametrize("damage", [["!"], ["AAAA"], []])
def test_a_damaged_report_is_empty(damage: list[str]) -> None:
    assert unpack(damage) == b""


def test_a_report_that_was_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    numbers = list(range(20_000))
    file.write_text(json.dumps({"results": numbers}))
    lines = list(_lines_of(file))
    assert len(lines) > 4
    whole, part = unpack(lines), unpack(lines[:-2])
    assert json.loads(whole)["results"] == numbers
    assert part
    assert whole.startswith(part)


def test_the_environment_in_a_report_stays_on_its_host(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"version": 3, "env": ["TOKEN=secret"], "results": []}))
    assert json.loads(unpack(list(_lines_of(file)))) == {"version": 3, "results": []}
    assert list(_lines_of(tmp_path / "none.json")) == []


def test_options_that_a_version_does_not_know_are_left_out() -> None:
    job = {"arguments": ["-b", "8"], "optional": [("T", "30"), ("a", "3"), ("I", "1")]}
    known = frozenset("bTaJ")
    assert _argv(job, "/x", known, "r.json") == [
        *("/x", "-b", "8", "-T", "30", "-a", "3", "-J", "r.json")
    ]
    assert _argv(job, "/x", frozenset("b"), "r.json") == ["/x", "-b", "8"]


def test_what_a_launcher_says_of_the_rank_that_failed_is_the_reason() -> None:
    said = [
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "=   PID 4242 RUNNING AT h3",
        "=   EXIT CODE: 9",
        "[mpiexec@vm] main (mpiexec.c:270): process manager error waiting for completion",
    ]
    why = nccl_tests._last_reason(said)
    assert why is not None
    assert why.startswith("a rank on h3 ended first, with exit code 9 (killed")
    # Hydra says it on its standard output.
    assert nccl_tests._last_reason(said[3:], "\n".join(said[:3])) == why
    assert nccl_tests._last_reason([*said[:1], "srun: error: h2: Node failure", ""]) == (
        "srun: error: h2: Node failure"
    )
    assert nccl_tests._last_reason(["", "===="]) is None


def test_a_flood_of_output_hides_neither_report_nor_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_tests, "_MAX_TEXT_BYTES", 100)
    heard = nccl_tests.Heard()
    for line in (*[b"NCCL INFO and so on"] * 50, REPORT_MARK.encode() + b"x", END_MARK.encode()):
        heard.add(line)
    assert heard.cut
    assert heard.stdout.count(b"INFO") == 5
    assert heard.stdout.splitlines()[-2:] == [REPORT_MARK.encode() + b"x", END_MARK.encode()]


def facts(gpus: int) -> HostFacts:
    return HostFacts(hostname="h", gpus=tuple(Gpu(index=n, name="H100") for n in range(gpus)))


def test_every_host_has_as_many_ranks_as_the_poorest_has_gpus() -> None:
    hosts = [Host(name=name, address=name) for name in ("a", "b", "c")]
    assert gpus_of_each(hosts, {"a": facts(8), "b": facts(4)}) == 4
    told = [Host(name="a", address="a", gpus=2)]
    assert gpus_of_each(told, {"a": facts(0)}) == 2


def test_a_host_without_gpus_is_named() -> None:
    hosts = [Host(name=name, address=name) for name in ("a", "b")]
    with pytest.raises(UndecidedError, match="found on b"):
        gpus_of_each(hosts, {"a": facts(8), "b": facts(0)})


def test_a_report_cut_where_the_program_died_is_not_sent_with_its_environment(
    tmp_path: Path,
) -> None:
    file = tmp_path / "report.json"
    for cut in ('{"version": 3, "env": ["TOKEN=secret"], "resu', '["TOKEN=secret"]', "[" * 100_000):
        file.write_text(cut)
        assert list(_lines_of(file)) == []


def table(ranks: int) -> Benchmark:
    listed = [TableRank(n, f"h{n}", "1", "0", "", "") for n in range(ranks)]
    return Benchmark(place=Place("x", 1), ranks=listed, complete=True)


def test_the_error_of_the_program_is_told_before_the_number_of_ranks() -> None:
    error = "h1: Invalid number of GPUs: 9 requested but only 8 were found"
    assert _whose_table([], table(12), 32, error) == f"{error} (it ran on 12 ranks, not on 32)"
    assert _whose_table([], table(12), 32, None) == "it ran on 12 ranks, not on 32"
    assert "built without MPI" in (_whose_table([], table(1), 32, error) or "")
    assert _whose_table([], table(32), 32, error) is None


def test_a_rank_that_failed_beside_a_whole_table_is_no_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nccl_tests, "choose_starter", lambda _: SimpleNamespace(name="hydra"))
    plan = BenchPlan(collective=Collective.ALL_REDUCE)
    bench = NcclTestsBench([], LocalLauncher(LauncherOptions(python="python")), plan)
    launch = Launch(argv=("mpiexec",), hosts=())
    end = End(host="h1", code=0)

    def error(code: int, *said: str) -> str | None:
        ended = Ended(launch=launch, code=code, said=said)
        return bench._error(ended, end, table(2), b"")

    assert error(0) is None
    assert error(127) == "a rank failed: exit code 127 of hydra"
    said = ("=   PID 4242 RUNNING AT h3", "=   EXIT CODE: 127")
    assert error(127, *said) == "a rank failed: a rank on h3 ended first, with exit code 127"


@pytest.mark.parametrize("text", ["1:999999T:2", "2T"])
def test_sizes_that_no_gpu_holds_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="1 TiB at most"):
        parse_sizes(text)
