"""What two hosts, or two GPUs, should exchange: rail by rail, by NVLink, PCIe or the network."""

from dataclasses import dataclass

from ncdiag.expect import network
from ncdiag.expect.collective import Conditions
from ncdiag.expect.derivation import Limit, Line, Term, counted, least, of_line, product
from ncdiag.expect.machine import GpuFabric, Machine
from ncdiag.model.errors import UndecidedError, UsageError

# What a copy engine gets out of NVLink, of what the links signal: 274 of 300 GB/s on A100, 376 and
# 396 of 450 on H100 and H200, 784 of 900 there both ways, 770 of 900 on GB200 (ml-engineering,
# network/; Azure AI-benchmarking-guide, issue 7). It is near to what packets of 256 bytes leave on
# PCIe, and the same for all generations.
NVLINK_COPY_SHARE = 0.87


@dataclass(frozen=True, slots=True, kw_only=True)
class RailExpectation:
    """One rail, from NIC to NIC, each way."""

    rail: int
    source: str
    target: str
    gb_per_s: float
    binding: str
    derivation: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairExpectation:
    """Two hosts: each rail, and all together for all GPUs, each way."""

    source: str
    target: str
    rails: tuple[RailExpectation, ...]
    gb_per_s: float
    binding: str
    derivation: tuple[Line, ...]
    unmatched: int
    """Rails that only one of the two has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPairExpectation:
    """Two GPUs, each way: what NCCL's kernels reach, and copies (``None``: as well as kernels).

    ``way`` says in words how the bytes go.
    """

    source: str
    target: str
    way: str
    gb_per_s: float
    copy_gb_per_s: float | None
    binding: str
    derivation: tuple[Line, ...]


def expect_hosts(
    source: Machine, target: Machine, *, conditions: Conditions | None = None
) -> PairExpectation:
    """Derive what two hosts exchange; rails are matched by their order.

    Raises :class:`UndecidedError` where one of them has no NIC that tells its speed.
    """
    conditions = conditions or Conditions()
    mtu = network.check_mtu(conditions.mtu_bytes)
    for machine in (source, target):
        if not machine.rails:
            raise UndecidedError(f"{machine.name} has no NIC that tells its speed")
    rails = []
    for number, (one, other) in enumerate(zip(source.rails, target.rails, strict=False)):
        limit = least(
            network.rail_limit(machine, rail, gdr=conditions.gdr, mtu_bytes=mtu)
            for machine, rail in ((source, one), (target, other))
        )
        rails.append(
            RailExpectation(
                rail=number,
                source=one.name,
                target=other.name,
                gb_per_s=limit.gb_per_s,
                binding=limit.resource,
                derivation=limit.lines,
            )
        )
    whole = least(
        network.host_limit(machine, max(machine.gpus, 1), gdr=conditions.gdr, mtu_bytes=mtu)
        for machine in (source, target)
    )
    return PairExpectation(
        source=source.name,
        target=target.name,
        rails=tuple(rails),
        gb_per_s=whole.gb_per_s,
        binding=whole.resource,
        derivation=whole.lines,
        unmatched=abs(len(source.rails) - len(target.rails)),
    )


def expect_gpus(machine: Machine, first: int, second: int) -> GpuPairExpectation:
    """Derive what two GPUs of one host exchange.

    Raises :class:`UsageError` for GPUs that are not there, :class:`UndecidedError` where the
    source does not say how they are joined.
    """
    for gpu in (first, second):
        _check_gpu(machine, gpu)
    if first == second:
        raise UsageError(f"GPU {first} is no pair; name two")
    fabric = machine.fabric
    links = 0 if fabric is None else fabric.links_between(first, second)
    if fabric is not None and links:
        limit, copy = _linked(fabric, links), _copied(fabric, links)
        way = f"{fabric.name}{' through switches' if fabric.switched else ''}, {links} links"
    elif fabric is not None and (between := fabric.between(first, second)) is not None:
        links = min(fabric.links_between(first, between), fabric.links_between(between, second))
        limit, copy = _linked(fabric, links), None
        way = f"{fabric.name} through GPU {between}, {links} links"
    else:
        by_host = network.gpu_to_gpu_by_host(machine) if machine.fabric_known else None
        if by_host is None:
            raise UndecidedError(f"{machine.name} does not say how its GPUs are joined")
        limit, copy, way = by_host, None, f"{machine.host_path}"
    return GpuPairExpectation(
        source=f"{machine.name} GPU {first}",
        target=f"{machine.name} GPU {second}",
        way=way,
        gb_per_s=limit.gb_per_s,
        copy_gb_per_s=None if copy is None else copy.gb_per_s,
        binding=limit.resource,
        derivation=limit.lines if copy is None else (*limit.lines, copy),
    )


def expect_far_gpus(
    source: Machine,
    target: Machine,
    first: int,
    second: int,
    *,
    pxn: bool = True,
    conditions: Conditions | None = None,
) -> GpuPairExpectation:
    """Derive what GPU ``first`` of one host sends to GPU ``second`` of another by one NIC.

    With PXN it goes by NVLink to the GPU beside the NIC on the receiver's rail, and so stays on
    that rail; without, it leaves by its own NIC and crosses rails in the network. Raises as
    :func:`expect_gpus` does.
    """
    conditions = conditions or Conditions()
    mtu = network.check_mtu(conditions.mtu_bytes)
    _check_gpu(source, first)
    _check_gpu(target, second)
    own, theirs = source.rails_near(first), target.rails_near(second)
    if not own or not theirs:
        raise UndecidedError(f"{(target if own else source).name} has no NIC near that GPU")
    leaving, way, over_links = _leave(source, first, theirs[0], pxn=pxn)
    ends = ((source, source.rails[leaving]), (target, target.rails[theirs[0]]))
    limit = least(
        [
            *(
                network.rail_limit(machine, rail, gdr=conditions.gdr, mtu_bytes=mtu)
                for machine, rail in ends
            ),
            *over_links,
        ]
    )
    return GpuPairExpectation(
        source=f"{source.name} GPU {first}",
        target=f"{target.name} GPU {second}",
        way=way,
        gb_per_s=limit.gb_per_s,
        copy_gb_per_s=None,
        binding=limit.resource,
        derivation=limit.lines,
    )


def _leave(
    source: Machine, gpu: int, arriving: int, *, pxn: bool
) -> tuple[int, str, tuple[Limit, ...]]:
    """The rail a GPU leaves its host by for one of the receiver's, the way in words, NVLink."""
    own = source.rails_near(gpu)
    if arriving in own:
        return arriving, f"rail {arriving}", ()
    helper = _gpu_beside(source, arriving)
    if pxn and source.fabric is not None and helper is not None:
        links = source.fabric.links_between(gpu, helper)
        if links:
            way = f"PXN: {source.fabric.name} to GPU {helper}, then rail {arriving}"
            return arriving, way, (_linked(source.fabric, links),)
    return own[0], f"rail {own[0]} to rail {arriving}: crosses rails in the network", ()


