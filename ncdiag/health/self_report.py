"""A host tells what it is: run on each host by a launcher, it answers one question and ends.

Started as ``python -P -m ncdiag.health.self_report --host NAME``; the question is a line of JSON on
standard input, the same for all hosts, and the answer are marked lines on standard output.
"""

import base64
import os
import re
import sys
from typing import Final

import msgspec

from ncdiag.cluster.own_name import own_name
from ncdiag.health.addresses import is_loopback, source_address_towards
from ncdiag.health.facts import collect
from ncdiag.health.nearest_gpu import nearest_gpu
from ncdiag.health.nics import routed_nic
from ncdiag.model.host import HostFacts, Nic

MODULE = "ncdiag.health.self_report"
_MARK = b"ncdiag-host: "
# Launchers that merge the output of many hosts keep a line of this whole: slurmd passes on 1024
# bytes at a time, with its label, and a report is several times that.
_PIECE_BYTES = 600
_PIECE: Final = re.compile(
    re.escape(_MARK) + rb"(?P<host>\S+) (?P<number>\d{1,4})/(?P<of>\d{1,4}) (?P<piece>\S+)"
)


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
    """Several short lines, each marked: the host, which piece of how many, and the piece."""
    text = base64.b64encode(msgspec.json.encode(report))
    pieces = [text[at : at + _PIECE_BYTES] for at in range(0, len(text), _PIECE_BYTES)]
    host = report.host.encode()
    return b"".join(
        b"%s%s %d/%d %s\n" % (_MARK, host, number, len(pieces), piece)
        for number, piece in enumerate(pieces, start=1)
    )


class Reports:
    """Puts reports together from the lines of many hosts, in whatever order they come."""

    def __init__(self) -> None:
        self._pieces: dict[bytes, dict[int, bytes]] = {}

    def hear(self, line: bytes) -> SelfReport | None:
        """The report that this line completes; ``None`` for whatever else is printed on a host."""
        found = _PIECE.search(line)
        if found is None:
            return None
        number, of = int(found["number"]), int(found["of"])
        pieces = self._pieces.setdefault(found["host"], {})
        pieces[number] = found["piece"]
        if not all(one in pieces for one in range(1, of + 1)):
            return None
        try:
            text = base64.b64decode(b"".join(pieces[one] for one in range(1, of + 1)))
            return msgspec.json.decode(text, type=SelfReport)
        except (ValueError, msgspec.MsgspecError):
            return None


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
