"""The NVLinks of one GPU: which are up, and what they counted."""

from typing import Any, Final

from ncdiag.health.sources.gpu_nvml_queries import Nvml
from ncdiag.model.gpu_parts import NvlinkFacts

# nvml.h: the most links of any GPU at the time of Hopper, and Blackwell's with room.
_MAX_LINKS: Final = 18
_MOST_LINKS: Final = 64
# nvmlNvLinkErrorCounter_t, for NVLink 4 and before.
_COUNTERS: Final = {"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3}
# For NVLink 5 the same are values by number, one for each link.
_FIELDS: Final = {
    "malformed_packet": 206,
    "buffer_overrun": 207,
    "receive": 208,
    "receive_remote": 209,
    "receive_general": 210,
    "local_link_integrity": 211,
    "link_recovery": 215,
    "link_recovery_failed": 214,
}


def nvlinks(nvml: Nvml, handle: Any) -> tuple[NvlinkFacts, ...] | None:
    """Every link that the GPU has; ``None`` for one without, or where NVML does not tell."""
    number = min(nvml.constant("NVML_NVLINK_MAX_LINKS", _MAX_LINKS), _MOST_LINKS)
    states = {}
    for link in range(number):
        state = nvml.switch("nvmlDeviceGetNvLinkState", handle, link)
        if state is not None:
            states[link] = state
    old = new = True
    links = []
    for link, active in states.items():
        # A kind of counters that one link that is up does not have, none has.
        errors = _counted(nvml, handle, link) if old else {}
        old = old and (bool(errors) or not active)
        if not errors and new:
            errors = _fields(nvml, handle, link)
            new = bool(errors) or not active
        links.append(NvlinkFacts(link=link, active=active, errors=errors))
    return tuple(links) or None


def _counted(nvml: Nvml, handle: Any, link: int) -> dict[str, int]:
    found = {}
    for name, counter in _COUNTERS.items():
        value = nvml.count("nvmlDeviceGetNvLinkErrorCounter", handle, link, counter)
        if value is not None:
            found[name] = value
    return found


def _fields(nvml: Nvml, handle: Any, link: int) -> dict[str, int]:
    found = {}
    for name, field in _FIELDS.items():
        value = nvml.field(handle, field, link)
        if value is not None and value >= 0:
            found[name] = int(value)
    return found
