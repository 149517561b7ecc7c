"""``ncdiag parse-log``: the post-mortem of logs."""

import gc
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.model.errors import ExitCode, NcdiagError, UsageError
from ncdiag.model.finding import Postmortem
from ncdiag.model.log import LogEvidence
from ncdiag.model.text import visible

MAX_BYTES = 1 << 40
_GLOB = frozenset("*?[")

_READING = "Reading"
_OUTPUT = "Output"

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        show_default=False,
        help="Logs, folders of logs, or patterns; plain or compressed. - is standard input.",
    ),
]
Ras = Annotated[
    str | None,
    typer.Option(
        "--ras",
        metavar="HOST[:PORT]",
        rich_help_panel=_READING,
        help="Ask the RAS service of a running job there (port 28028 unless given).",
    ),
]
HostsFile = Annotated[
    Path | None,
    typer.Option(
        "--hosts",
        metavar="FILE",
        rich_help_panel=_READING,
        help="A hosts file whose address= turns addresses into names. Contacts nobody.",
    ),
]
MaxBytes = Annotated[
    int,
    typer.Option(
        "--max-bytes",
        metavar="SIZE",
        parser=options.as_parameter(options.parse_size_above_zero_bytes),
        rich_help_panel=_READING,
        show_default=False,
        help="Stop reading an input after so many bytes of text (default: 1T).",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        max=1024,
        rich_help_panel=_READING,
        help="How many processes read (default: one a core).",
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        rich_help_panel=_OUTPUT,
        help="Write a page with everything and a timeline; it works offline.",
    ),
]
IsolateOut = Annotated[
    Path | None,
    typer.Option(
        "--isolate-out",
        metavar="FILE",
        rich_help_panel=_OUTPUT,
        help="Write the hosts to isolate, one a line; an empty file when there are none.",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", rich_help_panel=_OUTPUT, help="Write over files that exist.")
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        rich_help_panel=_OUTPUT,
        help="Say everything: all evidence, and tables of what was read.",
    ),
]


def parse_log(
    paths: Paths = None,
    *,
    ras: Ras = None,
    hosts: HostsFile = None,
    max_bytes: MaxBytes = MAX_BYTES,
    jobs: Jobs = None,
    output_format: options.Format = options.OutputFormat.TEXT,
    html: Html = None,
    isolate_out: IsolateOut = None,
    record: options.RecordEvidence = False,
    store: options.StoreFile = None,
    junit: options.Junit = None,
    events: options.Events = None,
    webhook: options.Webhook = None,
    webhook_always: options.WebhookAlways = False,
    force: Force = False,
    verbose: Verbose = False,
    no_color: options.NoColor = False,
    explain: options.Explain = None,
    list_classes: options.ListClasses = False,
) -> ExitCode:
    """Say from its logs why a job failed, and which hosts to leave out.

    Reads logs of NCCL, RCCL, PyTorch, torchrun, kernel, Slurm, mpirun and Ray, nccl-tests output,
    RAS reports, Inspector and flight-recorder dumps. The exit code is 0 when nothing is wrong, 1
    with findings, 3 when the logs cannot tell.
    """
    asked = locals()
    as_json = output_format is options.OutputFormat.JSON
    if explain is not None or list_classes:
        return _classes(explain, as_json=as_json, no_color=no_color)
    inputs = paths or []
    if not inputs and ras is None:
        raise UsageError("nothing to read; name logs or folders, or --ras HOST for a running job")
    _check_inputs(inputs)
    _check_outputs([path for path in (html, isolate_out) if path], inputs, force=force)
    names = _names(hosts) if hosts else {}
    _check_store(store, record=record)
    # These read and judge, which --help has no use for.
    from ncdiag.cli.announcing import outlets
    from ncdiag.cli.reading import read_evidence
    from ncdiag.diagnose.postmortem import diagnose

    told = outlets(asked)
    messages = console.messages(no_color=no_color)
    evidence = read_evidence(inputs, ras, messages, max_bytes=max_bytes, jobs=jobs)
    gc.freeze()  # all of it lives until the command ends: no use in looking there for cycles
    postmortem = diagnose(evidence, names)
    failure = _write(postmortem, evidence, names, html, isolate_out)
    if as_json:
        from ncdiag.report.postmortem import json_report

        console.write(json_report.render(postmortem))
    else:
        from ncdiag.report.postmortem import text

        text.render(postmortem, evidence, console.results(no_color=no_color), verbose=verbose)
    if record:
        _record(postmortem, store)
    told.announce(postmortem)
    if failure:
        raise failure
    return postmortem.verdict.exit_code


