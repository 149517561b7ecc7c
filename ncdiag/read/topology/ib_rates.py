"""InfiniBand generations: their names, what a lane carries, and the figures tools print for them.

The InfiniBand Architecture Specification, volume 1, 14.2.5.6 (PortInfo), and volume 2 for the
signalling rates; the figures are those of ``libibmad/dump.c``.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation; both rates are of one lane in Gbit/s, ``data`` after line coding."""

    name: str
    signalling_gbit_per_s: float
    data_gbit_per_s: float


# In the order of their speed.
GENERATIONS: Final = (
    Generation("SDR", 2.5, 2.0),  # 8b/10b
    Generation("DDR", 5.0, 4.0),
    Generation("QDR", 10.0, 8.0),
    Generation("FDR10", 10.3125, 10.0),  # 64b/66b
    Generation("FDR", 14.0625, 13.636),
    Generation("EDR", 25.78125, 25.0),
    Generation("HDR", 53.125, 50.0),  # PAM4, 256b/257b
    Generation("NDR", 106.25, 100.0),
    Generation("XDR", 212.5, 200.0),
)
# Four lanes as they are called, not as they signal: data sheets, sysfs.
_OF_FOUR_LANES: Final = {
    10: "SDR", 20: "DDR", 40: "QDR", 56: "FDR", 100: "EDR", 200: "HDR", 400: "NDR", 800: "XDR",
}  # fmt: skip
# PortInfo's LinkWidth and LinkSpeed, one bit each.
WIDTH_OF_BIT: Final = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
SPEED_OF_BIT: Final = {1: "SDR", 2: "DDR", 4: "QDR"}

_BY_NAME: Final = {one.name: one for one in GENERATIONS}
_ORDER: Final = {one.name: place for place, one in enumerate(GENERATIONS)}
_TOLERANCE: Final = 0.002  # 25.78 for 25.78125; QDR and FDR10 are 3 % apart


def is_generation(name: str) -> bool:
    """Whether ``name`` is that of a generation: ``HDR``."""
    return name in _BY_NAME


def order(name: str) -> int:
    """Place of a generation among all: the faster, the higher."""
    return _ORDER[name]


def data_gbit_per_s(lanes: int, name: str) -> float | None:
    """Gbit/s in one direction of ``lanes`` lanes of a generation; ``None`` if it is unknown."""
    generation = _BY_NAME.get(name)
    return None if generation is None else lanes * generation.data_gbit_per_s


def generation_of(gbit_per_s: float, lanes: int | None = None) -> str | None:
    """The generation that a printed figure means: the signalling rate of one lane, else a total.

    10 with four lanes is QDR, as ``iblinkinfo`` prints it, not four lanes of SDR; 100 is EDR.
    """
    for one in GENERATIONS:
        if abs(gbit_per_s / one.signalling_gbit_per_s - 1) < _TOLERANCE:
            return one.name
    if not lanes:
        return None
    for total, name in _OF_FOUR_LANES.items():
        if abs(gbit_per_s * 4 / lanes / total - 1) < _TOLERANCE:
            return name
    return None
