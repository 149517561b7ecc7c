"""What a host's RDMA ports carry from memory to memory of the same host, by perftest."""

import secrets
import time
from collections.abc import Sequence

import msgspec

from ncdiag.health.nics import find_nics
from ncdiag.measure.burn_in.messages import LocalFigure
from ncdiag.measure.engines.base import Timing
from ncdiag.measure.engines.perftest.commands import client_argv, planned_s, side_argv
from ncdiag.measure.engines.perftest.messages import (
    Build,
    ConnectTask,
    FinishTask,
    Served,
    ServeTask,
    Side,
)
from ncdiag.measure.engines.perftest.programs import UnusableError, find_build
from ncdiag.measure.engines.perftest.task import connect, finish, serve
from ncdiag.model.host import Nic

_PROGRAM = "ib_write_bw"
_HERE = "127.0.0.1"
_TIMING = Timing(warmup_s=0.0, measure_s=1.0)
_START_S = 5.0
_GRACE_S = 2.0


class LoopbackTask(msgspec.Struct, frozen=True):
    """Measure RDMA ports against themselves, with a profile's ``variables``.

    Those are measured that ``nics`` names, or all that are active where it names none, as long as
    ``limit_s`` allows.
    """

    variables: dict[str, str] = {}
    nics: tuple[str, ...] = ()
    limit_s: float = 60.0


class LoopbackAnswer(msgspec.Struct, frozen=True):
    """The figure of each port; ``skipped`` says why there is none at all."""

    figures: tuple[LocalFigure, ...] = ()
    problems: tuple[str, ...] = ()
    skipped: str | None = None


def measure(payload: bytes) -> bytes:
    """Measure the ports, one after the other (LoopbackTask to LoopbackAnswer)."""
    task = msgspec.json.decode(payload, type=LoopbackTask)
    end_s = time.monotonic() + task.limit_s
    ports = _ports(task.nics) or _ports(())
    if not ports:
        return msgspec.json.encode(LoopbackAnswer(skipped="no active RDMA port"))
    try:
        build = find_build(_PROGRAM, task.variables)
    except UnusableError as error:
        return msgspec.json.encode(LoopbackAnswer(skipped=str(error)))
    figures, problems, left_out = [], [], []
    for nic in ports:
        left_s = end_s - time.monotonic()
        if left_s < planned_s(_TIMING):
            left_out.append(nic.name)
            continue
        found = _port(nic, build, task.variables, left_s)
        if isinstance(found, str):
            problems.append(f"{nic.name}: {found}")
        else:
            figures.append(LocalFigure("loopback_gbit_per_s", found, nic.name))
    if left_out:
        problems.append(f"no time was left for {', '.join(left_out)}")
    return msgspec.json.encode(LoopbackAnswer(figures=tuple(figures), problems=tuple(problems)))


def _ports(names: Sequence[str]) -> list[Nic]:
    return [nic for nic in find_nics(names, None)[0] if nic.hca]


def _port(nic: Nic, build: Build, variables: dict[str, str], left_s: float) -> float | str:
    """Gbit/s over one port, or why there is no figure."""
    argv = side_argv(build, nic, _TIMING, variables, gpu_memory=False)
    deadline_s = min(planned_s(_TIMING) + _START_S, left_s)
    run_id = secrets.token_hex(8)
    question = ServeTask(
        run_id=run_id,
        nic=nic,
        argv=argv,
        variables=variables,
        start_s=min(_START_S, left_s),
        lifetime_s=_START_S + deadline_s + _GRACE_S,
    )
    served = msgspec.json.decode(serve(msgspec.json.encode(question)), type=Served)
    if served.problem:
        return served.problem
    try:
        asked = ConnectTask(
            nic=nic,
            argv=client_argv(argv, build, _HERE, served.port),
            variables=variables,
            deadline_s=deadline_s,
        )
        side = msgspec.json.decode(connect(msgspec.json.encode(asked)), type=Side)
    finally:
        finish(msgspec.json.encode(FinishTask(run_id=run_id, grace_s=_GRACE_S)))
    if side.figures is None:
        return side.problem or "it gave no figure"
    return side.figures.gbit_per_s
