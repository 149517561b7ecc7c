"""A store's runs as one flat table, CSV or Parquet, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import pandas as pd

from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.text import visible
from ncdiag.report.history.csv_report import cell
from ncdiag.store.records import Run
from ncdiag.store.store import Store
from ncdiag.store.whole_file import replacing

# Of links a chunk takes about 100 MB while it is written; more at once is not faster.
_CHUNK_ROWS: Final = 100_000

Columns = dict[str, list[Any]]
Put = Callable[[pd.DataFrame], None]

# Names and kinds of the columns; a kind is what pandas calls it. All can be empty but the first.
_RUN: Final = {"run": "int64", "started": "string", "kind": "string", "engine": "string"}
TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "links": {
        **_RUN,
        "source": "string",
        "target": "string",
        "rail": "Int64",
        "status": "string",
        "measured_gbit_per_s": "float64",
        "min_gbit_per_s": "float64",
        "expected_gbit_per_s": "float64",
        "fleet_gbit_per_s": "float64",
        "idle": "float64",
        "bytes": "Int64",
        "tests": "Int64",
        "round": "Int64",
        "expected_from": "string",
        "error": "string",
    },
    "hosts": {
        **_RUN,
        "host": "string",
        "status": "string",
        "efficiency": "float64",
        "send_gbit_per_s": "float64",
        "receive_gbit_per_s": "float64",
        "expected_gbit_per_s": "float64",
        "fleet_ratio": "float64",
        "worst_window": "float64",
        "links": "Int64",
        "slow_links": "Int64",
        "reason": "string",
    },
    "bench": {
        **_RUN,
        "verdict": "string",
        "collective": "string",
        "hosts": "Int64",
        "ranks": "Int64",
        "size_bytes": "Int64",
        "time_us": "float64",
        "algbw_gb_per_s": "float64",
        "busbw_gb_per_s": "float64",
        "min_busbw_gb_per_s": "float64",
        "max_busbw_gb_per_s": "float64",
        "repeats": "Int64",
        "wrong": "Int64",
        "expected_time_us": "float64",
        "expected_busbw_gb_per_s": "float64",
    },
}


def export(store: Store, table: str, path: Path, *, since: str | None = None) -> int:
    """Write the ``table`` of all runs to ``path``, as its suffix says; returns the rows.

    The file is whole or not there. Raises :class:`UsageError` where Parquet cannot be written, and
    :class:`UndecidedError` where the file cannot.
    """
    kinds = TABLES[table]
    opened = _parquet if path.suffix == ".parquet" else _csv
    rows = 0
    try:
        with replacing(path, None) as file, opened(file, kinds) as put:
            for columns in _chunks(_columns(store, table, since), kinds):
                put(_frame(columns, kinds))
                rows += len(columns["run"])
    except OSError as error:
        raise UndecidedError(
            f"cannot write {visible(str(path))}: {error.strerror or error}"
        ) from error
    return rows


def _columns(store: Store, table: str, since: str | None) -> Iterator[Columns]:
    rows = {"links": _links, "hosts": _hosts, "bench": _points}[table]
    for run in store.runs(since=since):
        yield from rows(store, run)


def _about(run: Run, count: int) -> Columns:
    return {
        "run": [run.number] * count,
        "started": [run.started] * count,
        "kind": [run.kind] * count,
        "engine": [run.engine] * count,
    }


def _links(store: Store, run: Run) -> Iterator[Columns]:
    for table in store.links_of(run.number):
        count = len(table.columns["target"])
        yield {
            **_about(run, count),
            "source": [table.source] * count,
            "rail": [table.rail] * count,
            **table.columns,
        }


def _hosts(store: Store, run: Run) -> Iterator[Columns]:
    for name, point in store.hosts_of(run.number):
        own = {field: [getattr(point, field)] for field in TABLES["hosts"] if hasattr(point, field)}
        yield {**own, **_about(run, 1), "host": [name], "reason": [point.reason or None]}


def _points(store: Store, run: Run) -> Iterator[Columns]:
    for curve in store.curves_of(run.number):
        count = len(curve.points)
        about = {
            "verdict": curve.verdict,
            "collective": curve.collective,
            "hosts": len(curve.hosts),
            "ranks": curve.ranks,
        }
        own = [name for name in TABLES["bench"] if curve.points and hasattr(curve.points[0], name)]
        yield {
            **_about(run, count),
            **{name: [value] * count for name, value in about.items()},
            **{name: [getattr(point, name) for point in curve.points] for name in own},
        }


def _chunks(parts: Iterable[Columns], kinds: Mapping[str, str]) -> Iterator[Columns]:
    """The parts put together into ones of a size that pays."""
    chunk: Columns = {name: [] for name in kinds}
    for part in parts:
        if not part["run"]:
            continue
        for name, values in chunk.items():
            values.extend(part[name])
        if len(chunk["run"]) >= _CHUNK_ROWS:
            yield chunk
            chunk = {name: [] for name in kinds}
    if chunk["run"]:
        yield chunk


def _frame(columns: Columns, kinds: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series(columns[name], dtype=cast("Any", kind)) for name, kind in kinds.items()}
    )


@contextmanager
def _csv(file: BinaryIO, kinds: Mapping[str, str]) -> Iterator[Put]:
    texts = [name for name, kind in kinds.items() if kind == "string"]
    pd.DataFrame(columns=list(kinds)).to_csv(file, index=False)

    def put(frame: pd.DataFrame) -> None:
        for name in texts:
            frame[name] = frame[name].map(cell, na_action="ignore")
        frame.to_csv(file, header=False, index=False, float_format="%.7g", lineterminator="\n")

    yield put


@contextmanager
def _parquet(file: BinaryIO, kinds: Mapping[str, str]) -> Iterator[Put]:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed: pip install 'ncdiag[parquet]', "
            "or give --to FILE.csv"
        ) from error
    types = {"string": arrow.string(), "float64": arrow.float64()}
    schema = arrow.schema([(name, types.get(kind, arrow.int64())) for name, kind in kinds.items()])
    with parquet.ParquetWriter(file, schema) as writer:
        yield lambda frame: writer.write_table(
            arrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
        )
