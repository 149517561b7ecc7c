"""A collective by a program of nccl-tests: one MPI launch over all hosts, a rank on each GPU."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from ncdiag.cluster.launchers import Launch, Launcher, RemoteJob
from ncdiag.cluster.mpi import MpiProgram, choose_starter
from ncdiag.cluster.processes import Ended, run
from ncdiag.health.self_report import MODULE as PROBED
from ncdiag.measure.bench.base import BenchPlan
from ncdiag.measure.bench.sizes import Sizes
from ncdiag.measure.bench.wrapped import END_MARK, MODULE, REPORT_MARK, unpack
from ncdiag.measure.engines.nccl_tests.programs import (
    BUILD_HINT,
    WRONG_DATA_CODE,
    program_of,
    why_ended,
)
from ncdiag.measure.engines.probe import probe
from ncdiag.model.bench import BenchRun
from ncdiag.model.benchmark import Benchmark
from ncdiag.model.errors import UndecidedError
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.text import visible
from ncdiag.model.units import format_bytes
from ncdiag.read.nccl_tests import read_report

DEFAULT_SIZES: Final = Sizes(8, 8 << 30, 2)
# The program's own time-out comes this much before ours, so that it can say where it hung.
_BEFORE_OURS_S: Final = 10.0
_MAX_REASON = 300
_INTERRUPTED = "interrupted"
# Of what the program prints besides its report; NCCL's own log can be any amount.
_MAX_TEXT_BYTES: Final = 16 << 20
_MAX_REPORT_BYTES: Final = 128 << 20
# What launchers print when what they started ends, or they do, which is no reason.
_NO_REASON = re.compile(
    r"^[=\s|]*$|CLEANING UP|BAD TERMINATION|IGNORE THE|YOUR APPLICATION TERMINATED|"
    r"^\[(?:mpiexec|proxy)\b|manual page|Fault tolerance"
)
# Hydra, of the rank that ended first.
_RANK_AT = re.compile(r"\bPID \d+ RUNNING AT (?P<host>\S+)")
_RANK_CODE = re.compile(r"\bEXIT CODE: (?P<code>\d+)")


class End(msgspec.Struct, frozen=True):
    """What rank 0 said at its end: the exit code of the program, or why there is none."""

    host: str = ""
    code: int | None = None
    error: str | None = None
    argv: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Heard:
    """What a run prints, line by line: the lines marked for us, and the first of all others."""

    def __init__(self) -> None:
        self.cut = False
        self._lines: list[bytes] = []
        self._bytes = {True: 0, False: 0}

    def add(self, line: bytes) -> None:
        """Keep ``line``, if there is room."""
        marked = REPORT_MARK.encode() in line or END_MARK.encode() in line
        self._bytes[marked] += len(line) + 1
        if self._bytes[marked] <= (_MAX_REPORT_BYTES if marked else _MAX_TEXT_BYTES):
            self._lines.append(line)
        else:
            self.cut = True

    @property
    def stdout(self) -> bytes:
        """All that was kept."""
        return b"\n".join(self._lines)


class NcclTestsBench:
    """Runs the program of the collective; every rank is a process of its own with one GPU."""

    name = "nccl-tests"
    compares = True
    first_module = PROBED

    def __init__(self, hosts: Sequence[Host], launcher: Launcher, plan: BenchPlan) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._launcher = launcher
        self._plan = plan
        self._starter = choose_starter(launcher)
        self._unreachable: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        self.partial: BenchRun | None = None
        self.sizes = plan.sizes or DEFAULT_SIZES
        self.ranks_per_host = plan.gpus_per_node or 0

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that did not answer."""
        return self._unreachable

    @property
    def versions(self) -> Mapping[str, str]:
        """What runs told of themselves."""
        return self._versions

    def start(self, on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        """Ask each host what it is: MPI has no partial start, so the others are left out."""
        found = probe(
            tuple(self._hosts.values()),
            self._launcher,
            on_change,
            driver_address=self._plan.driver_address,
        )
        self._unreachable.update(found.unreachable)
        facts = {name: report.facts for name, report in found.reports.items()}
        if facts and not self.ranks_per_host:
            self.ranks_per_host = gpus_of_each(list(self._hosts.values()), facts)
        return facts

    def run(self, hosts: Sequence[str]) -> BenchRun:
        """One launch over ``hosts``."""
        launch = self.job(hosts, self.ranks_per_host)
        heard = Heard()
        try:
            ended = run(launch, timeout_s=self._plan.timeout_s, on_line=heard.add)
        except KeyboardInterrupt:
            cut = Ended(launch=launch, code=None, error=_INTERRUPTED)
            self.partial = self._read(tuple(hosts), cut, heard)
            raise
        return self._read(tuple(hosts), ended, heard)

    def job(self, hosts: Sequence[str], ranks_per_host: int) -> Launch:
        """The MPI launch over ``hosts``."""
        program = self._program(ranks_per_host)
        return self._starter.launch([self._hosts[name] for name in hosts], program)

    def close(self) -> None:
        """Nothing runs between runs."""

    def _program(self, ranks_per_host: int) -> MpiProgram:
        plan, sizes = self._plan, self.sizes
        own_s = max(1, round(plan.timeout_s - _BEFORE_OURS_S))
        job = {
            "program": program_of(plan.collective),
            "folder": plan.nccl_tests_dir,
            "arguments": [
                *("-b", str(sizes.least_bytes), "-e", str(sizes.most_bytes)),
                *("-f", str(sizes.factor), "-g", "1", "-n", str(plan.iterations)),
                *("-w", "5", "-c", "1"),
            ],
            # What newer versions know: a time-out, the slowest process's time, each iteration's.
            "optional": [("T", str(own_s)), ("a", "3"), ("I", "1")],
            "variables": dict(plan.variables),
        }
        text = msgspec.json.encode(job).decode()
        argv = RemoteJob(module=MODULE).command(
            self._launcher.options, self._starter.rank_variable, text
        )
        return MpiProgram(argv=argv, ranks_per_host=ranks_per_host)

    def _read(self, hosts: tuple[str, ...], ended: Ended, heard: Heard) -> BenchRun:
        text, end, report = split(heard.stdout)
        ranks = len(hosts) * self.ranks_per_host
        runs = read_report(report, "report.json") if report else []
        printed = read_report(text, "stdout")
        benchmark = max([*runs, *printed], key=lambda one: len(one.rows), default=None)
        if benchmark and benchmark.library_version:
            self._versions["nccl"] = benchmark.library_version
        wrong = bool(benchmark and (benchmark.out_of_bounds or 0) > 0)
        error = self._error(ended, end, benchmark, text)
        if error is not None and heard.cut and not (benchmark and benchmark.rows):
            error = (
                f"it printed more than {format_bytes(_MAX_TEXT_BYTES)} before its results, which "
                "are not read then: switch NCCL_DEBUG off, or set NCCL_DEBUG_FILE"
            )
        if apart := _whose_table(printed, benchmark, ranks, error):
            error, benchmark, wrong = apart, None, False  # whatever it is, it is not this
        if error and not wrong and end and end.code == WRONG_DATA_CODE:
            wrong = error == why_ended(WRONG_DATA_CODE, [])
        if wrong and benchmark is not None and benchmark.complete:
            error = None
        return BenchRun(
            hosts=hosts,
            ranks_per_host=self.ranks_per_host,
            benchmark=benchmark,
            error=None if error is None else visible(error)[:_MAX_REASON],
            wrong_data=wrong,
        )

    def _error(
        self, ended: Ended, end: End | None, benchmark: Benchmark | None, text: bytes
    ) -> str | None:
        """Why the run gave nothing, or not all; ``None`` if all is well."""
        if ended.code is None:
            return _INTERRUPTED if ended.error == _INTERRUPTED else f"cannot start {ended.error}"
        if ended.timed_out:
            return f"it did not end within {self._plan.timeout_s:g} s (--timeout) and was killed"
        if end is not None and end.error:
            return f"{end.host}: {end.error}"
        lines = [*text.decode(errors="replace").splitlines(), *ended.said]
        if end is None or end.code is None:
            # The launcher's own code says nothing of the program.
            said = why_ended(0, lines) or _last_reason(ended.said, text.decode(errors="replace"))
            return f"{self._starter.name}: {said or f'it ended with exit code {ended.code}'}"
        why = why_ended(end.code, lines)
        if why is None and not (benchmark is not None and benchmark.complete):
            why = "it printed no result"
        if why is None and ended.code:  # the first rank ended well
            said = _last_reason(ended.said, text.decode(errors="replace"))
            why = f"a rank failed: {said or f'exit code {ended.code} of {self._starter.name}'}"
        return why


def gpus_of_each(hosts: Sequence[Host], facts: Mapping[str, HostFacts]) -> int:
    """How many GPUs of each host can take part: as many as the poorest has."""
    counts = {
        host.name: host.gpus or len(facts[host.name].gpus) for host in hosts if host.name in facts
    }
    poorest = min(counts, key=lambda name: counts[name])
    if not counts[poorest]:
        raise UndecidedError(
            f"no GPU was found on {visible(poorest)}: leave that host out, or say how many there "
            "are with --gpus-per-node or gpus= in the hosts file"
        )
    return counts[poorest]


def split(stdout: bytes) -> tuple[bytes, End | None, bytes]:
    """What the program printed, how it ended, and the report it wrote."""
    text: list[bytes] = []
    report: list[str] = []
    end = None
    for line in stdout.split(b"\n"):
        before, mark, after = line.partition(REPORT_MARK.encode())
        if mark:
            report.append(after.decode(errors="replace").strip())
            line = before  # noqa: PLW2901 - what another process printed before it
        before, mark, after = line.partition(END_MARK.encode())
        if mark:
            line = before  # noqa: PLW2901
            end = _end(after) or end
        text.append(line)
    return b"\n".join(text), end, unpack(report) if report else b""


def _end(data: bytes) -> End | None:
    try:
        return msgspec.json.decode(data, type=End)
    except msgspec.MsgspecError:
        return None


def _whose_table(
    printed: Sequence[Benchmark], benchmark: Benchmark | None, ranks: int, error: str | None
) -> str | None:
    """Why the results are not those of ``ranks`` ranks, if so; ``error`` is what else is wrong.

    Programs built without MPI run a test of its own on each rank.
    """
    told = len(benchmark.ranks) if benchmark else 0
    tables = sum(len(one.ranks) == 1 for one in printed)
    if ranks > 1 and (tables > 1 or told == 1):
        return (
            "it was built without MPI, so each rank ran a test of its own; build it with MPI: "
            f"{BUILD_HINT}"
        )
    if told and told != ranks:
        why = f"it ran on {told} ranks, not on {ranks}"
        return f"{error} ({why})" if error else why
    return None


def _last_reason(said: Sequence[str], printed: str = "") -> str | None:
    """What the launcher says of the rank that failed, else the last line that may be a reason.

    Hydra says the former on its standard output.
    """
    text = "\n".join((printed, *said))
    host, code = _RANK_AT.search(text), _RANK_CODE.search(text)
    if host and code:
        killed = " (killed, as by the kernel when memory runs out)" if code["code"] == "9" else ""
        return f"a rank on {host['host']} ended first, with exit code {code['code']}{killed}"
    return next((line.strip() for line in reversed(said) if not _NO_REASON.search(line)), None)
