"""``ncdiag doctor``: what can run here, and how to put right what cannot."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from itertools import groupby
from typing import Final

import ncdiag
from ncdiag.cli import options
from ncdiag.cluster import processes
from ncdiag.model.errors import ExitCode
from ncdiag.model.text import visible

SCHEMA: Final = "ncdiag/doctor/1"

# The slowest probe is the import of torch: 3 s alone, ten times that on a machine under load.
_TIMEOUT_S = 60.0
_LINE_CHARS = 160
_MAX_ANSWER_BYTES = 1 << 20
_HEADINGS: Final = {
    "launcher": "Launchers",
    "starter": "MPI starters",
    "engine": "Engines",
    "program": "Programs",
    "library": "Libraries",
}
# Where root's programs are, which are not on everybody's PATH.
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that ncdiag can use; ``reason`` says why it cannot be used, with the cure."""

    kind: str
    name: str
    available: bool
    needed_for: str
    version: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is called: how it tells its version, what for, and how to get it."""

    name: str
    version_options: tuple[str, ...]
    needed_for: str
    cure: str


# Without options: what tells no version without a configuration, a GPU or a device.
PROGRAMS: Final = (
    Program("ssh", ("-V",), "launcher ssh", "apt-get install openssh-client"),
    Program(
        "nvidia-smi",
        ("--query-gpu=name,driver_version", "--format=csv,noheader"),
        "GPUs",
        "install the NVIDIA driver",
    ),
    Program("srun", (), "launcher slurm", "apt-get install slurm-client"),
    Program(
        "kubectl",
        ("version", "--client"),
        "launcher kubernetes",
        "see https://kubernetes.io/docs/tasks/tools",
    ),
    Program("all_reduce_perf", (), "engine nccl-tests", "bin/build-nccl-tests"),
    Program("ib_write_bw", (), "engine perftest", "apt-get install perftest"),
    Program("ip", ("-V",), "bin/netlab", "apt-get install iproute2"),
    Program("tc", ("-V",), "bin/netlab", "apt-get install iproute2"),
    Program("sshd", (), "bin/netlab", "apt-get install openssh-server"),
    Program("iperf3", ("--version",), "tests", "apt-get install iperf3"),
    Program("promtool", ("--version",), "tests", "apt-get install prometheus"),
    Program("chromium", ("--version",), "tests", "apt-get install chromium"),
)

# What engines need beside what they look for themselves: a library of another name, a starter.
_ENGINE_LIBRARY: Final = {"mpi": "mpi4py"}
_ENGINES_STARTED_BY_MPI: Final = ("mpi",)

# Imported by a child process: native code can be installed and yet not load.
_IMPORTS: Final = {
    "torch": "import torch; print(torch.__version__, "
    "'with CUDA' if torch.cuda.is_available() else 'without CUDA: gloo')",
    "mpi4py": "import mpi4py, mpi4py.MPI; print(mpi4py.__version__)",
    "hyperscan": "import hyperscan; print(hyperscan.__version__)",
}


def doctor(
    *,
    output_format: options.Format = options.OutputFormat.TEXT,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Say what can run here, and how to put right what cannot.

    Exits with 0 when a sweep can run here, else with 1.
    """
    parts = examine()
    if output_format is options.OutputFormat.JSON:
        print(render_json(parts))  # noqa: T201 - the command's result
    else:
        _print_text(parts, no_color=no_color)
    return ExitCode.DONE if sweep_can_run(parts) else ExitCode.WRONG


def examine() -> list[Part]:
    """Every launcher, starter, engine, program and library, and the reason where it is unusable."""
    path = f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_PATH}"
    paths = {program.name: shutil.which(program.name, path=path) for program in PROGRAMS}
    probes: dict[str, Sequence[str]] = {
        name: (sys.executable, "-P", "-c", code) for name, code in _IMPORTS.items()
    }
    for program in PROGRAMS:
        found = paths[program.name]
        if found and program.version_options:
            probes[program.name] = (found, *program.version_options)
    answers = ask(probes, timeout_s=_TIMEOUT_S)
    libraries = [_library(requirement, answers) for requirement in _requirements()]
    starters = list(_starters())
    return [
        *_launchers(),
        *starters,
        *_engines(libraries, starters),
        *(_program(program, paths[program.name], answers) for program in PROGRAMS),
        *libraries,
    ]


def sweep_can_run(parts: Sequence[Part]) -> bool:
    """Whether there is a launcher and an engine, and no library of the core is missing."""
    usable = {part.kind for part in parts if part.available}
    core = all(part.available for part in parts if part.needed_for == "ncdiag")
    return core and {"launcher", "engine"} <= usable


def render_json(parts: Sequence[Part]) -> str:
    """The parts as one JSON document."""
    from ncdiag.model.json_text import encode

    document = {
        "schema": SCHEMA,
        "ncdiag": ncdiag.__version__,
        "python": platform.python_version(),
        "sweep": sweep_can_run(parts),
        "parts": parts,
    }
    return encode(document, indent=2).decode()


# --- parts ---


def _launchers() -> Iterator[Part]:
    from ncdiag.cluster.launchers import LAUNCHERS, LauncherOptions

    for name, make in LAUNCHERS.items():
        reason = make(LauncherOptions(python=sys.executable)).unavailable()
        yield Part(
            kind="launcher", name=name, available=not reason, needed_for="sweep", reason=reason
        )


