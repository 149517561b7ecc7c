"""The options that several commands share, each with its fixed name, its parser and its help."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from ncdiag.model.errors import UsageError
from ncdiag.model.units import parse_duration_s, parse_size_bytes

# Of each direction; measured with token buckets as links, where the error is then under 0.5 %.
WARMUP_S = 0.1
MEASURE_S = 0.4

_HOSTS = "Hosts and how to reach them"
_SLURM = "Slurm"
_KUBERNETES = "Kubernetes"
_MEASURING = "Measuring"
_OUTPUT = "Output"
_CLASSES = "What findings mean"


class OutputFormat(StrEnum):
    """How a command that lists things prints them."""

    TEXT = "text"
    JSON = "json"


class Rails(StrEnum):
    """How the rails of a pair of hosts are measured."""

    TURN = "turn"
    TOGETHER = "together"


class PairTest(StrEnum):
    """The program of nccl-tests that measures a pair."""

    SENDRECV = "sendrecv"
    ALL_REDUCE = "all_reduce"
    ALLTOALL = "alltoall"


class Perftest(StrEnum):
    """The program of perftest that measures a pair."""

    WRITE = "ib_write_bw"
    READ = "ib_read_bw"
    SEND = "ib_send_bw"


class Mode(StrEnum):
    """Which pairs a sweep measures."""

    FULL = "full"
    QUICK = "quick"


Number = TypeVar("Number", int, float)


def as_parameter(parse: Callable[[str], Number]) -> Callable[[str | Number], Number]:
    """A parser for typer, whose complaint names the option; a default is a number already."""

    def parser(value: str | Number) -> Number:
        if not isinstance(value, str):
            return value
        try:
            return parse(value)
        except UsageError as error:
            raise typer.BadParameter(f"{error}") from None

    return parser


def _parse_duration_above_zero_s(text: str) -> float:
    seconds = parse_duration_s(text)
    if seconds <= 0:
        raise UsageError(f"a duration must be above zero: {text!r}")
    return seconds


def parse_size_above_zero_bytes(text: str) -> int:
    """Bytes of ``8M`` or ``1G``, above zero; raises :class:`UsageError`."""
    size = parse_size_bytes(text)
    if size <= 0:
        raise UsageError(f"a size must be above zero: {text!r}")
    return size


def _parse_share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(f"{text!r} is no share of what is expected; above 0 and up to 1, as 0.8")
    return share


Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE|SET",
        rich_help_panel=_HOSTS,
        help="The hosts: a hosts file, else a node set such as gpu[001-128,130]; "
        "- is standard input. Inside a Slurm allocation it may be left out.",
    ),
]
Fabric = Annotated[
    str | None,
    typer.Option(
        "--fabric",
        metavar="FILE",
        rich_help_panel=_HOSTS,
        help="Where leaves and uplinks are read: ibnetdiscover, iblinkinfo, Slurm's topology.conf "
        "or topology.yaml. What the hosts file says of a host stands.",
    ),
]
TopologyDumps = Annotated[
    str | None,
    typer.Option(
        "--topology",
        metavar="DIR|FILE",
        rich_help_panel=_MEASURING,
        help="Take what NICs and slots should do from NCCL topology dumps: DIR/HOST.xml, or "
        "one file for all hosts alike.",
    ),
]
Launcher = Annotated[
    str,
    typer.Option(
        "--launcher",
        metavar="NAME",
        rich_help_panel=_HOSTS,
        help="How workers are started: ssh, local (loopback addresses only), or auto.",
    ),
]
SshOption = Annotated[
    list[str],
    typer.Option(
        "--ssh-option",
        metavar="OPTION",
        rich_help_panel=_HOSTS,
        help="Passed to ssh as one argument, such as -oPort=2222. Repeatable.",
    ),
]
RemotePython = Annotated[
    str | None,
    typer.Option(
        "--remote-python",
        metavar="PATH",
        rich_help_panel=_HOSTS,
        help="The Python that has ncdiag on each host (default: the path of this one).",
    ),
]
RemoteSetup = Annotated[
    str | None,
    typer.Option(
        "--remote-setup",
        metavar="FILE",
        rich_help_panel=_HOSTS,
        help="A shell file on each host, sourced before Python starts.",
    ),
]
DriverAddress = Annotated[
    str | None,
    typer.Option(
        "--driver-address",
        metavar="ADDRESS",
        rich_help_panel=_HOSTS,
        help="This machine's address as the hosts reach it (default: found by itself).",
    ),
]
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition",
        metavar="NAME",
        rich_help_panel=_SLURM,
        help="Slurm: the partition of an allocation of our own.",
    ),
]
Account = Annotated[
    str | None,
    typer.Option(
        "--account",
        metavar="NAME",
        rich_help_panel=_SLURM,
        help="Slurm: whom an allocation of our own is charged to.",
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="TIME",
        rich_help_panel=_SLURM,
        help="Slurm: the time limit of an allocation of our own, as 30 (minutes) or 1:00:00.",
    ),
]
SrunArgument = Annotated[
    list[str],
    typer.Option(
        "--srun-arg",
        metavar="ARG",
        rich_help_panel=_SLURM,
        help="Slurm: passed to srun, and to salloc where it knows it, as one argument; repeatable.",
    ),
]
ContainerImage = Annotated[
    str | None,
    typer.Option(
        "--container-image",
        metavar="IMAGE",
        rich_help_panel=_SLURM,
        help="Slurm with pyxis: the image that hosts are measured in.",
    ),
]
Selector = Annotated[
    str | None,
    typer.Option(
        "--selector",
        metavar="LABELS",
        rich_help_panel=_KUBERNETES,
        help="Kubernetes: the label selector of the pods that stand for hosts, one a node.",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        rich_help_panel=_KUBERNETES,
        help="Kubernetes: the namespace of the pods.",
    ),
]
KubeContext = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        rich_help_panel=_KUBERNETES,
        help="Kubernetes: the context of kubectl's configuration.",
    ),
]
Container = Annotated[
    str | None,
    typer.Option(
        "--container",
        metavar="NAME",
        rich_help_panel=_KUBERNETES,
        help="Kubernetes: the container within each pod.",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine", metavar="NAME", rich_help_panel=_MEASURING, help="What measures: torch."
    ),
]
NcclTestsDirectory = Annotated[
    str | None,
    typer.Option(
        "--nccl-tests-dir",
        metavar="DIR",
        rich_help_panel=_MEASURING,
        help="Where the programs of nccl-tests are on the hosts; else NCCL_TESTS_HOME, else PATH.",
    ),
]
PairTestOption = Annotated[
    PairTest,
    typer.Option(
        "--pair-test",
        rich_help_panel=_MEASURING,
        help="Engine nccl-tests: the program that measures a pair.",
    ),
]
PerftestOption = Annotated[
    Perftest,
    typer.Option(
        "--perftest",
        rich_help_panel=_MEASURING,
        help="Engine perftest: the program that measures a pair.",
    ),
]
RailsOption = Annotated[
    Rails,
    typer.Option(
        "--rails",
        rich_help_panel=_MEASURING,
        help="Measure the rails of a pair in turn, or together where the engine can.",
    ),
]
AtATime = Annotated[
    int,
    typer.Option(
        "--at-a-time",
        min=1,
        metavar="N",
        rich_help_panel=_MEASURING,
        help="Engines nccl-tests and perftest: pairs measured at the same time, at most.",
    ),
]
Record = Annotated[
    bool,
    typer.Option(
        "--record",
        rich_help_panel=_OUTPUT,
        help="Keep the result in the store, for ncdiag history.",
    ),
]
StoreFile = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        rich_help_panel=_OUTPUT,
        help="The store's file; default: in the user's data directory.",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME|FILE",
        rich_help_panel=_MEASURING,
        help="Environment profile for what measures; ncdiag env list names them.",
    ),
]
SweepMode = Annotated[
    Mode,
    typer.Option(
        "--mode",
        rich_help_panel=_MEASURING,
        help="full measures every pair; quick measures each host once, and suspects again.",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="DURATION",
        parser=as_parameter(parse_duration_s),
        rich_help_panel=_MEASURING,
        help="Stop in time, and say what was not measured: 90s, 10m, 2h.",
    ),
]
WarmupTime = Annotated[
    float,
    typer.Option(
        "--warmup-time",
        metavar="DURATION",
        parser=as_parameter(_parse_duration_above_zero_s),
        rich_help_panel=_MEASURING,
        show_default=False,
        help=f"How long a direction sends before it is measured (default: {WARMUP_S:g}s).",
    ),
]
MeasureTime = Annotated[
    float,
    typer.Option(
        "--measure-time",
        metavar="DURATION",
        parser=as_parameter(_parse_duration_above_zero_s),
        rich_help_panel=_MEASURING,
        show_default=False,
        help=f"How long a direction is measured (default: {MEASURE_S:g}s).",
    ),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        metavar="SIZE",
        parser=as_parameter(parse_size_above_zero_bytes),
        rich_help_panel=_MEASURING,
        help="Payload after which a direction ends before its time is up: 512M, 8G.",
    ),
]
FaultyBelow = Annotated[
    float,
    typer.Option(
        "--faulty-below",
        metavar="SHARE",
        parser=as_parameter(_parse_share),
        rich_help_panel=_MEASURING,
        help="A link below this share of its expectation is faulty.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        max=2**63 - 1,  # what a journal can hold
        rich_help_panel=_MEASURING,
        help="Decides who meets whom when, where that is left open.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        rich_help_panel=_MEASURING,
        help="Continue the interrupted sweep whose report directory this is.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        rich_help_panel=_MEASURING,
        help="Print the plan and the commands that would start the workers; start nothing.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        rich_help_panel=_OUTPUT,
        help="The report directory (default: a dated folder under reports/).",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", rich_help_panel=_OUTPUT, help="Write into a directory that is not empty."
    ),
]
Format = Annotated[
    OutputFormat,
    typer.Option("--format", rich_help_panel=_OUTPUT, help="What goes to standard output."),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", rich_help_panel=_OUTPUT, help="Say more about what is going on."),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", rich_help_panel=_OUTPUT, help="Say nothing but results and errors."),
]
NoColor = Annotated[
    bool,
    typer.Option("--no-color", rich_help_panel=_OUTPUT, help="Print without colours."),
]
Explain = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="CLASS",
        rich_help_panel=_CLASSES,
        help="Say what a class of finding means and how to act on it.",
    ),
]
ListClasses = Annotated[
    bool,
    typer.Option("--list-classes", rich_help_panel=_CLASSES, help="List all classes of findings."),
]


def refuse_changes(context: typer.Context, planned: Mapping[str, object]) -> None:
    """Refuse options of the command line that say something else than the sweep to resume.

    ``planned`` maps parameters to what was planned. Raises :class:`UsageError`.
    """
    for name, value in planned.items():
        given = context.params[name]
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and given != value:
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option} cannot change when a sweep is resumed (it is {value}); "
                "leave it out, or start a new sweep"
            )
