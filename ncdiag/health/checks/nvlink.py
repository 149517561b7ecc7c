"""NVLinks of a host's GPUs, and the service that runs the switches between them."""

from collections.abc import Iterator, Sequence

from ncdiag.health.checks.check import (
    GPU_SOURCES,
    NVIDIA_SOURCES,
    Case,
    Check,
    Outcome,
    Silent,
    Trip,
    answering_gpus,
    counted,
    for_each_gpu,
    gpu_before,
    gpu_name,
    quoted,
    rises,
)
from ncdiag.model.finding import FindingClass
from ncdiag.model.gpu_parts import NvlinkFacts
from ncdiag.model.health import GpuHealth, PciKind, Severity, Source
from ncdiag.model.units import format_count

# Counters of what forward error correction did, which rise on every healthy link of NVLink 5, and
# of rates rather than events.
_NO_ERRORS = ("fec", "ber", "symbol", "bytes", "packets")
_MANAGERS = ("nvidia-fabricmanager", "nvidia-fabricmanager.service")


def _errors(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    """Above zero warns; rising is a fault."""
    links = [link for link in gpu.nvlinks or () if link.errors]
    if not links:
        return None
    earlier = gpu_before(gpu, case)
    before = {link.link: _events(link) for link in (earlier.nvlinks if earlier else None) or ()}
    trips = []
    for link in links:
        now = _events(link)
        rose = rises(now, before.get(link.link, {}))
        above = {name: number for name, number in now.items() if number > 0}
        if rose:
            text = f"NVLink {link.link} makes errors: {counted(rose)} between two readings"
            trips.append(Trip(text=text, measured=counted(rose), limit="0"))
        elif above:
            text = f"NVLink {link.link} has counted errors: {counted(above)}"
            trips.append(Trip(text=text, severity=Severity.WARNING, measured=counted(above)))
    return trips


def _events(link: NvlinkFacts) -> dict[str, int]:
    return {
        name: number
        for name, number in link.errors.items()
        if not any(part in name.lower() for part in _NO_ERRORS)
    }


def _down(case: Case) -> Iterator[Outcome]:
    gpus = [g for g in answering_gpus(case) if g.nvlinks and not g.mig_mode and _tells(g)]
    if not gpus:
        yield Silent("no GPU tells the state of an NVLink")
        return
    switched = is_switched(case)
    nowhere = not any(_active(gpu) for gpu in gpus)
    for gpu in gpus:
        down = _lost(gpu, case) or _unlike_peers(gpu, gpus, switched=switched, case=case)
        if nowhere and switched:
            down = {link.link for link in gpu.nvlinks or ()}
        if down:
            booting = " (the host has just booted: it may still be training)"
            yield Trip(
                text=_told(sorted(down)) + (booting if case.is_booting else ""),
                device=gpu_name(gpu),
                severity=Severity.WARNING if case.is_booting else Severity.FAULT,
            )


def _tells(gpu: GpuHealth) -> bool:
    return any(link.active is not None for link in gpu.nvlinks or ())


def _active(gpu: GpuHealth) -> set[int]:
    return {link.link for link in gpu.nvlinks or () if link.active}


def _inactive(gpu: GpuHealth) -> set[int]:
    return {link.link for link in gpu.nvlinks or () if link.active is False}


def is_switched(case: Case) -> bool:
    """Whether this host's GPUs are on NVSwitches, or on a board that has all links in use.

    A virtual machine that is given one GPU of such a board has nothing to link it to.
    """
    switches = any(device.kind is PciKind.NVSWITCH for device in case.facts.pci_devices)
    return switches or (
        len(case.facts.gpus) > 1
        and any(
            gpu.fabric_state is not None or "SXM" in (gpu.name or "").upper()
            for gpu in answering_gpus(case)
        )
    )


def uses_links(gpu: GpuHealth, case: Case) -> bool:
    """Whether this GPU is meant to have NVLinks up."""
    return not gpu.mig_mode and (bool(_active(gpu)) or is_switched(case))


def _lost(gpu: GpuHealth, case: Case) -> set[int]:
    """Links that were up in the earlier reading."""
    earlier = gpu_before(gpu, case)
    return _active(earlier) & _inactive(gpu) if earlier is not None else set()


def _unlike_peers(
    gpu: GpuHealth, gpus: Sequence[GpuHealth], *, switched: bool, case: Case
) -> set[int]:
    """Links that are down here and up on nearly all GPUs of this model.

    A card without a bridge has all its links down by design, so one that has none at all is left
    alone unless the host has switches.
    """
    if not _active(gpu) and not switched:
        return set()
    peers = [other for other in gpus if other.name == gpu.name]
    if len(peers) < case.limits.least_alike:
        return set()
    down = set()
    for link in _inactive(gpu):
        up = sum(link in _active(other) for other in peers)
        if (len(peers) - up) * case.limits.one_odd_of <= len(peers):
            down.add(link)
    return down


def _told(down: Sequence[int]) -> str:
    names = ", ".join(map(str, down[:8])) + (" ..." if len(down) > 8 else "")
    return f"{format_count(len(down), 'NVLink')} down: {names}"


def _manager(case: Case) -> Iterator[Outcome]:
    fabric = [(g, g.fabric_state) for g in answering_gpus(case) if g.fabric_state]
    service = next((case.facts.services[n] for n in _MANAGERS if n in case.facts.services), None)
    switches = any(device.kind is PciKind.NVSWITCH for device in case.facts.pci_devices)
    if not fabric and not (switches and service):
        yield Silent("no GPU tells a state of the fabric, and no switch with a service is here")
        return
    for gpu, state in fabric:
        if state != "completed":
            # A GPU that is split uses no NVLink.
            waits = state != "failed" and (case.is_booting or gpu.mig_mode)
            yield Trip(
                text=f"is not part of the NVLink fabric: {quoted(state)}",
                device=gpu_name(gpu),
                severity=Severity.WARNING if waits else Severity.FAULT,
                measured=quoted(state),
                limit="completed",
            )
    if switches and service and service != "active":
        yield Trip(
            text=f"NVSwitches are here, and nvidia-fabricmanager is {quoted(service)}",
            severity=_without_manager(service, case, joined=bool(fabric)),
            measured=quoted(service),
            limit="active",
        )


def _without_manager(state: str, case: Case, *, joined: bool) -> Severity:
    """GPUs that have joined work on; the service may also run in a container."""
    failed = state == "failed" and not joined and not case.is_booting
    return Severity.FAULT if failed else Severity.WARNING


CHECKS = (
    Check(
        id="nvlink_errors",
        title="NVLink errors",
        severity=Severity.FAULT,
        meaning="Counters above zero may be old. Errors that come between two readings are of a "
        "bad link, which slows every collective.",
        fix="nvidia-smi nvlink -e; drain, reseat or reset; the same link again: replace",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_errors, "no GPU counts errors of NVLinks"),
        class_=FindingClass.NVLINK_ERROR,
    ),
    Check(
        id="nvlink_down",
        title="NVLinks down",
        severity=Severity.FAULT,
        meaning="A link is down that was up before, or that is up on the GPUs like it. Cards "
        "without NVLink, or without a bridge, are not accused.",
        fix="nvidia-smi nvlink -s; reset the GPUs and restart nvidia-fabricmanager, else reboot",
        sources=NVIDIA_SOURCES,
        also=(Source.PCIE, Source.PROC),
        rule=_down,
        class_=FindingClass.NVLINK_ERROR,
    ),
    Check(
        id="fabric_manager",
        title="Fabric Manager",
        severity=Severity.FAULT,
        meaning="GPUs on NVSwitches work only once Fabric Manager has set up the switches; CUDA "
        "does not start without.",
        fix="systemctl status nvidia-fabricmanager; its version must be the driver's",
        sources=(*NVIDIA_SOURCES, Source.SERVICES),
        also=(Source.PCIE, Source.PROC),
        rule=_manager,
    ),
)
