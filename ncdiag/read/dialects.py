"""Which readers there are."""

import importlib
from collections.abc import Iterable
from typing import Any

from ncdiag.read.document import Document
from ncdiag.read.line import LineReader
from ncdiag.read.recall import Recall
from ncdiag.read.signatures.reader import SignatureReader


def _optional(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError):
        return None


def line_readers() -> list[LineReader]:
    """A reader of each dialect, fresh."""
    table = _optional("ncdiag.read.signatures.table", "TABLE") or ()
    readers: list[LineReader] = [SignatureReader(table)]
    for module, name in (
        ("ncdiag.read.nccl.reader", "NcclReader"),
        ("ncdiag.read.nccl_tests.table", "TableReader"),
        ("ncdiag.read.torch_progress", "TorchProgressReader"),
        ("ncdiag.read.elastic", "ElasticReader"),
        ("ncdiag.read.tracebacks", "TracebackReader"),
        ("ncdiag.read.mpi_ends", "MpiEndReader"),
        ("ncdiag.read.kernel_blocks", "KernelBlockReader"),
        ("ncdiag.read.kinds", "KindReader"),
        ("ncdiag.read.ras.text", "RasTextReader"),
        ("ncdiag.read.inspector", "InspectorReader"),
    ):
        if made := _optional(module, name):
            readers.append(made())
    return readers


def recall(readers: Iterable[LineReader]) -> Recall:
    """What knows the events that the signature table gave."""
    table = next(reader for reader in readers if isinstance(reader, SignatureReader))
    return Recall(table.rows, table.events)


def document(head: bytes, path: str) -> Document | None:
    """A reader for a file that begins so, if it is one document and not lines."""
    for module, name in (
        ("ncdiag.read.flight.document", "FlightDocument"),
        ("ncdiag.read.ras.json_report", "RasDocument"),
        ("ncdiag.read.nccl_tests.json_report", "JsonReport"),
    ):
        kind = _optional(module, name)
        if kind is not None and kind.recognises(head):
            made: Document = kind(path)
            return made
    return None
