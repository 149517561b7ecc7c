"""A host tells what it is: run on each host by a launcher, it answers one question and ends.

Started as ``python -P -m ncdiag.health.self_report --host NAME``; the question is a line of JSON on
standard input, the same for all hosts, and the answer are marked lines on standard output.
"""

import os
import sys

import msgspec

from ncdiag.cluster.answers import encode_answer
from ncdiag.cluster.own_name import own_name
from ncdiag.health.addresses import is_loopback, source_address_towards
from ncdiag.health.facts import collect
from ncdiag.health.nearest_gpu import nearest_gpu
from ncdiag.health.nics import routed_nic
from ncdiag.model.host import HostFacts, Nic

MODULE = "ncdiag.health.self_report"


class HostHint(msgspec.Struct, frozen=True):
    """What the driver knows of a host: the NICs that were asked for, and its address."""

    nics: tuple[str, ...] = ()
    address: str = ""


class Question(msgspec.Struct, frozen=True):
    """Say what you are; ``driver_addresses`` are where the driver can be reached, best first."""

    hosts: dict[str, HostHint]
    driver_addresses: tuple[str, ...] = ()


class SelfReport(msgspec.Struct, frozen=True, kw_only=True):
    """A host's facts, and what it takes to place a measurement.

    ``own_address`` is the one towards the driver; ``routed_nic`` the NIC that carries it;
    ``nearest_gpu`` maps a NIC's name to the index of the GPU next to it.
    """

    host: str
    facts: HostFacts
    own_address: str | None = None
    routed_nic: Nic | None = None
    nearest_gpu: dict[str, int] = {}


def encode_question(question: Question) -> bytes:
    """One line."""
    return msgspec.json.encode(question) + b"\n"


def encode_report(report: SelfReport) -> bytes:
    """The marked lines to print."""
    return encode_answer(report.host, msgspec.json.encode(report))


def decode_report(host: str, answer: bytes) -> SelfReport | None:
    """The report of ``host`` in an answer, ``None`` where it is no such thing."""
    try:
        report = msgspec.json.decode(answer, type=SelfReport)
    except msgspec.MsgspecError:
        return None
    return report if report.host == host else None


def self_report(host: str, question: Question) -> SelfReport:
    """What this host is; raises KeyError where the question does not know ``host``."""
    hint = question.hosts[host]
    own_address = _own_address(hint.address, question.driver_addresses)
    facts = collect(hint.nics, own_address)
    nics, _ = routed_nic(own_address)
    return SelfReport(
        host=host,
        facts=facts,
        own_address=own_address,
        routed_nic=nics[0] if nics else None,
        nearest_gpu={nic.name: nearest_gpu(nic, facts.gpus) for nic in facts.nics},
    )


def _own_address(address: str, driver_addresses: tuple[str, ...]) -> str | None:
    """The address peers can use: a loopback host's own, else the one on the way to the driver."""
    if is_loopback(address):
        return address
    ssh = os.environ.get("SSH_CONNECTION", "").split()
    if len(ssh) == 4 and not is_loopback(ssh[2]):
        return ssh[2]
    for driver in driver_addresses:
        if own := source_address_towards(driver):
            return own
    return None


def main() -> None:
    """Answer the question on standard input."""
    host = own_name()
    # Kept apart, since what we call may print as well.
    out = os.dup(1)
    os.dup2(2, 1)
    question = msgspec.json.decode(sys.stdin.buffer.readline(), type=Question)
    with os.fdopen(out, "wb") as stream:
        stream.write(encode_report(self_report(host, question)))


if __name__ == "__main__":
    main()
