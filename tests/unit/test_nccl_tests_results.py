"""What two ranks of nccl-tests said of a pair, made into measurements."""

import json
from collections.abc import Sequence

import pytest

from ncdiag.cluster.launchers import Launch
from ncdiag.cluster.processes import Ended
from ncdiag.measure.engines.base import Endpoint, PairOrder
from ncdiag.measure.engines.nccl_tests.results import measurements, silent_hosts
from ncdiag.measure.engines.nccl_tests.shape import Shape
from ncdiag.model.host import Nic, NicKind
from ncdiag.model.measurement import Measurement, Purpose

NIC = Nic(name="mlx5_0", kind=NicKind.INFINIBAND, hca="mlx5_0", hca_port=1)
ORDER = PairOrder(
    first=Endpoint("a", NIC), second=Endpoint("b", NIC), rail=2, round=5, purpose=Purpose.ROUND
)
SHAPE = Shape(size_bytes=64 << 20, iterations=10, warmups=1)
BYTES = SHAPE.timed_bytes("sendrecv")
HEAD = (
    "# nThread 1 nGpus 1 minBytes 33554432 maxBytes 67108864 step: 2(factor) warmup iters: 1 "
    "iters: 10 agg iters: 1 validation: 1 graph: 0"
)
TITLES = (
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong"
    "     time   algbw   busbw  #wrong"
)
SMALL = (
    "    33554432       8388608     float    none      -1   671.1   50.00   50.00       0"
    "    671.1   50.00   50.00     N/A"
)
LARGE = (
    "    67108864      16777216     float    none      -1  1342.2   50.00   50.00       0"
    "   2684.4   25.00   25.00     N/A"
)
FOOT = ("# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 12.5 ")
TABLE = (HEAD, TITLES, SMALL, LARGE, *FOOT)
FINE = {"code": 0, "seconds": 3.0, "idle": 0.8, "tx_bytes": 2 * BYTES, "rx_bytes": 2 * BYTES}


def said(
    first: dict[str, object] | None = FINE,
    second: dict[str, object] | None = FINE,
    *,
    table: Sequence[str] = TABLE,
    others: Sequence[str] = (),
    before: str = "",
) -> bytes:
    lines = [f"ncdiag-rank 0 out: {line}" for line in table]
    lines += others
    for rank, report in enumerate((first, second)):
        if report is not None:
            lines.append(f"ncdiag-rank {rank} end: {json.dumps(report)}")
    return "".join(f"{before}{line}\n" for line in lines).encode()


def ended(stdout: bytes, code: int | None = 0, **more: object) -> Ended:
    return Ended(
        launch=Launch(argv=("mpiexec",), hosts=("a", "b")), code=code, stdout=stdout, **more
    )  # type: ignore[arg-type]


def pair(stdout: bytes, code: int | None = 0, **more: object) -> tuple[Measurement, ...]:
    return measurements(ORDER, ended(stdout, code, **more), SHAPE, "sendrecv", "nccl-tests")


def error(stdout: bytes, code: int | None = 0, **more: object) -> str:
    first, second = pair(stdout, code, **more)
    assert first.error == second.error
    assert first.measured_gbit_per_s is None
    return first.error or ""


@pytest.mark.parametrize("before", ["", "[1] ", "host-b: ", "0: "])
def test_the_figure_is_the_median_of_the_plateau(before: str) -> None:
    for one in pair(said(before=before)):
        assert one.error is None
        assert one.measured_gbit_per_s == pytest.approx(400, rel=1e-3)
        assert one.min_gbit_per_s == pytest.approx(200, rel=1e-3)
        assert (one.bytes, one.rail, one.round) == (BYTES, 2, 5)
        assert one.idle == 0.8


def test_the_idle_share_is_that_of_the_busier_host() -> None:
    one, _ = pair(said(second={**FINE, "idle": 0.1}))
    assert one.idle == 0.1


