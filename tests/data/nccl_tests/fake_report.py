# Plain Python without types: started thousands of times, and the standard library is all it has.
# ruff: noqa: ANN001, ANN201, ANN204, T201
"""Prints the report of a run as the chosen version lays it out, and plays what goes wrong."""

import os
import signal
import sys
import time

import fake_json
from fake_columns import body, headings
from fake_model import setting

_GPU = "NVIDIA H100 80GB HBM3"
_FIRST_BUS, _BUS_STEP = 0x1B, 0x0D


class Failure(Exception):  # noqa: N818 - one of the run that is played
    """The run ends here, with this code."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class Output:
    """Standard output of rank 0, and its JSON report."""

    def __init__(self, model):
        self._prints = model.job.rank == 0
        self._log = setting("LOG") and not os.environ.get("NCCL_DEBUG_FILE")
        self._host, self._count = model.job.hosts[0], 0
        wants = model.flags.J and self._prints and model.version.json
        self.json = fake_json.Report(model) if wants else fake_json.NoReport()

    def line(self, text=""):
        """Print a line."""
        if self._prints:
            print(text, flush=True)

    def row(self, text):
        """Print a row, which lines of NCCL may cut in two."""
        if not self._log:
            self.line(text)
            return
        self._count += 1
        at = 20 + 17 * self._count % max(1, len(text) - 20)
        self.line(
            f"{text[:at]}{self._host}:{os.getpid()}:{os.getpid() + 9} [0] NCCL INFO Channel "
            f"{self._count:02d}/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n{text[at:]}"
        )


def play(model):
    """Print the whole report; the exit code."""
    output = Output(model)
    began = time.monotonic()
    try:
        announce(model, output)
        errors, average = results(model, output, began)
        return footer(model, output, errors, average)
    except Failure as failure:
        return failure.code


def announce(model, output):
    """Print everything before the first row."""
    version, flags = model.version, model.flags
    if version.rccl:
        output.line("rccl-tests: Version develop:ae3e635")
    if version.since(2, 17, 4) and not version.rccl:
        output.line(
            f"# nccl-tests version {version.text} nccl-headers={model.library} "
            f"nccl-library={model.library}"
        )
    if version.since(2, 16, 7) and not version.rccl:
        output.line(f"# Collective test starting: {model.program}")
    output.line(version.announcement(flags))
    if flags.z:
        output.line("# Blocking Enabled: wait for completion and barrier after each collective ")
    if flags.I:
        skips = f"; summary skips first {flags.K} iterations" if flags.K else ""
        output.line(
            f"# Per-Iteration Report: CUDA event timing; i_* uses max over process rows{skips} "
        )
    if flags.p:
        output.line("# Parallel Init Enabled: threads call into NcclInitRank concurrently ")
    output.line("#")
    output.line("# Using devices")
    devices(model, output)
    output.line("#")
    for text in headings(model):
        output.line(text)


def devices(model, output):
    """Print the table of ranks; only the first GPU of each process gets into the JSON."""
    gpus = int(setting("GPUS", "8"))
    first_device = os.environ.get("NCCL_TESTS_DEVICE")
    for rank, host in enumerate(model.hosts):
        process, part = divmod(rank, model.per_process)
        before = model.job.hosts[:process].count(host)
        device = (int(first_device) if first_device else before * model.per_process) + part
        if device >= gpus:
            sys.stderr.write(
                f"Invalid number of GPUs: {device + model.per_process - part} requested but only "
                f"{gpus} were found.\nPlease check the number of processes and GPUs per process.\n"
            )
            raise Failure(5 if model.version.own_codes else 1)
        bus = _FIRST_BUS + _BUS_STEP * device
        pid = os.getpid() + process
        output.line(model.version.rank_line(rank, pid, host, device, bus, _GPU))
        if part == 0:
            output.json.device(rank, pid, host, device, f"0000:{bus:02x}:00", _GPU)
    output.json.begin_results()


def results(model, output, began):
    """Print the rows; the number of wrong elements, and the mean bus bandwidth."""
    rows = list(model.rows()) * max(1, model.flags.N)
    errors, rates = 0, []
    seconds = float(setting("SECONDS", "0"))
    for number, row in enumerate(rows):
        misfortune(model, output, number)
        times = model.times_us(row)
        halves = [half_of(model, row, times, in_place=flag) for flag in (False, True)]
        if model.version.rccl and model.flags.O:
            halves[1] = None
        output.row(body(model, row, halves))
        output.json.result(row, halves)
        for half in filter(None, halves):
            errors += half.wrong or 0
            rates.append(half.busbw)
        wait_until(began + seconds * (number + 1) / len(rows))
    misfortune(model, output, len(rows))
    return errors, sum(rates) / len(rates) if rates else 0.0


def half_of(model, row, times, *, in_place):
    """The result of a size, out of place or in place."""
    return Half(model, row, times, model.wrong(row, in_place=in_place))


class Half:
    """What is printed of one half of a row, and of its iterations."""

    def __init__(self, model, row, times, wrong):
        means = [sum(one) / len(one) for one in times]
        how = model.flags.a
        self.time_us = (
            means[0] if how == 0 else min(means) if how == 2 else max(means) if how == 3
            else sum(means) / len(means)
        )  # fmt: skip
        self.algbw = row.size / self.time_us / 1e3
        self.busbw = self.algbw * model.factor
        self.wrong = wrong
        self.times = times
        self.slowest = [max(one) for one in zip(*times, strict=True)]
        self.kept = self.slowest[min(model.flags.K, len(self.slowest) - 1) :]


def misfortune(model, output, number):
    """Hang, crash or be killed, if it is time for that."""
    hang = setting("HANG")
    if hang and int(hang.rstrip("!")) == number:
        if model.flags.T and not hang.endswith("!"):
            time.sleep(model.flags.T)
            host = model.job.hosts[model.job.rank]
            output.line(f"{host}: Test timeout ({model.flags.T}s) common.cu:441")
            trace(model, output)
            raise Failure(4 if model.version.own_codes else 3)
        while True:
            time.sleep(3600)
    if setting("DIE") == str(number):
        output.json.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    kind, _, rows = setting("CRASH").partition(":")
    if kind and int(rows or 0) == number:
        crash(model, output, kind)


def crash(model, output, kind):
    """End with the text and code of a failed call."""
    host = model.job.hosts[model.job.rank]
    if kind == "cuda":
        text = f"{host}: Test CUDA failure common.cu:943 'an illegal memory access was encountered'"
    else:
        known = model.version.since(2, 13)
        last = " / remote process exited or there was a network error" if known else ""
        text = f"{host}: Test NCCL failure common.cu:1005 'unhandled system error{last}'"
    output.line(text)
    trace(model, output)
    # Before there were codes of its own, main returned the number of the result.
    raise Failure({"cuda": 2, "nccl": 3}[kind] if model.version.own_codes else 3 - (kind == "cuda"))


def trace(model, output):
    """Where a failed call came from."""
    host = model.job.hosts[model.job.rank]
    for place in ("common.cu:1061", "all_reduce.cu:105"):
        output.line(f" .. {host} pid {os.getpid()}: Test failure {place}")


def footer(model, output, errors, average):
    """Print everything behind the last row; the exit code."""
    version, flags = model.version, model.flags
    least = os.environ.get("NCCL_TESTS_MIN_BW")
    low = least is not None and average < 0.9 * float(least)
    verdict = "" if least is None else "FAILED" if low else "OK"
    if version.rccl and flags.c:
        output.line(
            "# Errors with asterisks indicate errors that have exceeded the maximum threshold."
        )
    output.line(f"# Out of bounds values : {errors} {'FAILED' if errors else 'OK'}")
    output.line(f"# Avg bus bandwidth    : {average:g} {verdict}")
    output.line("#")
    if version.since(2, 16, 7) and not version.rccl:
        output.line(f"# Collective test concluded: {model.program}")
    if flags.M:
        output.line(
            "# GPU memory usage     : Initialization 1.20 GB | User-Allocated 96.0 MB "
            "| Collective 0.00 B | Total  1.29 GB"
        )
    last = setting("ERROR")
    if version.own_codes:
        output.line("#")
        output.line(f"# error: {last}" if last else "")
    else:
        output.line()
    output.json.end(errors, average, None if least is None else not low, last)
    if not (errors or low):
        return 0
    return 7 if version.own_codes else 1


def wait_until(moment):
    """Sleep until then, if that is not over."""
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)