def _check_store(store: Path | None, *, record: bool) -> None:
    if record or store is not None:
        from ncdiag.cli import keeping

        keeping.check(store, record=record)


def _record(postmortem: Postmortem, store: Path | None) -> None:
    """Keep what speaks against hosts; where that fails it is a line, and the verdict stands."""
    from ncdiag.cli import keeping
    from ncdiag.isolate.evidence.of_postmortem import of_postmortem

    written_s = {}
    for one in postmortem.inputs:
        with suppress(OSError, ValueError):  # a member of an archive, standard input
            written_s[one.path] = os.stat(one.path).st_mtime  # noqa: PTH116 - as it was given
    keeping.keep_evidence(of_postmortem(postmortem, written_s, time.time()), store)


def _classes(explain: str | None, *, as_json: bool, no_color: bool) -> ExitCode:
    from ncdiag.report.postmortem import classes

    chosen = [classes.find(explain)] if explain is not None else list(classes.ALL)
    if as_json:
        console.write(classes.render_json(chosen))
    elif explain is not None:
        classes.explain(chosen[0], console.results(no_color=no_color))
    else:
        classes.list_all(console.results(no_color=no_color))
    return ExitCode.DONE


def _check_inputs(paths: Sequence[str]) -> None:
    """Refuse what is not there; a pattern is looked at by whoever expands it."""
    for path in paths:
        if path != "-" and not os.path.lexists(path) and not _GLOB & set(path):
            raise UsageError(f"there is no {path}; name a log, a folder of logs or a pattern")


def _check_outputs(paths: Sequence[Path], inputs: Sequence[str], *, force: bool) -> None:
    """Refuse before anything is read what could not be written after it, or would destroy it."""
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise UsageError(f"{paths[0]} cannot hold the page and the list; name two files")
    read = {os.path.realpath(path) for path in inputs}
    for path in paths:
        if path.is_dir():
            raise UsageError(f"{path} is a folder; name a file to write")
        if os.path.lexists(path) and not force:
            raise UsageError(f"{path} is already there; name another file, or add --force")
        if os.path.realpath(path) in read:
            raise UsageError(f"{path} is a log to read; name another file to write")


def _names(file: Path) -> dict[str, str]:
    """The names of a hosts file by address."""
    from ncdiag.cluster.inventory import read_hosts

    if not file.exists():
        raise UsageError(f"there is no hosts file {file}")
    return {host.address: host.name for host in read_hosts(str(file)) if host.address != host.name}


def _write(
    postmortem: Postmortem,
    evidence: LogEvidence,
    names: Mapping[str, str],
    html: Path | None,
    isolate_out: Path | None,
) -> NcdiagError | None:
    """Write the files that were asked for; what fails is told after the results."""
    if not html and not isolate_out:
        return None
    from ncdiag.report import node_lists
    from ncdiag.report.write import write_file

    try:
        if isolate_out:
            hosts = [visible(one.host) for one in postmortem.isolate]
            write_file(isolate_out, node_lists.render(hosts))
        if html:
            from ncdiag.report.postmortem import html_report

            write_file(html, html_report.render(postmortem, evidence, names))
    except NcdiagError as error:
        return error
    return None
