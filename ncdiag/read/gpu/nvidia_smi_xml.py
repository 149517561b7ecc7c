"""``nvidia-smi -q -x``: one element a GPU, whose names and layout changed over the drivers.

Old names stand beside new ones. What this GPU does not have, or the driver could not read, is not
known; a GPU of which the driver could read nothing is lost.
"""

import re
from collections.abc import Sequence
from typing import Final

from ncdiag.model.gpu_parts import EccCounts, GpuProcess, LinkCapability, RetiredMemory
from ncdiag.model.health import GpuHealth
from ncdiag.read.gpu import values, words
from ncdiag.read.gpu.reading import MAX_GPUS, GpuReport, GpuReportError, with_vbios
from ncdiag.read.gpu.values import count, figure, name, switch, word
from ncdiag.read.gpu.xml_tree import MAX_BYTES, Node, parse
from ncdiag.read.topology.text import bus_id

_ROOT: Final = "nvidia_smi_log"
_BEGINS: Final = re.compile(rb"<\?xml|<!DOCTYPE nvidia_smi_log|<nvidia_smi_log")
# One for every pair of clocks: most of a report, and of no use here.
_SKIPPED: Final = frozenset({"supported_clocks", "accounted_processes"})
# Printed before the report, or in place of it, where a GPU fell off the bus.
_UNREACHED: Final = re.compile(
    rb"Unable to determine the device handle for gpu[ \t]{0,4}"
    rb"(?:(?P<index>\d{1,4})(?![\d:]*:[0-9a-f]{2}[:.])[ \t:]{0,4})?"
    rb"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])?[ \t:]{0,4}"
    rb"(?P<reason>[^\r\n]{0,200})",
    re.IGNORECASE,
)
_LONGEST_PREFACE: Final = 64 << 10
_MAX_PROCESSES: Final = 1024
_RESET: Final = "GPU requires reset"
_LOST: Final = {"gpu is lost": "GPU is lost", "gpu requires reset": _RESET}


def read_nvidia_smi(data: bytes) -> GpuReport:
    """The GPUs of a report, those that could not be reached among them.

    Raises :class:`GpuReportError` for anything else, and for a report that is cut short.
    """
    if len(data) > MAX_BYTES:
        raise GpuReportError(f"larger than {MAX_BYTES >> 20} MiB: no report of nvidia-smi is")
    begin = _BEGINS.search(data)
    unreached = unreached_gpus(data[: begin.start()] if begin else data)
    if begin is None:
        if unreached:
            return GpuReport(gpus=unreached)
        raise GpuReportError("not the XML of nvidia-smi -q -x")
    root = parse(data[begin.start() :], _ROOT, _SKIPPED)
    listed = [node for node in root.children if node.name == "gpu"]
    if len(listed) > MAX_GPUS:
        raise GpuReportError(f"more than {MAX_GPUS} GPUs, which no host has")
    gpus = _numbered(listed, unreached)
    versions = {
        "driver": name(root.say("driver_version", "kmd_version")),
        "cuda": name(root.say("cuda_version", "cuda_umd_version")),
    }
    known = {key: value for key, value in versions.items() if value}
    return GpuReport(gpus=gpus, versions=with_vbios(known, gpus))


def unreached_gpus(said: bytes) -> tuple[GpuHealth, ...]:
    """The GPUs that nvidia-smi complains of in its own words instead of describing them."""
    found: dict[int, GpuHealth] = {}
    for match in _UNREACHED.finditer(said[:_LONGEST_PREFACE]):
        index = int(match["index"]) if match["index"] else len(found)
        address = match["address"]
        found[index] = GpuHealth(
            index=index,
            pci_address=bus_id(address.decode()) if address else None,
            lost=True,
            reason=" ".join(match["reason"].decode("utf-8", "replace").split()) or "not reached",
        )
    return tuple(found.values())


def _numbered(listed: Sequence[Node], unreached: Sequence[GpuHealth]) -> tuple[GpuHealth, ...]:
    """GPUs stand in the order of their numbers, and those that are not described have theirs."""
    taken = {gpu.index for gpu in unreached}
    free = (index for index in range(MAX_GPUS * 2) if index not in taken)
    described = [_gpu(node, next(free)) for node in listed]
    known = {gpu.pci_address for gpu in described}
    missing = [gpu for gpu in unreached if not gpu.pci_address or gpu.pci_address not in known]
    return tuple(sorted((*described, *missing), key=lambda gpu: gpu.index))


