"""What GPUs send to single peers, where links join them in pairs and no switch does."""

from collections import Counter
from collections.abc import Iterable

from ncdiag.expect import network
from ncdiag.expect.derivation import Limit, Term, counted, least, of_line, product
from ncdiag.expect.machine import GpuFabric, Machine

_ONE_MESSAGE = 1.0


def peers_limit(
    machine: Machine, pairs: Iterable[tuple[int, int]], share: float, what: str
) -> Limit | None:
    """Algorithm bandwidth when all ``pairs`` exchange ``share`` of the size at the same time.

    The slowest of them decides. What has no link of its own goes by the GPU that is best joined to
    both, as NCCL does it, and takes room on those links; else through PCIe. ``None`` where nobody
    says how the GPUs are joined.
    """
    fabric = machine.fabric
    if fabric is None or fabric.switched:
        return _alone(_one_gpu(machine), share, what)
    loads: Counter[tuple[int, int]] = Counter()
    by_host: Counter[int] = Counter()
    for first, second in pairs:
        between = fabric.between(first, second)
        if between is None:
            by_host[first] += 1
        else:
            loads.update(((first, second),) if between == second else _legs(first, between, second))
    limits = []
    if loads:
        busiest = min(loads, key=lambda pair: fabric.links_between(*pair) / loads[pair])
        links = _links(fabric, fabric.links_between(*busiest))
        limits.append(_alone(links, share, what, loads[busiest]))
    if by_host:
        through = network.gpu_to_gpu_by_host(machine)
        limits.append(_alone(through, share, what, max(by_host.values())))
    return least(limit for limit in limits if limit is not None) if any(limits) else None


def _legs(first: int, between: int, second: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (first, between), (between, second)


def _one_gpu(machine: Machine) -> Limit | None:
    fabric = machine.fabric
    return network.gpu_to_gpu_by_host(machine) if fabric is None else _links(fabric, fabric.links)


def _links(fabric: GpuFabric, links: int) -> Limit:
    where = "of one GPU" if fabric.switched else "of the slowest pair"
    line = product(
        f"{fabric.name} {where}", counted(links, "link"), Term(fabric.effective_gb_per_s, "GB/s")
    )
    return of_line(fabric.name, line)


def _alone(
    limit: Limit | None, share: float, what: str, messages: float = _ONE_MESSAGE
) -> Limit | None:
    """``limit`` as algorithm bandwidth, for so many messages of ``share`` of the size."""
    if limit is None:
        return None
    terms = [Term(share, "of the size", inverse=True)]
    if messages != _ONE_MESSAGE:
        terms.append(Term(messages, "messages on one way", inverse=True))
    return limit.then(f"{what}, by {limit.resource}", *terms)
