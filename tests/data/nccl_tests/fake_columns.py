# Plain Python without types: started thousands of times, and the standard library is all it has.
# ruff: noqa: ANN001, ANN201, ANN202
"""The columns of each version: titles and rows."""

import time


def headings(model):
    """The lines of column titles."""
    if not model.version.uniform:
        return old_headings(model)
    flags = model.flags
    lead = "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}"
    width = model.version.wrong_width
    clock = "cputime" if flags.C else "time"
    stamp = f" {'timestamp':>19}" if flags.S else " " if model.version.own_codes else ""
    titles = f"  {clock:>7}  {'algbw':>6}  {'busbw':>6}  {'#wrong':>{width}}"
    units = f"  {'(us)':>7}  {'(GB/s)':>6}  {'(GB/s)':>6}  {'':>{width}}"
    over = "           out-of-place                       in-place          "
    if flags.I:
        titles += "".join(f"  {name:>7}" for name in ("i_min", "i_max", "i_p99", "i_cv%"))
        units += "".join(f"  {name:>7}" for name in ("(us)", "(us)", "(us)", "(%)"))
        over = (
            "              out-of-place (+ per-iteration)                    "
            "            in-place (+ per-iteration)"
        )
    return [
        lead.format("", "", "", "", "") + over,
        lead.format("size", "count", "type", "redop", "root") + titles + titles + stamp,
        lead.format("(B)", "(elements)", "", "", "") + units + units,
    ]


def old_headings(model):
    """Each program has columns of its own up to 2.11."""
    lead = f"# {'{:>10}'}  {'{:>12}'}  {{:>{type_width(model)}}}"
    lead += ("  {:>6}" if model.has_op else "{}") + ("  {:>6}" if model.has_root else "{}")
    half = "  {:>7}  {:>6}  {:>6}  {:>5}"
    op, root = "redop" * model.has_op, "root" * model.has_root
    titles = half.format("time", "algbw", "busbw", "error") * 2
    units = half.format("(us)", "(GB/s)", "(GB/s)", "") * 2
    return [
        lead.format("", "", "", "", "")
        + "            out-of-place                       in-place          ",
        lead.format("size", "count", "type", op, root) + titles,
        lead.format("(B)", "(elements)", "", "", "") + units,
    ]


def type_width(model):
    """How wide the column of types is."""
    return 8 if model.version.since(2, 11) else 6


def body(model, row, halves):
    """One row of results."""
    if model.version.uniform:
        text = f"{row.size:12d}  {row.count:12d}  {row.type:>8}  {row.op:>6}  {row.root:6d}"
    else:
        text = f"{row.size:12d}  {row.count:12d}  {row.type:>{type_width(model)}}"
        text += f"  {row.op:>6}" if model.has_op else ""
        text += f"  {row.root:6d}" if model.has_root else ""
    text += "".join(half_columns(model, half) for half in halves if half is not None)
    if model.flags.S:
        width = 21 if model.version.since(2, 17, 7) else 20
        text += f"{time.strftime('%Y-%m-%d %H:%M:%S'):>{width}}"
    return text


def half_columns(model, half):
    """Time, bandwidths, wrong elements, and the iterations if asked for."""
    version = model.version
    text = f"  {version.time(half.time_us)}  {version.rate(half.algbw)}  {version.rate(half.busbw)}"
    text += "  " + wrong_column(model, half.wrong)
    if model.flags.I:
        summary = statistics(half.kept)
        text += "".join(
            f"  {version.time(summary[name])}" for name in ("min_us", "max_us", "p99_us", "cv_pct")
        )
    return text


def wrong_column(model, wrong):
    """The number of wrong elements, or the largest deviation."""
    width = model.version.wrong_width
    if wrong is None:
        return f"{'N/A':>{width}}"
    if model.version.uniform:
        return f"{wrong:{width}g}"
    return f"{1e2 if wrong else 4e-07:5.0e}"


def statistics(times):
    """What -I tells of the iterations."""
    ordered = sorted(times)
    count = len(ordered)
    mean = sum(ordered) / count
    deviation = (sum((one - mean) ** 2 for one in ordered) / count) ** 0.5

    def percentile(share):
        return ordered[min(count - 1, (count * share + 99) // 100 - 1)]

    return {
        "min_us": ordered[0],
        "max_us": ordered[-1],
        "avg_us": mean,
        "p50_us": ordered[count // 2],
        "p95_us": percentile(95),
        "p99_us": percentile(99),
        "stdev_us": deviation,
        "cv_pct": 100 * deviation / mean if mean else 0.0,
    }
