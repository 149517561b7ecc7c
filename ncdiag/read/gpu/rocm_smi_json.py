"""``rocm-smi -a --json``: one flat object a card, whose keys changed over the versions."""

import re
from collections.abc import Mapping
from typing import Any, Final

from ncdiag.model.gpu_parts import LinkCapability
from ncdiag.model.health import GpuHealth
from ncdiag.read.gpu.json_documents import objects
from ncdiag.read.gpu.reading import MAX_GPUS, GpuReport, GpuReportError, with_vbios
from ncdiag.read.gpu.values import count, figure, name
from ncdiag.read.topology.text import bus_id

_CARD: Final = re.compile(r"card(\d{1,4})")
# The hottest of a GPU's sensors is what it slows down by; the edge is cooler.
_TEMPERATURES: Final = ("temperature (sensor junction) (c)", "temperature (sensor edge) (c)")
_MEMORY: Final = re.compile(r"temperature \(sensor (?:mem|memory|hbm \d{1,2})\) \(c\)")
_RANGE: Final = re.compile(r"\d{1,6}mhz - (\d{1,6}mhz)", re.IGNORECASE)
_LINK: Final = re.compile(r"(\d{1,3}(?:\.\d{1,2})?)\s?GT/s,?\s{0,2}x(\d{1,2})", re.IGNORECASE)


def read_rocm_smi(data: bytes) -> GpuReport:
    """The GPUs of a report; raises :class:`GpuReportError` for anything else.

    Lines of warnings around the report are left out.
    """
    cards: dict[int, Mapping[str, object]] = {}
    system: dict[str, Any] = {}
    for found in objects(data):
        for key, value in found.items():
            match = _CARD.fullmatch(key)
            if match and isinstance(value, dict):
                index = int(match[1])
                cards[index] = {**cards.get(index, {}), **_lower(value)}
            elif key == "system" and isinstance(value, dict):
                system |= _lower(value)
    if not cards and not system:
        raise GpuReportError("JSON without a card: not of rocm-smi --json")
    if len(cards) > MAX_GPUS:
        raise GpuReportError(f"more than {MAX_GPUS} GPUs, which no host has")
    gpus = tuple(_gpu(index, card) for index, card in sorted(cards.items()))
    driver = name(system.get("driver version"))
    if driver is None:
        drivers = (name(card.get("driver version")) for card in cards.values())
        driver = next(filter(None, drivers), None)
    return GpuReport(gpus=gpus, versions=with_vbios({"driver": driver} if driver else {}, gpus))


def _lower(card: Mapping[str, object]) -> dict[str, object]:
    """Keys differ in their letter case and final colon, values may stand in a list of one."""
    return {
        key.strip().rstrip(":").lower(): (
            value[0] if isinstance(value, list) and len(value) == 1 else value
        )
        for key, value in card.items()
    }


def _gpu(index: int, card: Mapping[str, object]) -> GpuHealth:
    total = count(card.get("vram total memory (b)"))
    used = count(card.get("vram total used memory (b)"))
    use = figure(card.get("gpu use (%)"))
    names = ("card series", "device name", "card model", "gfx version")
    powers = (
        "average graphics package power (w)",
        "current socket graphics package power (w)",
        "current graphics package power (w)",
    )
    hottest = [value for key in card if _MEMORY.fullmatch(key) and (value := figure(card[key]))]
    return GpuHealth(
        index=index,
        uuid=name(card.get("unique id")),
        name=next(filter(None, (name(card.get(key)) for key in names)), None),
        pci_address=bus_id(name(card.get("pci bus"))),
        serial=name(card.get("serial number")),
        vbios=name(card.get("vbios version")),
        memory_total_bytes=total,
        memory_free_bytes=None if total is None or used is None else max(total - used, 0),
        temperature_c=_first(card, _TEMPERATURES),
        memory_temperature_c=max(hottest, default=None),
        power_w=_first(card, powers),
        power_limit_w=figure(card.get("max graphics package power (w)")),
        sm_clock_mhz=count(card.get("sclk clock speed")),
        max_sm_clock_mhz=_highest(card.get("valid sclk range")),
        utilization=None if use is None else use / 100,
        pcie=_pcie(card),
        pcie_replays=count(card.get("pcie replay count")),
    )


def _first(card: Mapping[str, object], keys: tuple[str, ...]) -> float | None:
    return next((value for key in keys if (value := figure(card.get(key))) is not None), None)


def _highest(text: object) -> int | None:
    found = _RANGE.fullmatch(text.strip()) if isinstance(text, str) else None
    return count(found[1]) if found else None


def _pcie(card: Mapping[str, object]) -> LinkCapability | None:
    """The link as it runs: ``1 (8.0GT/s x16)`` or ``8.0GT/s, x16 619Mhz``."""
    for key in ("pcie clock level", "pcie clock speed"):
        text = card.get(key)
        found = _LINK.search(text[:80]) if isinstance(text, str) else None
        if found:
            return LinkCapability(
                current_gigatransfers_per_s=float(found[1]), current_lanes=int(found[2])
            )
    return None
