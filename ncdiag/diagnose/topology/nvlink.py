"""NVLink and xGMI: GPUs with fewer links than their like, and links that contradict themselves."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ncdiag.diagnose.topology.findings import degraded, fatal, info, sides
from ncdiag.diagnose.topology.machine import GPU_CLASSES, NVSWITCH_CLASS, Machine, is_invented
from ncdiag.diagnose.topology.peers import LEAST_ALIKE, ONE_ODD_OF, below_the_usual, by, listed
from ncdiag.expect.gpu_links import nvlink_generation
from ncdiag.model.topology import Gpu, GpuLink, GpuLinkKind, TopologyFinding
from ncdiag.model.units import format_count

# A part split in two (mlopart) states the links of both halves.
_HALVES = 2
# Every pair is looked at up to this many GPUs (a rack has 72 or 144).
_MOST_PAIRED = 256
_MISSING = "nvlink_missing"
_TARGET = "nvlink_target_contradiction"


def check_links(machine: Machine) -> Iterator[TopologyFinding]:
    """Yield what is wrong with the links between GPUs."""
    counts = _counts(machine)
    lopsided = _lopsided(machine, counts)
    for a, b, there, back in lopsided:
        fewer, more = ((a, b), (b, a))[there > back]
        yield degraded(
            "nvlink_asymmetric",
            machine.gpu_where(fewer),
            f"{machine.gpu_label(fewer)} states {format_count(min(there, back), 'link')} to "
            f"{machine.gpu_label(more)}, which states {max(there, back)} back",
        )
    named = {gpu.pci for pair in lopsided for gpu in pair[:2]}
    for like in by(_with_element(machine), lambda gpu: _kind(machine, gpu)).values():
        yield from _missing(machine, like, named, counts, _told_of(lopsided))
        yield from _unreadable(machine, like)
        yield from _impossible(machine, like)
    yield from _contradictions(machine)


def total(gpu: Gpu) -> int | None:
    """Return all links of a GPU; ``None`` where a row has no count."""
    counts = [link.count for link in gpu.links]
    return None if None in counts else sum(count or 0 for count in counts)


def _with_element(machine: Machine) -> tuple[Gpu, ...]:
    gpus = [gpu for gpu in machine.topology.gpus if gpu.has_element]
    return tuple(sorted(gpus, key=lambda gpu: (gpu.index or 0, machine.gpu_where(gpu))))


def _kind(machine: Machine, gpu: Gpu) -> tuple[object, ...]:
    device = machine.topology.pci[gpu.pci]
    return gpu.sm, gpu.gcn, device.vendor, device.device, gpu.mlopart is None


def _told_of(lopsided: Sequence[tuple[Gpu, Gpu, int, int]]) -> dict[int, int]:
    """Return, by PCI device, the links that one row lacks which the other end contradicts."""
    short: dict[int, list[int]] = {}
    for a, b, there, back in lopsided:
        short.setdefault((a if there < back else b).pci, []).append(abs(there - back))
    return {pci: lacks[0] for pci, lacks in short.items() if len(lacks) == 1}


def _missing(
    machine: Machine,
    like: Sequence[Gpu],
    named: set[int],
    counts: Counter[tuple[int, int]],
    contradicted: Mapping[int, int],
) -> Iterator[TopologyFinding]:
    result = below_the_usual(_totals(like))
    if result is None:
        return
    paired = _in_pairs(like)
    for gpu, number in result.odd:
        count = int(number)
        # A single row that its other end contradicts is told as such: nothing else speaks for it.
        if count and count + contradicted.get(gpu.pci, 0) >= result.usual:
            continue
        most = "at most " if total(gpu) is None else ""
        seen = f"{machine.gpu_label(gpu)} has {most}{_links_of(like, count)}"
        against = f"{result.agree} of the {result.total} GPUs like it have {int(result.usual)}"
        if result.agree < result.total and len(result.groups) > 2:
            against += " or more"
        make = degraded if count else fatal
        if paired and not count:
            make, against = info, f"{against}, by bridges between pairs; one may not be fitted"
        elif not count and gpu.c2c_gb_per_s:
            against = f"{against}; only C2C is left"
        yield make(_MISSING, machine.gpu_where(gpu), f"{seen}; {against}")
    if not result.odd:
        yield from _unclear(machine, like, named, counts)


def _totals(like: Sequence[Gpu]) -> list[tuple[Gpu, float]]:
    """Return the links of each GPU that states them, and of others that have fewer in any case.

    A row without a count has at most as many links as any row of the GPUs like it.
    """
    known = [(gpu, float(count)) for gpu in like if (count := total(gpu)) is not None]
    usual = max((count for _, count in known), default=0.0)
    row = max((link.count or 0 for gpu in like for link in gpu.links), default=0)
    most = [
        (gpu, float(sum(row if link.count is None else link.count for link in gpu.links)))
        for gpu in like
        if total(gpu) is None
    ]
    return known + [(gpu, count) for gpu, count in most if count < usual]


def _unreadable(machine: Machine, like: Sequence[Gpu]) -> Iterator[TopologyFinding]:
    """Yield GPUs with a row whose count is no number: NCCL would take it for none."""
    unknown = [gpu for gpu in like if total(gpu) is None]
    few = len(unknown) * ONE_ODD_OF <= len(like) and len(like) - len(unknown) >= LEAST_ALIKE
    for gpu in unknown if few else unknown[:1]:
        rows = [link.target or "?" for link in gpu.links if link.count is None]
        yield (degraded if few else info)(
            "nvlink_count_unknown",
            machine.gpu_where(gpu),
            f"{machine.gpu_label(gpu)} states no number of links to {listed(rows)}; "
            f"{len(like) - len(unknown)} of the {len(like)} GPUs like it state all of theirs",
        )


def _unclear(
    machine: Machine, like: Sequence[Gpu], named: set[int], counts: Counter[tuple[int, int]]
) -> Iterator[TopologyFinding]:
    """Yield what can be said where no majority of GPUs agrees: an odd pair, or that they differ."""
    result = below_the_usual(_pair_counts(like, counts))
    if result is not None and result.odd and result.usual:
        for (a, b), count in result.odd:
            if not {a.pci, b.pci} <= named:
                yield degraded(
                    _MISSING,
                    machine.gpu_where(a),
                    f"{_number(int(count), 'link')} between {machine.gpu_label(a)} and "
                    f"{machine.gpu_label(b)}; {result.agree} of the {result.total} pairs of GPUs "
                    f"have {int(result.usual)}",
                )
        return
    # Boards of AMD have GPUs with unlike numbers of links by design.
    if any(link.kind is GpuLinkKind.XGMI for gpu in like for link in gpu.links):
        return
    if all(gpu.pci in named for gpu in like) or _in_pairs(like):
        return
    groups = by([gpu for gpu in like if total(gpu) is not None], total)
    yield info(
        _MISSING,
        machine.gpu_where(min(like, key=lambda gpu: total(gpu) or 0)),
        "GPUs of one kind differ in NVLinks and no majority says what is right: "
        + sides(groups, lambda count: format_count(count or 0, "link"), machine.gpu_label),
    )


def _pair_counts(
    like: Sequence[Gpu], counts: Counter[tuple[int, int]]
) -> list[tuple[tuple[Gpu, Gpu], float]]:
    if len(like) > _MOST_PAIRED:
        return []
    pairs = [(a, b) for at, a in enumerate(like) for b in like[at + 1 :]]
    return [((a, b), counts[a.pci, b.pci]) for a, b in pairs]


def _in_pairs(like: Sequence[Gpu]) -> bool:
    """Whether links go from one GPU to one other: bridges, which need not be fitted."""
    linked = [gpu for gpu in like if gpu.links]
    return bool(linked) and all(
        len(gpu.links) == 1
        and gpu.links[0].target_class != NVSWITCH_CLASS
        and not is_invented(gpu.links[0].target)
        for gpu in linked
    )


def _links_of(like: Sequence[Gpu], count: int) -> str:
    xgmi = any(link.kind is GpuLinkKind.XGMI for gpu in like for link in gpu.links)
    return _number(count, "xGMI link" if xgmi else "NVLink")


def _number(count: int, thing: str) -> str:
    return format_count(count, thing) if count else f"no {thing}s"


def _by_busid(machine: Machine) -> dict[tuple[str, str], int]:
    """Return the PCI device of each GPU's bus id on its host, where only one device has it."""
    devices = by(
        {gpu.pci for gpu in machine.topology.gpus},
        lambda pci: (machine.host(machine.topology.pci[pci].cpu), machine.topology.pci[pci].busid),
    )
    return {
        (host, busid): found[0]
        for (host, busid), found in devices.items()
        if busid is not None and len(found) == 1
    }


