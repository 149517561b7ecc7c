"""Which NIC of a host is on which rail."""

from ncdiag.model.host import Host, HostFacts, Nic


def nics_by_rail(host: Host, facts: HostFacts) -> dict[int, Nic]:
    """NICs by rail: their place in the hosts file, so that a missing NIC shifts no other."""
    if not host.nics:
        return dict(enumerate(facts.nics))
    return {host.nics.index(nic.name): nic for nic in facts.nics if nic.name in host.nics}