def _check_gpu(machine: Machine, gpu: int) -> None:
    if not machine.gpus:
        raise UndecidedError(f"{machine.name} shows no GPU")
    if not 0 <= gpu < machine.gpus:
        raise UsageError(
            f"{machine.name} has no GPU {gpu}; it has {machine.gpus}, and they count from 0"
        )


def _gpu_beside(machine: Machine, rail: int) -> int | None:
    return next((gpu for gpu in range(machine.gpus) if rail in machine.rails_near(gpu)), None)


def _linked(fabric: GpuFabric, links: int) -> Limit:
    line = product(
        f"{fabric.name} between the GPUs",
        counted(links, "link"),
        Term(fabric.effective_gb_per_s, "GB/s"),
        why="what a kernel gets out of the links",
    )
    return of_line(fabric.name, line)


def _copied(fabric: GpuFabric, links: int) -> Line | None:
    """What copy engines reach; ``None`` for links whose copies nobody published."""
    if fabric.name != "NVLink":
        return None
    return product(
        "copied by copy engines",
        counted(links, "link"),
        Term(fabric.raw_gb_per_s, "GB/s"),
        Term(NVLINK_COPY_SHARE, "packets"),
        why="as pair copies of nvbandwidth and p2pBandwidthLatencyTest measure",
    )
