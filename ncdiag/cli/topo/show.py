"""``ncdiag topo show``: one topology dump as a tree, a matrix of paths, JSON or a picture."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.topo.arguments import Live
from ncdiag.model.errors import ExitCode, NcdiagError, UsageError
from ncdiag.model.text import visible

if TYPE_CHECKING:
    from ncdiag.health.topology.pcie_links import PcieLinks
    from ncdiag.model.topology import Topology, TopologyFinding

_OUTPUT = "Output"

Dump = Annotated[
    str | None,
    typer.Argument(
        metavar="PATH",
        show_default=False,
        help="A topology dump, plain or compressed; - is standard input.",
    ),
]
Matrix = Annotated[
    bool,
    typer.Option("--matrix", help="Show the paths of each GPU to each GPU and adapter instead."),
]
AsNccl = Annotated[
    bool,
    typer.Option("--nccl", help="Show paths as NCCL sees them after its own rewriting."),
]
Svg = Annotated[
    Path | None,
    typer.Option(
        "--svg", metavar="FILE", rich_help_panel=_OUTPUT, help="Draw a picture, as vectors."
    ),
]
Png = Annotated[
    Path | None,
    typer.Option("--png", metavar="FILE", rich_help_panel=_OUTPUT, help="Draw a picture, as dots."),
]
Force = Annotated[
    bool, typer.Option("--force", rich_help_panel=_OUTPUT, help="Write over files that exist.")
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", rich_help_panel=_OUTPUT, help="Show all of what is long."),
]


def show(
    path: Dump = None,
    *,
    live: Live = None,
    matrix: Matrix = False,
    nccl: AsNccl = False,
    output_format: options.Format = options.OutputFormat.TEXT,
    svg: Svg = None,
    png: Png = None,
    force: Force = False,
    verbose: Verbose = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Show one topology dump: its devices, its links, and which adapters are near each GPU.

    The kind of dump is found from its content. The exit code is 0 whenever it could be read.
    """
    if (path is None) == (live is None):
        raise UsageError("name one dump, - for standard input, or --live with a tool")
    pictures = [(one, kind) for one, kind in ((svg, "svg"), (png, "png")) if one]
    _check_outputs([one for one, _ in pictures], path, force=force)
    # These read and judge, which --help has no use for.
    from ncdiag.cli.topo.reading import live_dump, read_dump
    from ncdiag.model.topology import Topology

    name = f"live:{live.value}" if live else path or ""
    dump = live_dump(live.value) if live else read_dump(name)
    if not isinstance(dump, Topology):
        return _show_links(name, dump, output_format, no_color=no_color)
    from ncdiag.diagnose.topology.check import check

    if matrix or nccl:
        from ncdiag.report.topology.text import check_paths_wanted

        check_paths_wanted(dump, nccl=nccl)
    findings = check(dump)
    failure = _draw(name, dump, findings, pictures)
    if output_format is options.OutputFormat.JSON:
        from ncdiag.report.topology import json_report

        console.write(json_report.render(dump, findings))
    else:
        from ncdiag.report.topology import text

        out = console.results(no_color=no_color)
        text.render(name, dump, findings, out, matrix=matrix, nccl=nccl, verbose=verbose)
    if failure:
        raise failure
    return ExitCode.DONE


def _show_links(
    name: str, links: "PcieLinks", output_format: options.OutputFormat, *, no_color: bool
) -> ExitCode:
    from ncdiag.report.topology import pcie

    if output_format is options.OutputFormat.JSON:
        console.write(pcie.render_json(links))
    else:
        pcie.render_text(name, links, console.results(no_color=no_color))
    return ExitCode.DONE


def _check_outputs(pictures: list[Path], read: str | None, *, force: bool) -> None:
    """Refuse before anything is read what could not be written after it."""
    if len({os.path.realpath(one) for one in pictures}) < len(pictures):
        raise UsageError(f"{visible(str(pictures[0]))} cannot hold both pictures; name two files")
    for one in pictures:
        called = visible(str(one))
        if str(one) in ("", ".", "-"):
            raise UsageError("a picture goes to a file; name one, such as --svg topology.svg")
        if one.is_dir():
            raise UsageError(f"{called} is a folder; name a file to write")
        if read and read != "-" and os.path.realpath(one) == os.path.realpath(read):
            raise UsageError(f"{called} is the dump to read; name another file to write")
        if os.path.lexists(one) and not force:
            raise UsageError(f"{called} is already there; name another file, or add --force")


def _draw(
    name: str,
    dump: "Topology",
    findings: "tuple[TopologyFinding, ...]",
    pictures: Sequence[tuple[Path, str]],
) -> NcdiagError | None:
    """Write the pictures; what fails is told after the results."""
    if not pictures:
        return None
    from ncdiag.report.topology import picture
    from ncdiag.report.write import write_file

    try:
        for path, kind in pictures:
            write_file(path, picture.render(name, dump, findings, kind))
    except NcdiagError as error:
        return error
    return None