@pytest.mark.parametrize("side", ["tx_bytes", "rx_bytes"])
def test_the_counters_must_account_for_the_bytes_both_ways(side: str) -> None:
    found = error(said(second={**FINE, side: BYTES // 10}))
    assert found == "did not cross mlx5_0 of b: its counters show 10 % of the payload"
    without = {key: value for key, value in FINE.items() if key != side}
    assert error(said(without)) == "a: the counters of mlx5_0 cannot be read"


@pytest.mark.parametrize("cut", range(len(TABLE) - 1))
def test_a_table_that_was_cut_is_no_figure(cut: int) -> None:
    assert error(said(table=TABLE[:cut])) == "a: the program printed no whole table of results"


def test_a_time_below_zero_leaves_nothing_of_its_table() -> None:
    damaged = SMALL.replace("   671.1   50.00   50.00     N/A", "  -671.1   50.00   50.00     N/A")
    assert damaged != SMALL
    table = (HEAD, TITLES, damaged, LARGE, *FOOT)
    assert error(said(table=table)) == "a: the program printed no whole table of results"


def test_wrong_data_tell_more_than_all_that_came_of_them() -> None:
    wrong = LARGE.replace("50.00       0", "50.00       3")
    table = (HEAD, TITLES, SMALL, wrong, "# Out of bounds values : 3 FAILED", FOOT[1])
    late = {**FINE, "code": 7, "tx_bytes": 0}
    assert error(said(late, late, table=table), 7) == (
        "wrong data between a and b: 3 wrong elements in messages of 67108864 bytes"
    )
    assert error(said(late, table=TABLE[:1])) == "wrong data between a and b, as the exit code says"


@pytest.mark.parametrize(
    "stdout",
    [
        said(table=(HEAD, TITLES, SMALL, LARGE.replace("50.00       0", "50.00       3"), *FOOT)),
        said(table=(HEAD, TITLES, SMALL, LARGE, "# Out of bounds values : 3 FAILED", FOOT[1])),
        said({**FINE, "code": 7}),
    ],
    ids=["wrong elements", "out of bounds", "exit code"],
)
def test_wrong_data_are_damage_in_both_directions_since_nobody_can_tell_which(
    stdout: bytes,
) -> None:
    assert [one.damaged for one in pair(stdout, 7)] == [True, True]


def test_nothing_else_that_fails_is_damage() -> None:
    for stdout in (
        said(),
        said(table=TABLE[:2]),
        said({**FINE, "tx_bytes": 0}),
        said({**FINE, "code": 1}),
        said({**FINE, "code": -9}, None),
        b"",
    ):
        assert [one.damaged for one in pair(stdout, 1)] == [False, False]


def test_slow_is_no_wrong_data_and_exit_codes_of_old_versions_are_not_either() -> None:
    assert error(said({**FINE, "code": 1}), 1) == "a: it failed, and did not say how"


def test_the_first_cause_is_told_not_the_end_of_the_peer_that_it_brought() -> None:
    died = {**FINE, "code": -9}
    why = "ncdiag-rank 1 out: b: Test CUDA failure common.cu:943 'out of memory'"
    found = error(said(died, {**FINE, "code": 2}, table=TABLE[:3], others=[why]), 2)
    assert found == "b: CUDA failed: out of memory"


def test_a_library_that_warns_tells_more_than_the_program() -> None:
    others = [
        "ncdiag-rank 1 log: b:7:9 [0] transport/net_ib.cc:295 NCCL WARN NET/IB : port error",
        "ncdiag-rank 1 out: b: Test NCCL failure common.cu:1005 'unhandled system error / '",
    ]
    found = error(said(second={**FINE, "code": 3}, table=TABLE[:3], others=others), 3)
    assert found == "b: NCCL failed: NET/IB : port error"


def test_a_rank_that_never_came_to_its_end_is_lost() -> None:
    stdout = said(second=None, table=TABLE[:3])
    assert error(stdout, 255).startswith("b was lost: worker ended")
    assert silent_hosts(ORDER, ended(stdout)) == {"b"}
    assert silent_hosts(ORDER, ended(said())) == set()


def test_a_command_that_could_not_start_anything_says_why() -> None:
    told = ("ssh: connect to host b port 22: Connection refused",)
    assert error(b"", 255, said=told) == "not started: refused: no sshd listens on port 22"
    assert error(b"", None, error="mpiexec: No such file or directory") == (
        "cannot start mpiexec: No such file or directory"
    )
    assert error(b"", -9, timed_out=True, seconds=80.0) == (
        "timed out after 80 s, and a and b said nothing"
    )
    assert error(b"", -9, stopped=True) == "stopped before it was done"


def test_control_characters_of_a_host_are_made_visible() -> None:
    bad = {**FINE, "error": "x\x1b[31mred\nline"}
    assert "\x1b" not in error(said(bad))
    assert "\n" not in error(said(bad))


@pytest.mark.parametrize(
    "junk", [b"\xff\xfe\x00", b"ncdiag-rank 0 end: {", b"ncdiag-rank 7 out: x"]
)
def test_whatever_else_is_printed_does_no_harm(junk: bytes) -> None:
    for one in pair(junk + b"\n" + said() + junk):
        assert one.error is None
