"""``ncdiag expect``: the bandwidth that hardware should deliver, with its derivation."""

import os
from collections.abc import Callable
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ncdiag.cli import console, options
from ncdiag.cli.commands import MARKUP
from ncdiag.expect.traffic import Algorithm, Collective
from ncdiag.model.errors import ExitCode, NcdiagError, UsageError
from ncdiag.model.text import visible

if TYPE_CHECKING:
    from ncdiag.expect.collective import CollectiveExpectation
    from ncdiag.expect.machine import Machine
    from ncdiag.expect.pair import GpuPairExpectation, PairExpectation

_MACHINE = "The machine"
_WHAT_IF = "What is different"
_OUTPUT = "Output"

app = typer.Typer(
    name="expect",
    add_completion=False,
    rich_markup_mode=MARKUP,
    no_args_is_help=False,
    help="Derive the bandwidth that a path or a collective should reach.",
)


class AlgorithmChoice(StrEnum):
    """What ``--algo`` takes."""

    AUTO = "auto"
    RING = "ring"
    TREE = "tree"
    NVLS = "nvls"
    NVLSTREE = "nvlstree"
    SHARP = "sharp"
    COLLNET = "collnet"

    @property
    def algorithm(self) -> Algorithm | None:
        """The algorithm meant; ``None`` leaves the choice."""
        if self is AlgorithmChoice.AUTO:
            return None
        return Algorithm.SHARP if self is AlgorithmChoice.COLLNET else Algorithm(self.value)


Choice = TypeVar("Choice", bound=StrEnum)


def choice_of(kind: type[Choice]) -> Callable[[str], Choice]:
    """A parser for typer that takes a name in any case, with any of ``_``, ``-`` or nothing."""
    by_name = {_plain(one): one for one in kind}

    def parser(text: str) -> Choice:
        plain = _plain(text[:80])
        if plain in by_name:
            return by_name[plain]
        near = get_close_matches(plain, by_name, n=1)
        hint = f"did you mean {by_name[near[0]]}? " if near else ""
        raise typer.BadParameter(
            f"there is no {visible(text[:80])!r}; {hint}choose from {', '.join(kind)}"
        )

    return parser


def _plain(text: str) -> str:
    return text.strip().lower().replace("_", "").replace("-", "")


Hardware = Annotated[
    str | None,
    typer.Option(
        "--hardware",
        metavar="NAME",
        rich_help_panel=_MACHINE,
        help="A machine of the catalogue; ncdiag expect hardware lists them.",
    ),
]
Operation = Annotated[
    Collective,
    typer.Argument(
        metavar="NAME",
        parser=choice_of(Collective),
        help=f"The operation: {', '.join(Collective)}.",
    ),
]
Topo = Annotated[
    str | None,
    typer.Option(
        "--topo",
        metavar="FILE",
        rich_help_panel=_MACHINE,
        help="An NCCL topology dump of one host; - is standard input.",
    ),
]
NodeCount = Annotated[
    int,
    typer.Option(
        "--nodes", metavar="N", rich_help_panel=_MACHINE, help="How many such hosts take part."
    ),
]
GpusPerNode = Annotated[
    int | None,
    typer.Option(
        "--gpus-per-node",
        metavar="K",
        rich_help_panel=_MACHINE,
        help="How many GPUs of each host take part (default: all).",
    ),
]
Size = Annotated[
    int | None,
    typer.Option(
        "--size",
        metavar="SIZE",
        parser=options.as_parameter(options.parse_size_above_zero_bytes),
        help="Answer for messages of this size too, as nccl-tests counts it: 8M, 1G.",
    ),
]
Algo = Annotated[
    AlgorithmChoice,
    typer.Option(
        "--algo",
        metavar="NAME",
        parser=choice_of(AlgorithmChoice),
        rich_help_panel=_WHAT_IF,
        help="The algorithm, as NCCL_ALGO would force it: "
        f"{', '.join(AlgorithmChoice)}; auto is the best NCCL would weigh.",
    ),
]
NoGdr = Annotated[
    bool,
    typer.Option("--no-gdr", rich_help_panel=_WHAT_IF, help="Count without GPUDirect RDMA."),
]
NoNvls = Annotated[
    bool, typer.Option("--no-nvls", rich_help_panel=_WHAT_IF, help="Count without NVLink SHARP.")
]
NoPxn = Annotated[
    bool,
    typer.Option(
        "--no-pxn",
        rich_help_panel=_WHAT_IF,
        help="With --gpus on two hosts: count without the way through a neighbouring GPU.",
    ),
]
Mtu = Annotated[
    int | None,
    typer.Option(
        "--mtu",
        metavar="BYTES",
        rich_help_panel=_WHAT_IF,
        help="The path MTU of RDMA: 256 to 4096 (default: 4096).",
    ),
]
Png = Annotated[
    Path | None,
    typer.Option(
        "--png", metavar="FILE", rich_help_panel=_OUTPUT, help="Draw the curve over sizes."
    ),
]
Force = Annotated[
    bool, typer.Option("--force", rich_help_panel=_OUTPUT, help="Write over a file that exists.")
]
Dumps = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="A.xml [B.xml]",
        show_default=False,
        help="NCCL topology dumps of one or two hosts. One alone is taken for both ends.",
    ),
]
Gpus = Annotated[
    str | None,
    typer.Option(
        "--gpus",
        metavar="I,J",
        help="From GPU I to GPU J, which count from 0: of one host, or of two given hosts.",
    ),
]
BetweenHosts = Annotated[
    bool,
    typer.Option(
        "--between-hosts", help="With --gpus and one machine: they are on two hosts alike."
    ),
]
Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", show_default=False, help="Show this one, and where its figures are from."
    ),
]


