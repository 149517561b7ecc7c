"""Whether the record that a text ends in is one that was broken off."""

from collections.abc import Iterable

from ncdiag.model.topology import IbNode, TruncatedTopologyError
from ncdiag.read.topology.text import quoted


def refuse_cut_record(nodes: Iterable[IbNode], last: IbNode) -> None:
    """Raise ``TruncatedTopologyError`` where ``last`` lacks a port that could still have followed.

    Ports stand in the order of their numbers: one that is missing below the highest was left out
    by the tool, which is a fault of the fabric; one above it may be a fault of the file. So may a
    record without any port.
    """
    name = quoted(last.description or last.guid)
    listed = [port.number for port in last.ports]
    if not listed:
        raise TruncatedTopologyError(f"cut short: it ends with {name}, and no port of it")
    reached = listed[-1] if listed == sorted(listed) else 0
    known = set(listed)
    for node in nodes:
        for port in node.ports:
            number = port.peer_port
            if port.peer_guid != last.guid or number is None or number in known:
                continue
            if number > reached:
                raise TruncatedTopologyError(
                    f"cut short: it ends with {name}, before its port {number}, which "
                    f"{quoted(node.description or node.guid)} names"
                )
