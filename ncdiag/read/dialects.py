"""Which readers there are."""

import importlib
import re
from collections.abc import Iterable
from typing import Any

from ncdiag.model.log import Place, Speaker
from ncdiag.read.document import Document
from ncdiag.read.line import Line, LineReader
from ncdiag.read.signatures.reader import SignatureReader

_BARE = re.compile(
    r"([^\s:\[\]]+):(\d+):\d+ (?:\[(-?\d+)\] )?(?:(\S+:\d+) (?:\(([^)]*)\) )?)?"
    r"NCCL (WARN|INFO|TRACE|CALL|ABORT) "
)


class _PlainPeeler:
    """Understands the library's own prefix and no wrapper."""

    def __init__(self, path: str) -> None:
        self._path = path

    def feed(self, raw: bytes, number: int) -> Iterable[Line]:
        text = raw.decode(errors="replace").rstrip("\r")
        place = Place(self._path, number)
        if not (found := _BARE.search(text)):
            return [Line(text=text, place=place, shown=text)]
        host, pid, device, location, function, level = found.groups()
        return [
            Line(
                text=text[found.end() :],
                place=place,
                shown=text[found.start() :],
                speaker=Speaker(host=host, pid=pid, device=device),
                level=level,
                location=location,
                function=function,
            )
        ]

    def finish(self) -> Iterable[Line]:
        return ()


def _optional(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError):
        return None


def peeler(path: str) -> Any:
    """What takes the wrappers off the lines of ``path``."""
    return (_optional("ncdiag.read.peel", "Peeler") or _PlainPeeler)(path)


def line_readers() -> list[LineReader]:
    """A reader of each dialect, fresh."""
    table = _optional("ncdiag.read.signatures.table", "TABLE") or ()
    readers: list[LineReader] = [SignatureReader(table)]
    for module, name in (
        ("ncdiag.read.nccl.reader", "NcclReader"),
        ("ncdiag.read.nccl_tests.table", "TableReader"),
        ("ncdiag.read.torch_progress", "TorchProgressReader"),
        ("ncdiag.read.elastic", "ElasticReader"),
        ("ncdiag.read.ras.text", "RasTextReader"),
        ("ncdiag.read.inspector", "InspectorReader"),
    ):
        if made := _optional(module, name):
            readers.append(made())
    return readers


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