def _counts(machine: Machine) -> Counter[tuple[int, int]]:
    """Return links from PCI device to PCI device, between the GPUs of the file."""
    devices = _by_busid(machine)
    counts: Counter[tuple[int, int]] = Counter()
    for gpu in machine.topology.gpus:
        host = machine.host(machine.cpu(gpu))
        for link in gpu.links:
            target = devices.get((host, link.target or ""))
            if target is not None and target != gpu.pci and link.count is not None:
                counts[gpu.pci, target] += link.count
    return counts


def _lopsided(
    machine: Machine, counts: Counter[tuple[int, int]]
) -> list[tuple[Gpu, Gpu, int, int]]:
    gpus = {gpu.pci: gpu for gpu in machine.topology.gpus if gpu.has_element}
    unsure = {gpu.pci for gpu in machine.topology.gpus if total(gpu) is None}
    unique = set(_by_busid(machine).values())
    pairs = {(min(pair), max(pair)) for pair in counts}
    return [
        (gpus[a], gpus[b], counts[a, b], counts[b, a])
        for a, b in sorted(pairs)
        if counts[a, b] != counts[b, a]
        and {a, b} <= gpus.keys()
        and {a, b} <= unique
        and not {a, b} & unsure
    ]


def _most_nvlinks(gpu: Gpu) -> int | None:
    """Return the most NVLinks a GPU can have; ``None`` where that is not known."""
    generation = nvlink_generation(gpu)
    if generation is None:
        return None
    return generation.most_links * (_HALVES if gpu.mlopart is not None else 1)


