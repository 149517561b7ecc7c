"""Lines that name themselves the echo of another, or the end that did not answer."""

import pytest
from told_postmortem import post


def roles(text: str) -> list[tuple[str, str]]:
    return [(str(each.class_), str(each.role)) for each in post(text).findings]


MEMORY = "(Worker_TP0 pid=9) torch.AcceleratorError: CUDA error: out of memory"
FRAMES = (
    '(APIServer pid=1) Traceback (most recent call last):\n(APIServer pid=1)   File "a.py", line 4'
)


@pytest.mark.parametrize(
    "last",
    [
        (
            "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause "
            "above. Failed core proc(s): {}"
        ),
        "RuntimeError: Engine process failed to start. See stack trace for the root cause.",
        (
            f"{FRAMES}\n(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
            "encountered an issue. See stack trace (above) for the root cause."
        ),
        f"{FRAMES}\n(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError",
        (
            f"{FRAMES}\n(APIServer pid=1) framework.errors_impl.UnknownError: Horovod has been "
            "shut down. This was caused by an exception on one of the ranks."
        ),
    ],
)
def test_an_exception_that_points_at_another_follows_from_it(last: str) -> None:
    assert roles(f"{MEMORY}\n{last}") == [
        ("cuda_out_of_memory", "root"),
        ("application_exception", "consequence"),
    ]


def test_an_exception_that_points_at_no_other_stands() -> None:
    told = roles(f"{MEMORY}\n(APIServer pid=1) RuntimeError: Engine core refused the request.")
    assert ("application_exception", "root") in told


def test_a_node_that_ray_gives_up_is_named() -> None:
    (finding,) = post(
        "(raylet, ip=10.8.0.4) The node with node id: 0a0b and address: 10.8.0.7 and node name: "
        "elm-7 has been marked dead because the detector has missed too many heartbeats from it.\n"
        "ray.exceptions.ActorDiedError: The actor died because its node has died. Node Id: 0a0b"
    ).findings
    assert finding.class_ == "process_died"
    assert [each.name for each in finding.suspects] == ["10.8.0.7"]


REQUEST = (
    "{host}:15:19 [0] NCCL WARN NET/OFI Request 0x7f0c completed with error. RC: 113. Error: 4126 "
    "({error}). Completed length: 0, Request: {{ dev: 1 }}"
)
DEAF = "Unresponsive receiver (reachable by EFA device but handshake failed)"


def suspects(*lines: str) -> list[str]:
    return [each.name for each in post("\n".join(lines)).findings[0].suspects]


def test_who_reports_a_deaf_receiver_is_not_accused() -> None:
    assert suspects(REQUEST.format(host="elm-1", error=DEAF)) == []


def test_the_receiver_is_accused_where_the_line_names_it() -> None:
    ends = " My EFA addr: fi_addr_efa://[fe80::1]:0:7 My host id: i-0aa1 Peer EFA addr: "
    ends += "fi_addr_efa://[fe80::2]:1:8 Peer host id: "
    assert suspects(REQUEST.format(host="elm-1", error=DEAF + ends + "i-0bb2")) == ["i-0bb2"]
    assert suspects(REQUEST.format(host="elm-1", error=DEAF + ends + "N/A")) == []


def test_who_finds_receivers_deaf_time_and_again_is_accused() -> None:
    lines = [REQUEST.format(host="elm-1", error=DEAF[:end]) for end in (len(DEAF), 21)]
    assert suspects(f"[2031-01-02 03:04:05] {lines[0]}", f"[2031-01-02 05:04:05] {lines[1]}") == [
        "elm-1"
    ]


def test_who_reports_a_fault_of_its_own_request_is_accused() -> None:
    assert suspects(REQUEST.format(host="elm-1", error="Invalid local key")) == ["elm-1"]
