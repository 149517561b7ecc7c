"""How the ranks talked to one another, summed up over all processes."""

from collections import Counter
from collections.abc import Iterable

from ncdiag.model.finding import Network
from ncdiag.model.log import LogEvidence

ON, OFF, MIXED, UNKNOWN = "on", "off", "mixed", "unknown"


def network(evidence: LogEvidence) -> Network:
    """The network in use, its devices, and which of its features are on."""
    processes = evidence.processes
    names = Counter(name for process in processes for name in process.networks)
    return Network(
        name=names.most_common(1)[0][0] if names else None,
        transports=tuple(sorted({head for p in processes for head in p.transports})),
        nics=tuple(dict.fromkeys(nic for p in processes for nic in p.nics)),
        gdr=_gdr(
            sum(process.gdr_channels for process in processes),
            sum(process.plain_channels for process in processes),
        ),
        nvls=_feature(process.nvls for process in processes),
        sharp=_feature(process.sharp for process in processes),
    )


def _gdr(direct: int, plain: int) -> str:
    """GPUDirect as the channel lines have it: on all of them, some, none, or no such line."""
    if direct and plain:
        return MIXED
    if direct:
        return ON
    return OFF if plain else UNKNOWN


def _feature(told: Iterable[bool | None]) -> str:
    """On where any process says so, else off where any says that."""
    known = {state for state in told if state is not None}
    if not known:
        return UNKNOWN
    return ON if True in known else OFF