def _starters() -> Iterator[Part]:
    """What starts MPI programs, each with the program that it would call."""
    from ncdiag.cluster.launchers import LauncherOptions
    from ncdiag.cluster.mpi import STARTERS, MpiProgram
    from ncdiag.model.host import Host

    here = [Host(name="localhost", address="localhost")]
    for name, make in STARTERS.items():
        starter = make(LauncherOptions(python=sys.executable))
        reason = starter.unavailable()
        called = None if reason else starter.launch(here, MpiProgram(argv=("true",))).argv[0]
        yield Part(
            kind="starter",
            name=name,
            available=not reason,
            needed_for="engines mpi and nccl-tests",
            version=called,
            reason=reason,
        )


def _engines(libraries: Sequence[Part], starters: Sequence[Part]) -> Iterator[Part]:
    """Each engine; one that needs a library is as good as that library is found to be."""
    from ncdiag.measure.engines import ENGINES

    found = {library.name: library for library in libraries}
    for name, engine in ENGINES.items():
        library = found.get(_ENGINE_LIBRARY.get(name, name))
        reason = engine.unavailable() or (library.reason if library else None)
        if name in _ENGINES_STARTED_BY_MPI and not any(one.available for one in starters):
            reason = reason or "there is nothing to start MPI programs with (see MPI starters)"
        yield Part(
            kind="engine",
            name=name,
            available=not reason,
            needed_for="sweep",
            version=library.version if library and not reason else None,
            reason=reason,
        )


def _program(program: Program, path: str | None, answers: Mapping[str, "Answer"]) -> Part:
    answer = answers.get(program.name, Answer(line=path or ""))
    reason = answer.failure if path else f"not found, needed for {program.needed_for}"
    return Part(
        kind="program",
        name=program.name,
        available=not reason,
        needed_for=program.needed_for,
        version=None if reason else answer.line,
        reason=f"{reason}; {program.cure}" if reason else None,
    )


def _library(requirement: "Requirement", answers: Mapping[str, "Answer"]) -> Part:
    version, reason = None, None
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        reason = "not installed"
    else:
        answer = answers.get(requirement.name, Answer(line=version))
        version, reason = answer.line or version, answer.failure
        if not reason and _numbers(version) < _numbers(requirement.at_least):
            reason = f"{version} is too old"
    wanted = f"{requirement.name}>={requirement.at_least}"
    return Part(
        kind="library",
        name=requirement.name,
        available=not reason,
        needed_for=requirement.needed_for,
        version=None if reason else version,
        reason=f"{reason}; {sys.executable} -m pip install '{wanted}'" if reason else None,
    )


@dataclass(frozen=True, slots=True)
class Requirement:
    """A library that ncdiag's own metadata names, with the lowest version it accepts."""

    name: str
    at_least: str
    needed_for: str


def _requirements() -> Iterator[Requirement]:
    """What the core needs, then what each extra adds; not what developers need."""
    pattern = re.compile(
        r"(?P<name>[\w.-]+)>=(?P<version>[\d.]+)(?:.*extra == ['\"](?P<extra>\w+))?"
    )
    for line in metadata.requires("ncdiag") or []:
        match = pattern.match(line)
        if match and match["extra"] != "dev":
            extra = match["extra"]
            yield Requirement(
                match["name"], match["version"], f"extra {extra}" if extra else "ncdiag"
            )


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])]


# --- probes ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a probing process said in its first line, or why it said nothing of use."""

    line: str = ""
    failure: str | None = None


def ask(commands: Mapping[str, Sequence[str]], *, timeout_s: float) -> dict[str, Answer]:
    """Run all commands at the same time; one that does not end in time is killed."""
    with ThreadPoolExecutor(max_workers=max(1, len(commands))) as threads:
        asked = {
            name: threads.submit(
                processes.ask, argv, timeout_s=timeout_s, most_bytes=_MAX_ANSWER_BYTES
            )
            for name, argv in commands.items()
        }
        return {name: _answer(one.result()) for name, one in asked.items()}


def _answer(ended: processes.Ended) -> Answer:
    if ended.code is None:
        return Answer(failure=f"cannot be started ({ended.error})")
    if ended.timed_out:
        return Answer(failure="gives no answer")
    said = [*ended.stdout.decode(errors="replace").splitlines(), *ended.said]
    lines = [line.strip() for line in said if line.strip()]
    shown = [visible(line[:_LINE_CHARS]) for line in lines]
    if ended.code == 0:
        return Answer(line=shown[0] if shown else "")
    # A traceback names its error in the last line, and programs say little else.
    return Answer(failure=f"fails ({shown[-1] if shown else f'exit code {ended.code}'})")


# --- text ---


def _print_text(parts: Sequence[Part], *, no_color: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from ncdiag.cli.console import results

    console = results(no_color=no_color)
    console.print(
        f"ncdiag {ncdiag.__version__}, Python {platform.python_version()} ({sys.executable})",
        soft_wrap=True,
    )
    told: set[str | None] = set()  # MPI's launchers lack what its starters lack
    for kind, group in groupby(parts, key=lambda part: part.kind):
        table = Table.grid(padding=(0, 2))
        for part in group:
            mark = Text("ok", "green") if part.available else Text("--", "yellow")
            why = "as above" if part.reason in told else part.reason
            told.add(part.reason)
            table.add_row(mark, part.name, part.version if part.available else why)
        console.print(f"\n{_HEADINGS[kind]}", style="bold")
        console.print(table)
    console.print()
    console.print(_conclusion(parts), style="bold")


def _conclusion(parts: Sequence[Part]) -> str:
    def usable(kind: str) -> str:
        return ", ".join(part.name for part in parts if part.kind == kind and part.available)

    if sweep_can_run(parts):
        return f"A sweep can run here (launcher {usable('launcher')}; engine {usable('engine')})."
    missing = [kind for kind in ("launcher", "engine") if not usable(kind)]
    lacking = f"no {' and no '.join(missing)}" if missing else "a library is missing"
    return f"No sweep can run here: {lacking} (see above)."
