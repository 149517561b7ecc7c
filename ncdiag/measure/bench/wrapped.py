"""One rank of a benchmark on its host: finds the program, and becomes it.

Started by an MPI launcher as ``python -P -m ncdiag.measure.bench.wrapped VARIABLE JSON``: the
environment variable that holds the rank, and what to run. Rank 0 stays, since the program writes
its JSON on that host: it prints the file in marked lines, and what the program ended with. Large
fleets start thousands of these, so only what is quick to import is.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ncdiag.cluster.die_with_parent import die_with_launcher, die_with_parent
from ncdiag.cluster.processes import ask
from ncdiag.measure.engines.nccl_tests.programs import find, options_of, why_ended
from ncdiag.measure.foreign import without_foreign

MODULE = "ncdiag.measure.bench.wrapped"
REPORT_MARK = "ncdiag-bench-report: "
END_MARK = "ncdiag-bench-end: "
# Loading the libraries of CUDA from a cold network file system takes most of it.
_USAGE_S = 60.0
_MAX_USAGE_BYTES = 1 << 20
# Short enough for a pipe to take it in one piece, whoever else writes to it.
_LINE_CHARS = 2000
# A report of more is not read; the text is there in any case.
_MAX_REPORT_BYTES = 64 << 20
_NOT_THERE = 127


def main() -> None:
    """Do what the arguments say."""
    die_with_launcher()
    variable, text = sys.argv[1:]
    job: dict[str, Any] = json.loads(text)
    rank = int(os.environ.get(variable, "0"))
    sys.exit(_lead(job) if rank == 0 else _follow(job))


def _follow(job: dict[str, Any]) -> int:
    """Become the program; only what can be done before it is done here."""
    path, options, why = _look(job)
    if path is None:
        print(f"{os.uname().nodename}: {why}", file=sys.stderr)  # noqa: T201 - for the driver
        return _NOT_THERE
    os.execve(path, _argv(job, path, options, None), _environment(job))  # noqa: S606 - no shell
    return _NOT_THERE


def _lead(job: dict[str, Any]) -> int:
    """Run the program, then say what it wrote and how it ended."""
    path, options, why = _look(job)
    if path is None:
        _say(END_MARK, json.dumps({"host": os.uname().nodename, "error": why}))
        return _NOT_THERE
    with tempfile.TemporaryDirectory(prefix="ncdiag-bench-") as folder:
        report = Path(folder) / "report.json"
        argv = _argv(job, path, options, str(report))
        # MPI libraries talk to their launcher over a file descriptor.
        process = subprocess.Popen(
            die_with_parent(argv), stdin=subprocess.DEVNULL, env=_environment(job), close_fds=False
        )
        code = process.wait()
        for line in _lines_of(report):
            _say(REPORT_MARK, line)
    # The arguments as they were meant; that of the report is of no interest.
    shown = [argument for argument in argv if argument not in {"-J", str(report)}]
    end = {"host": os.uname().nodename, "code": code, "argv": shown, "options": sorted(options)}
    _say(END_MARK, json.dumps(end))
    return code if code >= 0 else 128 - code


def _look(job: dict[str, Any]) -> tuple[str | None, frozenset[str], str]:
    """The program, the letters of its options, and why it cannot be run."""
    path, looked = find(job["program"], job["folder"], os.environ)
    if path is None:
        return None, frozenset(), f"{job['program']} is not there: looked in {looked}"
    ended = ask((path, "-h"), timeout_s=_USAGE_S, most_bytes=_MAX_USAGE_BYTES)
    if ended.timed_out:
        return None, frozenset(), f"{path} -h did not end within {_USAGE_S:g} s"
    if ended.code is None:
        return None, frozenset(), f"cannot start {ended.error}"
    usage = ended.stdout.decode(errors="replace")
    options = options_of(usage)
    if not options:
        why = (
            why_ended(ended.code, [*usage.splitlines(), *ended.said])
            or "it does not say what options it has"
        )
        return None, frozenset(), f"{path} cannot be used: {why}"
    return path, options, ""


def _argv(job: dict[str, Any], path: str, options: frozenset[str], report: str | None) -> list[str]:
    """The command; options that this version does not know are left out."""
    argv = [path, *job["arguments"]]
    for letter, value in job["optional"]:
        if letter in options:
            argv += [f"-{letter}", value]
    if report is not None and "J" in options:
        argv += ["-J", report]
    return argv


def _environment(job: dict[str, Any]) -> dict[str, str]:
    return {**without_foreign(os.environ), **job["variables"]}


def _lines_of(report: Path) -> Iterator[str]:
    """The report packed into lines; nothing where it was not written, is too large, or was cut.

    It holds the whole environment of this process, which is nobody else's business: what cannot
    be read is not searched for it. The rows of a cut report are in the text as well.
    """
    if not report.exists() or report.stat().st_size > _MAX_REPORT_BYTES:
        return
    try:
        document = json.loads(report.read_bytes())
    except (ValueError, RecursionError):  # cut off where the program died
        return
    if not isinstance(document, dict):
        return
    document.pop("env", None)
    data = json.dumps(document, separators=(",", ":")).encode()
    packed = base64.b64encode(zlib.compress(data)).decode()
    for start in range(0, len(packed), _LINE_CHARS):
        yield packed[start : start + _LINE_CHARS]


def unpack(lines: Sequence[str]) -> bytes:
    """The report in lines without their marks, also cut short; empty where they are damaged."""
    packed = "".join(lines)
    try:
        data = base64.b64decode(packed[: len(packed) // 4 * 4], validate=True)
        return zlib.decompressobj().decompress(data, _MAX_REPORT_BYTES)
    except (ValueError, zlib.error):
        return b""


def _say(mark: str, text: str) -> None:
    sys.stdout.write(f"\n{mark}{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
