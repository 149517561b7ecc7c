"""Access Control Services of a PCIe bridge, from its configuration space.

A bridge that redirects requests or completions sends what one GPU or adapter writes to another up
to the root and back, which costs peer-to-peer most of its bandwidth.
"""

from typing import Final

# PCI Express Base Specification, Extended Capabilities: they begin behind the first 256 bytes, each
# with a header of 32 bits: identity, version, offset of the next.
EXTENDED: Final = 0x100
WHOLE: Final = 4096
_ACS: Final = 0x000D
_CONTROL: Final = 6
# ACS Control: P2P Request Redirect is bit 2, P2P Completion Redirect bit 3.
_REDIRECTS: Final = 0b1100


def acs_redirects(config: bytes) -> bool | None:
    """Whether the bridge redirects; ``None`` where its space cannot be read that far.

    Without root the kernel gives the first 64 bytes; a device that is gone reads as all ones.
    """
    if len(config) < EXTENDED + 4 or config[:2] == b"\xff\xff":
        return None
    at, seen = EXTENDED, set[int]()
    while EXTENDED <= at <= len(config) - 8 and at not in seen:
        seen.add(at)
        header = int.from_bytes(config[at : at + 4], "little")
        if header in {0, 0xFFFFFFFF}:
            return False
        if header & 0xFFFF == _ACS:
            control = int.from_bytes(config[at + _CONTROL : at + _CONTROL + 2], "little")
            return bool(control & _REDIRECTS)
        at = header >> 20 & ~3
    return False
