"""Reads the reports of ``--out_json``, which are JSON only since perftest of 2024.

Before, names and words stood without quotes and commas before closing brackets; a bidirectional run
writes ``results`` up to three times; braces are missing where a run died. The blocks are flat and
have known names, so they are looked for one by one, whatever stands around them.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from ncdiag.read.perftest.rates import gbit_per_s, peak, unit_by_messages
from ncdiag.read.perftest.records import BandwidthRow, LatencyRow, Run, Side

BLOCK = re.compile(r'"?\b(?P<name>test_info|results(?:_local|_remote)?)"?\s*:\s*\{')
_PAIR = re.compile(
    r'"?(?P<key>[A-Za-z][\w. *-]{0,60}?)"? ?: ?'
    r'(?:"(?P<text>[^"\n]{0,200})"|(?P<bare>[^",{}\n]{1,200}))(?P<end>\s*[,}\n])'
)
# Many times what any of them holds.
_LONGEST_BLOCK = 1 << 16
_SIDES = {"results_local": Side.LOCAL, "results_remote": Side.REMOTE}
# A bidirectional run with --report-both prints these one after the other, all as "results".
_PRINTED = (Side.WHOLE, Side.LOCAL, Side.REMOTE)
# Two decimals of each of three figures, and the bias of rounding.
_SUM_TOLERANCE = 0.01


def read_json(text: str) -> list[Run]:
    """The runs in ``text``, in the order in which they stand there."""
    runs: list[Run] = []
    for name, body, closed in _blocks(text):
        values = {pair["key"]: _value(pair) for pair in _PAIR.finditer(body)}
        if name == "test_info":
            run = _run(values)
            # Each of the three files of one run repeats what the run is.
            if not (runs and runs[-1].bidirectional and _same(runs[-1], run)):
                runs.append(run)
            continue
        if not runs:
            runs.append(Run())
        runs[-1].complete = _take(runs[-1], values, _SIDES.get(name, Side.WHOLE)) and closed
    for run in runs:
        _tell_sides(run)
    return runs


def _blocks(text: str) -> Iterator[tuple[str, str, bool]]:
    """Name and content of each block, and whether it was closed."""
    starts = list(BLOCK.finditer(text))
    for number, start in enumerate(starts):
        limit = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        limit = min(limit, start.end() + _LONGEST_BLOCK)
        end = text.find("}", start.end(), limit)
        body = text[start.end() : limit if end < 0 else end + 1]
        yield start["name"], body, end >= 0


def _value(pair: "re.Match[str]") -> str:
    return (pair["bare"] if pair["text"] is None else pair["text"]).strip()


def _run(values: dict[str, str]) -> Run:
    pairs = values.get("Number_of_qps", "")
    test = values.get("test")
    return Run(
        test=test.replace("_", " ").replace("RDMA ", "RDMA_") if test else None,
        device=values.get("Device"),
        link_type=values.get("Link_type"),
        queue_pairs=int(pairs) if pairs.isdecimal() and len(pairs) < 10 else None,
    )


def _same(one: Run, other: Run) -> bool:
    return (one.test, one.device, one.queue_pairs) == (other.test, other.device, other.queue_pairs)


def _take(run: Run, values: dict[str, str], side: Side) -> bool:
    """Add what a block of results says; whether it makes sense."""
    numbers = {key: _number(value) for key, value in values.items()}
    size, iterations = _whole(numbers.get("MsgSize")), _whole(numbers.get("n_iterations"))
    latency = _first(numbers, "t_avg", "avg_lat")
    if latency is not None:
        run.latency.append(
            LatencyRow(
                size_bytes=size,
                iterations=iterations,
                average_us=latency,
                typical_us=numbers.get("t_typical"),
                min_us=numbers.get("t_min"),
                max_us=numbers.get("t_max"),
                p99_us=numbers.get("percentile_99"),
                p999_us=numbers.get("percentile_99.9"),
            )
        )
        return True
    average = _first(numbers, "BW_average", "bw_avg")
    if average is None:
        run.damaged += 1
        return False
    rate, cpu = _first(numbers, "MsgRate", "msgRate_avg"), numbers.get("CPU_util")
    messages = None if rate is None else rate * 1e6
    unit = unit_by_messages(average, size, messages)
    top = numbers.get("BW_peak")
    run.bandwidth.append(
        BandwidthRow(
            side=side,
            size_bytes=size,
            iterations=iterations,
            gbit_per_s=gbit_per_s(average, unit),
            peak_gbit_per_s=None if top is None else peak(gbit_per_s(top, unit)),
            messages_per_s=messages,
            cpu_share=None if cpu is None else cpu / 100,
        )
    )
    return True


def _tell_sides(run: Run) -> None:
    """Tell apart the three reports of a bidirectional run, if the first is the others' sum."""
    if not run.bidirectional or len(run.bandwidth) != len(_PRINTED):
        return
    if any(row.side is not Side.WHOLE for row in run.bandwidth):
        return
    figures = [row.gbit_per_s for row in run.bandwidth]
    whole, local, remote = (figure or 0.0 for figure in figures)
    if None not in figures and abs(whole - local - remote) <= _SUM_TOLERANCE * whole:
        run.bandwidth = [
            replace(row, side=side) for row, side in zip(run.bandwidth, _PRINTED, strict=True)
        ]


def _first(numbers: dict[str, float | None], *names: str) -> float | None:
    return next((found for name in names if (found := numbers.get(name)) is not None), None)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and 0 <= value < 2**63 else None
