"""``ncdiag stragglers``: slow ranks from the times of their iterations."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.model.errors import ExitCode

if TYPE_CHECKING:
    from ncdiag.cli.run_stragglers import Wishes

_TABLE = "The table"
_RULES = "The rules"


class Kind(StrEnum):
    """What was timed."""

    AUTO = "auto"
    COMPUTE = "compute"
    ITERATION = "iteration"
    COLLECTIVE = "collective"


class TableFormat(StrEnum):
    """What goes to standard output."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Times: CSV, JSON lines, or files and folders of NCCL Inspector; - is standard input.",
    ),
]
KindOption = Annotated[
    Kind,
    typer.Option(
        "--kind",
        rich_help_panel=_TABLE,
        help="What was timed: computing alone, whole iterations, or collectives (there the late "
        "rank shows the shortest). auto goes by the column's name.",
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="NAME", rich_help_panel=_TABLE, help="The column of times, of several."
    ),
]
Communicator = Annotated[
    str | None,
    typer.Option(
        "--communicator",
        metavar="ID",
        rich_help_panel=_TABLE,
        help="Inspector: the communicator to judge (default: the largest).",
    ),
]
MapOption = Annotated[
    Path | None,
    typer.Option(
        "--map",
        metavar="FILE",
        rich_help_panel=_TABLE,
        help="Where ranks run: a line a rank, 'rank host [gpu [group]]'.",
    ),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE|SET",
        rich_help_panel=_TABLE,
        help="The hosts in the order of their ranks, in place of --map; contacts nobody.",
    ),
]
RanksPerHost = Annotated[
    int,
    typer.Option(
        "--ranks-per-host",
        metavar="N",
        min=1,
        rich_help_panel=_TABLE,
        help="With --nodes: how many ranks a host has.",
    ),
]
PipelineStages = Annotated[
    int,
    typer.Option(
        "--pipeline-stages",
        metavar="N",
        min=1,
        rich_help_panel=_TABLE,
        help="Ranks are compared within their stage, of which each has an equal run of ranks.",
    ),
]
Skip = Annotated[
    int,
    typer.Option(
        "--skip",
        metavar="N",
        min=0,
        rich_help_panel=_TABLE,
        help="Leave out the first iterations, which warm up.",
    ),
]
FalseAlarms = Annotated[
    float,
    typer.Option(
        "--false-alarms",
        metavar="N",
        min=1e-6,
        max=1000.0,
        rich_help_panel=_RULES,
        help="How many healthy ranks of the table the robust rule may name on average.",
    ),
]
MedianFactor = Annotated[
    float,
    typer.Option(
        "--median-factor",
        metavar="X",
        min=1.05,
        rich_help_panel=_RULES,
        help="The other rule: ranks that take X times the median of their group.",
    ),
]
FormatOption = Annotated[
    TableFormat,
    typer.Option("--format", rich_help_panel="Output", help="What goes to standard output."),
]


def stragglers(
    *,
    paths: Paths,
    kind: KindOption = Kind.AUTO,
    column: Column = None,
    communicator: Communicator = None,
    rank_map: MapOption = None,
    nodes: Nodes = None,
    ranks_per_host: RanksPerHost = 8,
    pipeline_stages: PipelineStages = 1,
    skip: Skip = 0,
    false_alarms: FalseAlarms = 0.05,
    median_factor: MedianFactor = 1.5,
    output_format: FormatOption = TableFormat.TEXT,
    record: options.RecordEvidence = False,
    store: options.StoreFile = None,
    junit: options.Junit = None,
    events: options.Events = None,
    webhook: options.Webhook = None,
    webhook_always: options.WebhookAlways = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Name slow ranks from iteration times, and say how often that happens by chance.

    Two rules: so many times the median of like ranks, and out of line further than noise explains.
    Whole iterations in which every rank waits for the slowest are equal by construction: then it
    cannot be told, and the exit code is 3.
    """
    asked = locals()
    from ncdiag.cli import run_stragglers
    from ncdiag.cli.announcing import outlets
    from ncdiag.cli.keeping import check

    check(store, record=record)
    told = outlets(asked)
    wishes: Wishes = run_stragglers.Wishes(
        kind=kind.value,
        column=column,
        communicator=communicator,
        rank_map=rank_map,
        nodes=nodes,
        ranks_per_host=ranks_per_host,
        pipeline_stages=pipeline_stages,
        skip=skip,
        false_alarms=false_alarms,
        median_factor=median_factor,
    )
    found = run_stragglers.find(paths, wishes)
    run_stragglers.show(found, output_format.value, console.results(no_color=no_color))
    if record:
        run_stragglers.keep(found, store, quiet=quiet)
    told.announce(found.report)
    return found.report.verdict.exit_code