def _gpu(node: Node, index: int) -> GpuHealth:
    reason = _lost(node)
    limit, memory_limit = _temperature_limits(node)
    memory = node.child("fb_memory_usage") or Node("")
    power = node.child("gpu_power_readings") or node.child("power_readings") or Node("")
    utilization = figure(node.say("utilization/gpu_util"))
    recovery = _recovery(node)
    return GpuHealth(
        index=index,
        uuid=name(node.say("uuid")),
        name=name(node.say("product_name")),
        pci_address=bus_id(name(node.say("pci/pci_bus_id"))),
        serial=name(node.say("serial")),
        vbios=name(node.say("vbios_version")),
        lost=reason is not None,
        reason=reason,
        memory_total_bytes=count(memory.say("total")),
        memory_free_bytes=_free(memory),
        temperature_c=figure(node.say("temperature/gpu_temp")),
        temperature_limit_c=limit,
        memory_temperature_c=figure(node.say("temperature/memory_temp")),
        memory_temperature_limit_c=memory_limit,
        power_w=_first(power, "power_draw", "average_power_draw", "instant_power_draw"),
        power_limit_w=_first(power, "current_power_limit", "enforced_power_limit", "power_limit"),
        default_power_limit_w=figure(power.say("default_power_limit")),
        sm_clock_mhz=count(node.say("clocks/sm_clock")),
        max_sm_clock_mhz=count(node.say("max_clocks/sm_clock")),
        utilization=None if utilization is None else utilization / 100,
        throttle_reasons=_throttle_reasons(node),
        persistence_mode=switch(node.say("persistence_mode")),
        mig_mode=switch(node.say("mig_mode/current_mig")),
        ecc_mode=switch(node.say("ecc_mode/current_ecc")),
        compute_mode=name(node.say("compute_mode")),
        ecc=_ecc(node.child("ecc_errors")),
        retired=_retired(node),
        pcie=_pcie(node.at("pci/pci_gpu_link_info")),
        pcie_replays=count(node.say("pci/replay_counter")),
        processes=_processes(node.child("processes")),
        recovery_action=words.RESET if recovery is None and reason == _RESET else recovery,
        fabric_state=words.fabric_words(
            word(node.say("fabric/state")), word(node.say("fabric/status"))
        ),
    )


def _lost(node: Node) -> str | None:
    """Why the driver cannot reach this GPU; ``None`` where it can.

    "Unknown Error" also stands for a single sensor that is broken, so it takes all of them.
    """
    for part in node.children:
        if part.name != "processes":
            for one in part.walk():
                if (found := _LOST.get(word(one.text))) is not None:
                    return found
    vital = (
        node.say("temperature/gpu_temp"),
        node.say("utilization/gpu_util"),
        node.say("fb_memory_usage/total"),
        node.say("pci/pci_gpu_link_info/pcie_gen/current_link_gen"),
    )
    if any(map(values.is_broken, vital)) and all(figure(one) is None for one in vital):
        return "Unknown Error"
    return None


def _first(node: Node, *names: str) -> float | None:
    """The first figure of several that mean the same."""
    return next((value for one in names if (value := figure(node.say(one))) is not None), None)


def _free(memory: Node) -> int | None:
    free = count(memory.say("free"))
    if free is not None:
        return free
    total, used = count(memory.say("total")), count(memory.say("used"))
    return None if total is None or used is None else max(total - used, 0)


def _temperature_limits(node: Node) -> tuple[float | None, float | None]:
    """Where the GPU, and its memory, slow down.

    Drivers that give margins (T.Limit) say how many degrees are left, and at how many left the GPU
    slows down.
    """
    at = node.child("temperature") or Node("")
    limit = _first(at, "gpu_temp_slow_threshold", "gpu_temp_max_gpu_threshold")
    margin, now = figure(at.say("gpu_temp_tlimit")), figure(at.say("gpu_temp"))
    if limit is None and margin is not None and now is not None:
        slow = _first(at, "gpu_temp_slow_tlimit_threshold", "gpu_temp_max_gpu_tlimit_threshold")
        limit = None if slow is None else now + margin - slow
    return limit, figure(at.say("gpu_temp_max_mem_threshold"))


