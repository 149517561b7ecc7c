"""The PCIe links of a host as ``topo capture`` found them, as text and JSON."""

from typing import Any, Final

from rich.console import Console
from rich.text import Text

from ncdiag.health.topology.pcie_links import KIND, Link, PcieLinks, check_links
from ncdiag.model.units import format_count
from ncdiag.report.json_document import layout
from ncdiag.report.topology.json_report import SCHEMA, finding_document, shown
from ncdiag.report.topology.styles import safe, table

_NAME: Final = "PCIe links"


def describe(links: PcieLinks) -> str:
    """``PCIe links, 8 GPUs, 10 adapters``."""
    gpus = sum(one.gpu for one in links.devices)
    adapters = len(links.devices) - gpus
    return f"{_NAME}, {format_count(gpus, 'GPU')}, {format_count(adapters, 'adapter')}"


def render_json(links: PcieLinks) -> bytes:
    """The links, in the schema of all dumps."""
    document = {
        "schema": SCHEMA,
        "kind": KIND,
        "findings": [finding_document(one) for one in check_links(links)],
        "devices": [
            {
                "busid": one.busid,
                "gpu": one.gpu,
                "names": one.names,
                "current": _document(one.current),
                "maximum": _document(one.maximum),
                "slot": _document(one.slot),
            }
            for one in links.devices
        ],
    }
    return layout(shown(document))


def render_text(name: str, links: PcieLinks, console: Console) -> None:
    """A row for each device; a link below what both ends can do stands out."""
    console.print(safe(name, "bold") + Text(f": {describe(links)}", "default"))
    bad = {one.where for one in check_links(links)}
    grid = table(("bus id", "", "name", "runs at", "device can do", "slot can do"))
    for one in links.devices:
        grid.add_row(
            safe(one.busid),
            Text("GPU" if one.gpu else "adapter"),
            safe(", ".join(one.names) or None),
            safe(_text(one.current), "red" if one.busid in bad else "green"),
            safe(_text(one.maximum)),
            safe(_text(one.slot)),
        )
    console.print()
    console.print(grid)


def _text(link: Link) -> str | None:
    if link.gigatransfers_per_s is None and link.lanes is None:
        return None
    speed = "?" if link.gigatransfers_per_s is None else f"{link.gigatransfers_per_s:g}"
    return f"{speed} GT/s x{link.lanes or '?'}"


def _document(link: Link) -> dict[str, Any]:
    return {"gigatransfers_per_s": link.gigatransfers_per_s, "lanes": link.lanes}
