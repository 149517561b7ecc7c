"""``dcgmi ... -j``: what DCGM's own watches say of GPUs, and errors of their NVLinks.

The command line prints trees: ``header`` has the titles, ``body`` maps names to nodes with
``value``, ``overflow`` (further lines of the value) and ``children``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ncdiag.model.gpu_parts import NvlinkFacts
from ncdiag.model.health import GpuHealth
from ncdiag.read.gpu.json_documents import objects
from ncdiag.read.gpu.reading import MAX_GPUS, GpuReport, GpuReportError
from ncdiag.read.gpu.values import count

_HEALTH: Final = "Health Monitor Report"
_LINKS: Final = "NVLINK Error Counts"
_HEALTHY: Final = "healthy"
_MAX_INCIDENTS: Final = 64
_LONGEST: Final = 400
_LINK: Final = re.compile(r"Link (\d{1,2})")
_GPU: Final = re.compile(r"GPU (\d{1,4})")
_COUNTERS: Final = {
    "CRC FLIT Error": "crc_flit",
    "CRC Data Error": "crc_data",
    "Replay Error": "replay",
    "Recovery Error": "recovery",
}


def read_dcgmi(data: bytes) -> GpuReport:
    """The GPUs that DCGM has something to say of.

    Those that are healthy are not named by it. Raises :class:`GpuReportError` for anything else
    than reports of ``dcgmi health -c`` and ``dcgmi nvlink -e``, one or several.
    """
    incidents: dict[int, tuple[str, ...]] = {}
    links: dict[int, tuple[NvlinkFacts, ...]] = {}
    known = False
    for found in objects(data):
        header, body = found.get("header"), found.get("body")
        titles = [one for one in header if isinstance(one, str)] if isinstance(header, list) else []
        if not isinstance(body, dict):
            continue
        if _HEALTH in titles or "Overall Health" in body:
            known = True
            incidents |= _incidents(body)
        elif _LINKS in titles:
            known = True
            links |= _links(titles, body)
    if not known:
        raise GpuReportError("no report of dcgmi health -c -j or dcgmi nvlink -e -j")
    gpus = sorted(incidents.keys() | links.keys())
    if len(gpus) > MAX_GPUS:
        raise GpuReportError(f"more than {MAX_GPUS} GPUs, which no host has")
    return GpuReport(
        gpus=tuple(
            GpuHealth(index=one, incidents=incidents.get(one), nvlinks=links.get(one))
            for one in gpus
        )
    )


def _incidents(body: Mapping[str, Any]) -> dict[int, tuple[str, ...]]:
    found = {}
    for number, gpu in _children(body.get("GPU")):
        index = count(number)
        if index is not None and index <= 9999:
            errors = gpu.get("children")
            listed = errors.get("Errors") if isinstance(errors, dict) else None
            said = [text for text in map(_incident, _children(listed)) if text]
            value = _text(gpu.get("value"))
            if not said and value and value.lower() != _HEALTHY:
                said = [value]
            found[index] = tuple(said[:_MAX_INCIDENTS])
    return found


def _incident(entry: tuple[str, Mapping[str, Any]]) -> str:
    """``Memory system: Failure: what it says``."""
    system, node = entry
    value = _text(node.get("value"))
    if value.lower() == _HEALTHY:
        return ""
    more = node.get("overflow")
    lines = [_text(line) for line in more] if isinstance(more, list) else [_text(more)]
    words = (" ".join(part.split()) for part in (system, value, " ".join(filter(None, lines))))
    return ": ".join(filter(None, words))[:_LONGEST]


def _links(titles: list[str], body: Mapping[str, Any]) -> dict[int, tuple[NvlinkFacts, ...]]:
    index = next((int(found[1]) for one in titles if (found := _GPU.fullmatch(one))), None)
    if index is None:
        return {}
    links = []
    for title, node in body.items():
        match = _LINK.fullmatch(title)
        if match and isinstance(node, dict):
            counted = {
                _COUNTERS[kind]: value
                for kind, one in _children(node)
                if kind in _COUNTERS and (value := count(one.get("value"))) is not None
            }
            links.append(NvlinkFacts(link=int(match[1]), errors=counted))
    return {index: tuple(sorted(links, key=lambda link: link.link))}


def _children(node: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    children = node.get("children") if isinstance(node, dict) else None
    if isinstance(children, dict):
        yield from ((key, value) for key, value in children.items() if isinstance(value, dict))


def _text(value: object) -> str:
    """A value as it is printed; nothing for a tree or for none."""
    return str(value)[: 2 * _LONGEST] if isinstance(value, str | int | float) else ""
