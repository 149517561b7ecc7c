"""Options that say what is measured, and how."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ncdiag.cli.options.parsing import (
    as_parameter,
    parse_duration_above_zero_s,
    parse_share,
    parse_size_above_zero_bytes,
)
from ncdiag.model.errors import UsageError
from ncdiag.model.units import parse_duration_s

# Of each direction; measured with token buckets as links, where the error is then under 0.5 %.
WARMUP_S = 0.1
MEASURE_S = 0.4

_MEASURING = "Measuring"


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
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        rich_help_panel=_MEASURING,
        help="What measures: torch, mpi, nccl-tests or perftest.",
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
        parser=as_parameter(parse_duration_above_zero_s),
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
        parser=as_parameter(parse_duration_above_zero_s),
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
        parser=as_parameter(parse_share),
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


def is_given(context: typer.Context, name: str) -> bool:
    """Whether a parameter stands on the command line, and is no default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_changes(context: typer.Context, planned: Mapping[str, object]) -> None:
    """Refuse options of the command line that say something else than the sweep to resume.

    ``planned`` maps parameters to what was planned. Raises :class:`UsageError`.
    """
    for name, value in planned.items():
        if is_given(context, name) and context.params[name] != value:
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option} cannot change when a sweep is resumed (it is {value}); "
                "leave it out, or start a new sweep"
            )