def _impossible(machine: Machine, like: Sequence[Gpu]) -> Iterator[TopologyFinding]:
    most = _most_nvlinks(like[0])
    if most is None:
        return
    over = [(gpu, count) for gpu in like if (count := total(gpu)) is not None and count > most]
    if not over:
        return
    gpu, count = over[0]
    if len(over) == len(like):
        yield info(
            "nvlink_count_impossible",
            machine.gpu_where(gpu),
            f"all {len(like)} GPUs state more NVLinks than the {most} their generation has "
            f"(sm {gpu.sm}); {machine.gpu_label(gpu)} states {count}",
        )
        return
    for gpu, count in over:
        yield degraded(
            "nvlink_count_impossible",
            machine.gpu_where(gpu),
            f"{machine.gpu_label(gpu)} states {count} NVLinks; its generation (sm {gpu.sm}) has "
            f"{most}, and {len(like) - len(over)} of the {len(like)} GPUs like it state no more",
        )


def _contradictions(machine: Machine) -> Iterator[TopologyFinding]:
    """Yield links whose class says switch and whose target is a GPU, or whose target is nowhere."""
    gpus = _with_element(machine)
    known = {
        (machine.host(device.cpu), device.busid): index
        for index, device in enumerate(machine.topology.pci)
    }
    owners = {gpu.pci for gpu in machine.topology.gpus}
    called_switch: list[tuple[Gpu, str]] = []
    nowhere: list[tuple[Gpu, str]] = []
    for gpu in gpus:
        host = machine.host(machine.cpu(gpu))
        for link in gpu.links:
            found = known.get((host, link.target))
            if found in owners and link.target_class == NVSWITCH_CLASS:
                called_switch.append((gpu, link.target or ""))
            elif found is None and _should_be_here(link):
                nowhere.append((gpu, link.target or ""))
    wrong = len({gpu.pci for gpu, _ in called_switch})
    few = wrong * ONE_ODD_OF <= len(gpus)
    for gpu, target in called_switch if few else called_switch[:1]:
        yield (degraded if few else info)(
            _TARGET,
            machine.gpu_where(gpu),
            f"{machine.gpu_label(gpu)} states a switch (class 0x068000) at {target}, where a GPU "
            f"is; of {len(gpus)} GPUs, such a row is on {wrong}",
        )
    if nowhere:
        gpu, target = nowhere[0]
        yield info(
            _TARGET,
            machine.gpu_where(gpu),
            f"{machine.gpu_label(gpu)} has links to {target}, which is no device of this file; "
            f"of {len(gpus)} GPUs, such links are on {len({gpu.pci for gpu, _ in nowhere})} (GPUs "
            "that this communicator does not use are left out)",
        )


def _should_be_here(link: GpuLink) -> bool:
    """Whether a link's target should be in the file: GPUs are, switches are not."""
    return (
        link.target is not None
        and link.target_class is not None
        and link.target_class >> 16 in GPU_CLASSES
        and not is_invented(link.target)
    )