def _throttle_reasons(node: Node) -> tuple[str, ...] | None:
    listed = node.child("clocks_event_reasons") or node.child("clocks_throttle_reasons")
    found, known = [], False
    for one in listed.children if listed else ():
        state = switch(one.text)
        known |= state is not None
        if state:
            reason = re.sub(r"^clocks_(?:event|throttle)_reason_", "", one.name)
            found.append(reason.replace("display_clocks", "display_clock")[:64])
    return tuple(found) if known else None


def _ecc(errors: Node | None) -> EccCounts | None:
    """The counts of either layout: by kinds of error, or by kinds of memory (Turing and later)."""
    counts: dict[str, int | None] = {}
    for since in ("volatile", "aggregate"):
        found = (errors.child(since) if errors else None) or Node("")
        for kind, old in (("corrected", "single_bit"), ("uncorrected", "double_bit")):
            new = "_correctable" if kind == "corrected" else "_uncorrectable"
            if found.child(old):
                texts = [found.say(f"{old}/total", f"{old}/device_memory", old)]
            else:
                texts = [
                    one.text
                    for one in found.children
                    if one.name.startswith((f"sram{new}", f"dram{new}"))
                ]
            counts[f"{since}_{kind}"] = values.total(texts)
    if all(value is None for value in counts.values()):
        return None
    return EccCounts(**counts)


def _retired(node: Node) -> RetiredMemory | None:
    """Rows remapped (Ampere and later), else pages retired; repairs of channels count as well."""
    rows, errors = node.child("remapped_rows"), node.child("ecc_errors") or Node("")
    repair = switch(errors.say("channel_repair_pending"))
    broken = switch(errors.say("unrepairable_memory"))
    if rows is not None and rows.child("remapped_row_pending"):
        found = RetiredMemory(
            correctable=count(rows.say("remapped_row_corr")),
            uncorrectable=count(rows.say("remapped_row_unc")),
            pending=values.any_of((switch(rows.say("remapped_row_pending")), repair)),
            failure=values.any_of((switch(rows.say("remapped_row_failure")), broken)),
        )
    else:
        pages = node.child("retired_pages") or Node("")
        found = RetiredMemory(
            correctable=count(pages.say("multiple_single_bit_retirement/retired_count")),
            uncorrectable=count(pages.say("double_bit_retirement/retired_count")),
            pending=values.any_of(
                (switch(pages.say("pending_retirement", "pending_blacklist")), repair)
            ),
            failure=broken,
        )
    return None if found == RetiredMemory() else found


def _pcie(link: Node | None) -> LinkCapability | None:
    if link is None:
        return None
    found = LinkCapability(
        current_gigatransfers_per_s=_speed(link, "current_link_gen"),
        current_lanes=count(link.say("link_widths/current_link_width")),
        max_gigatransfers_per_s=_speed(link, "max_link_gen"),
        max_lanes=count(link.say("link_widths/max_link_width")),
    )
    return None if found == LinkCapability() else found


def _speed(link: Node, which: str) -> float | None:
    return values.gigatransfers(count(link.say(f"pcie_gen/{which}")))


def _processes(listed: Node | None) -> tuple[GpuProcess, ...] | None:
    """Those that compute; what only draws (``G``) is none of a job."""
    if listed is None or (not listed.children and word(listed.text) not in {"", "none"}):
        return None
    found = []
    for one in listed.children[:_MAX_PROCESSES]:
        pid, kind = count(one.say("pid")), one.say("type")
        if pid is None or (kind and "C" not in kind):
            continue
        memory = count(one.say("used_memory"))
        found.append(GpuProcess(pid=pid, name=name(one.say("process_name")), memory_bytes=memory))
    return tuple(found)


def _recovery(node: Node) -> int | None:
    """What the driver wants done; older ones say only whether a reset is wanted."""
    action = words.recovery_action(word(node.say("gpu_recovery_action")))
    if action is not None:
        return action
    reset = switch(node.say("gpu_reset_status/reset_required"))
    drain = switch(node.say("gpu_reset_status/drain_and_reset_recommended"))
    if reset is None and drain is None:
        return None
    return words.RESET if reset else words.DRAIN_AND_RESET if drain else 0