@app.command()
def collective(
    name: Operation,
    *,
    topo: Topo = None,
    hardware: Hardware = None,
    nodes: NodeCount = 1,
    gpus_per_node: GpusPerNode = None,
    size: Size = None,
    algo: Algo = AlgorithmChoice.AUTO,
    no_gdr: NoGdr = False,
    no_nvls: NoNvls = False,
    mtu: Mtu = None,
    output_format: options.Format = options.OutputFormat.TEXT,
    png: Png = None,
    force: Force = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Derive what a collective should reach, as nccl-tests measures it.

    Says the bus bandwidth, what binds it and why, and time and bandwidth over sizes.
    """
    if (topo is None) == (hardware is None):
        raise UsageError("name the machine: either --hardware NAME or --topo FILE")
    if png is not None:
        _check_output(png, topo, force=force)
    from ncdiag.expect.collective import Conditions, expect_collective

    found = expect_collective(
        _machine(hardware) if hardware is not None else _machine_of_file(topo or ""),
        name,
        nodes,
        gpus_per_node=gpus_per_node,
        algorithm=algo.algorithm,
        conditions=Conditions(gdr=not no_gdr, nvls=not no_nvls, mtu_bytes=mtu),
    )
    failure = _draw(found, png)
    if output_format is options.OutputFormat.JSON:
        from ncdiag.report.expectation import json_report

        console.write(json_report.render_collective(found, size))
    else:
        from ncdiag.report.expectation import text

        text.render_collective(found, console.results(no_color=no_color), size)
    if failure:
        raise failure
    return ExitCode.DONE


@app.command()
def pair(
    dumps: Dumps = None,
    *,
    hardware: Hardware = None,
    gpus: Gpus = None,
    between_hosts: BetweenHosts = False,
    no_gdr: NoGdr = False,
    no_pxn: NoPxn = False,
    mtu: Mtu = None,
    output_format: options.Format = options.OutputFormat.TEXT,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Derive what two hosts, or two GPUs, should exchange.

    Two hosts: rail by rail from NIC to NIC, and all rails together. With --gpus: two GPUs of one
    host, or one of each host.
    """
    from ncdiag.expect.collective import Conditions
    from ncdiag.expect.pair import expect_far_gpus, expect_gpus, expect_hosts

    machines = [_machine_of_file(path) for path in dumps or ()]
    if hardware is not None:
        machines.append(_machine(hardware))
    if not 1 <= len(machines) <= 2:
        raise UsageError("name one machine or two: dumps, or --hardware NAME")
    conditions = Conditions(gdr=not no_gdr, mtu_bytes=mtu)
    source, target = machines[0], machines[-1]
    found: PairExpectation | GpuPairExpectation
    if gpus is None:
        if between_hosts or no_pxn:
            raise UsageError("--between-hosts and --no-pxn belong to --gpus I,J")
        found = expect_hosts(source, target, conditions=conditions)
    else:
        first, second = _two_gpus(gpus)
        if len(machines) == 2 or between_hosts:
            found = expect_far_gpus(
                source, target, first, second, pxn=not no_pxn, conditions=conditions
            )
        else:
            found = expect_gpus(source, first, second)
    _print_pair(found, output_format, no_color=no_color)
    return ExitCode.DONE


@app.command(name="hardware")
def hardware_command(
    name: Name = None,
    *,
    output_format: options.Format = options.OutputFormat.TEXT,
    no_color: options.NoColor = False,
) -> ExitCode:
    """List the machines of the catalogue, or one with the sources of its figures."""
    from ncdiag.expect.hardware import MACHINES

    machines = list(MACHINES.values()) if name is None else [_machine(name)]
    if output_format is options.OutputFormat.JSON:
        from ncdiag.report.expectation import json_report

        console.write(json_report.render_hardware(machines))
        return ExitCode.DONE
    from ncdiag.report.expectation import text

    out = console.results(no_color=no_color)
    if name is None:
        text.render_hardware(machines, out)
    else:
        text.render_sources(machines[0], out)
    return ExitCode.DONE


def _machine(name: str) -> "Machine":
    from ncdiag.expect.hardware import find_machine

    return find_machine(name)


def _machine_of_file(path: str) -> "Machine":
    from ncdiag.cli.topo.reading import read_dump
    from ncdiag.expect.machine_of_dump import machine_of_dump

    return machine_of_dump(read_dump(path), Path(path).name if path != "-" else "standard input")


def _two_gpus(text: str) -> tuple[int, int]:
    numbers = [part.strip() for part in text.split(",")]
    if len(numbers) != 2 or not all(
        one.isascii() and one.isdigit() and len(one) < 6 for one in numbers
    ):
        raise UsageError(f"--gpus takes two numbers, as 0,3; not {visible(text[:80])!r}")
    return int(numbers[0]), int(numbers[1])


def _print_pair(
    found: "PairExpectation | GpuPairExpectation",
    output_format: options.OutputFormat,
    *,
    no_color: bool,
) -> None:
    from ncdiag.expect.pair import PairExpectation
    from ncdiag.report.expectation import json_report, text

    out = console.results(no_color=no_color)
    as_json = output_format is options.OutputFormat.JSON
    if isinstance(found, PairExpectation):
        if as_json:
            console.write(json_report.render_hosts(found))
        else:
            text.render_hosts(found, out)
    elif as_json:
        console.write(json_report.render_gpus(found))
    else:
        text.render_gpus(found, out)


def _check_output(path: Path, read: str | None, *, force: bool) -> None:
    """Refuse before anything is worked out what could not be written after it."""
    called = visible(str(path))
    if path.is_dir():
        raise UsageError(f"{called} is a folder; name a file to write")
    if read and read != "-" and os.path.realpath(path) == os.path.realpath(read):
        raise UsageError(f"{called} is the dump to read; name another file to write")
    if os.path.lexists(path) and not force:
        raise UsageError(f"{called} is already there; name another file, or add --force")


def _draw(found: "CollectiveExpectation", path: Path | None) -> NcdiagError | None:
    """Write the picture; what fails is told after the results."""
    if path is None:
        return None
    from ncdiag.report.expectation import picture
    from ncdiag.report.write import write_file

    try:
        write_file(path, picture.render(found))
    except NcdiagError as error:
        return error
    return None
