"""Rows for sockets, the rendezvous and the start-up."""

import re
from typing import NamedTuple

from ncdiag.model.finding import FindingClass as C
from ncdiag.read.line import Line
from ncdiag.read.signatures.fragments import (
    ERROR,
    PEER,
    TOLD,
    chain,
    echo,
    final,
    renamed,
    signature,
)

_BOOTSTRAP = re.compile(r"bootstrap", re.IGNORECASE)
_DATA = r"net_socket|net_ib|transport/net\b"
_NET_SOCKET = re.compile(rf"{_DATA}|NET/")

# The other end stopped; the rest says that it, or the way to it, is not there.
_RESET = r"Connection reset by peer|Broken pipe|Software caused connection abort"


def _context(values: dict[str, str], line: Line) -> dict[str, str]:
    """Note whose connection it was, where the line itself tells."""
    where = f"{line.location or ''} {line.function or ''} {line.text}"
    if _BOOTSTRAP.search(where):
        values["d_context"] = "bootstrap"
    elif _NET_SOCKET.search(where):
        values["d_context"] = "net_socket"
    return values


def _certain(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Refuse what any program may say: without the library's prefix its port must be there."""
    return values if line.level or "peer" not in values or "<" in line.text else None


def _bootstrap(values: dict[str, str], line: Line) -> dict[str, str] | None:
    return None if _context({}, line).get("d_context") == "net_socket" else _context(values, line)


def _data(values: dict[str, str], line: Line) -> dict[str, str] | None:
    return _context(values, line) if _context({}, line).get("d_context") == "net_socket" else None


class _Form(NamedTuple):
    """How a failed connection is told."""

    name: str
    versions: str
    needle: str
    pattern: str
    sample: str
    near_miss: str


_CONNECT_FORMS = (
    _Form(
        "connect-to",
        "all; 'Net :' up to 2.15, a function's name from 2.16",
        "onnect to ",
        rf"\b[Cc]onnect to {PEER} failed ?:? {ERROR}",
        "socketStartConnect: Connect to 10.9.0.4<40112> failed : Connection refused",
        "socketStartConnect: Connect to 10.9.0.4<40112> succeeded after 2 attempts",
    ),
    _Form(
        "connect-returned",
        "2.27 and later",
        "exceeded error retry count",
        rf"\bconnect to {PEER} returned {ERROR}, exceeded error retry count",
        "socketPollConnect: connect to 10.9.0.4<40112> returned No route to host, exceeded error "
        "retry count after 35 attempts",
        "socketPollConnect: connect to 10.9.0.4<40112> returned No route to host, retrying (2/34) "
        "after sleep for 200 msec",
    ),
    _Form(
        "connect-exceeded",
        "2.24 to 2.26",
        "exceeded error retry count",
        rf"\bconnect returned {ERROR}, exceeded error retry count",
        "socketPollConnect: connect returned Connection timed out, exceeded error retry count (35)",
        "socketPollConnect: connect returned Connection timed out, retrying (3/34) after sleep for "
        "300 msec",
    ),
    _Form(
        "connect-retries",
        "2.16 to 2.23",
        "Connect: exceeded ",
        r"socket(?:Poll|Start)Connect: (?P<error>exceeded (?:retries|timeouts))",
        "socketStartConnect: exceeded retries (20000)",
        "socketStartConnect: retries 20000",
    ),
    _Form(
        "connect-poll",
        "2.16 and later",
        "PollConnect",
        rf"[sS]ocketPollConnect(?: poll\(\)| to {PEER}) failed with error {ERROR}",
        "ncclOsSocketPollConnect to 10.9.0.4<40112> failed with error Connection refused",
        "socketPollConnect poll() returned 0, no POLLOUT events",
    ),
    _Form(
        "call-to-connect",
        "all",
        "Call to connect",
        rf"Call to connect(?: to {PEER})? (?:failed(?: with error)?|returned) ?:? {ERROR}",
        "Call to connect failed : Connection refused",
        "Call to connect returned Connection refused, retrying",
    ),
    _Form(
        "connect-timeout",
        "all",
        "imeout waiting for connection",
        rf"(?P<error>Timeout waiting for connection)(?! from pool)(?: from (?!rank ){PEER})?",
        "Timeout waiting for connection from 10.9.0.4<40112>",
        "Waiting for connection from 10.9.0.4<40112>",
    ),
)

_CONNECTS = tuple(
    row
    for form in _CONNECT_FORMS
    for row in (
        signature(
            f"bootstrap-{form.name}",
            C.BOOTSTRAP_CONNECT_FAILED,
            form.needle,
            form.pattern,
            sample=form.sample,
            near_miss=form.near_miss,
            source="misc/socket.cc, os/linux.cc",
            versions=form.versions,
            refine=chain(final, _certain, _bootstrap),
        ),
        signature(
            f"socket-{form.name}",
            C.SOCKET_CONNECT_FAILED,
            form.needle,
            form.pattern,
            sample=f"NET/Socket : {form.sample}",
            near_miss=f"NET/Socket : {form.near_miss}",
            source="transport/net_socket.cc through misc/socket.cc",
            versions=form.versions,
            refine=chain(final, _certain, _data),
        ),
    )
)

_CONNECTIONS = (
    echo(
        "socket-closed",
        C.SOCKET_CLOSED_BY_PEER,
        "Connection closed by remote peer",
        rf"Connection closed by remote peer(?: {PEER})?",
        sample="socketProgress: Connection closed by remote peer node7.cluster<40112>",
        near_miss="socketProgress: Connection accepted from remote peer node7.cluster<40112>",
        source="misc/socket.cc",
        versions="without the peer at first; 'Net :' up to 2.15, 'socketProgress:' from 2.16",
    ),
    echo(
        "local-rank-closed",
        C.SOCKET_CLOSED_BY_PEER,
        "Connection closed by localRank",
        r"Connection closed by localRank (?P<d_local_rank>-?\d{1,9})",
        sample="[Service thread] Connection closed by localRank 3",
        near_miss="[Service thread] Connection opened by localRank 3",
        source="proxy.cc",
    ),
    echo(
        "socket-reset",
        C.SOCKET_ERROR,
        "Call to recv",
        r"Call to (?P<d_call>recv from|send to|recv|send|recv from\|send to) "
        rf"(?:{PEER} )?failed ?:? (?P<error>{_RESET})",
        sample="socketProgressOpt: Call to recv from 10.9.0.4<40112> failed : Connection reset by "
        "peer",
        near_miss="socketProgressOpt: Call to recv from 10.9.0.4<40112> failed : Connection timed "
        "out",
        source="misc/socket.cc",
        further=("Call to send",),
        refine=_context,
    ),
    signature(
        "socket-failed",
        C.SOCKET_ERROR,
        "Call to recv",
        r"Call to (?P<d_call>recv from|send to|recv|send) "
        rf"(?:{PEER} )?failed ?:? (?!{_RESET}|Too many open files){ERROR}",
        sample="ncclOsSocketProgressOpt: Call to send to 10.9.0.4<40112> failed : No route to host",
        near_miss="ncclOsSocketProgressOpt: Call to send to 10.9.0.4<40112> failed : Broken pipe",
        source="misc/socket.cc",
        further=("Call to send",),
        refine=_context,
    ),
    echo(
        "socket-progress-error",
        C.SOCKET_ERROR,
        "socket progress error",
        r"NET/Socket ?: (?P<error>socket progress error)",
        sample="NET/Socket : socket progress error",
        near_miss="NET/Socket : Using [0]eth0:10.9.0.1<0>",
        source="transport/net_socket.cc",
    ),
    echo(
        "local-socket-failed",
        C.SOCKET_ERROR,
        "over socket ",
        r"UDS: (?:Sending|Receiving) data over socket (?P<d_address>\S{1,120}) "
        rf"failed ?: {ERROR}",
        sample="UDS: Sending data over socket /tmp/nccl-socket-3-1f failed : Connection refused "
        "(111)",
        near_miss="UDS: Sending data over socket /tmp/nccl-socket-3-1f",
        source="misc/ipcsocket.cc",
        versions="2.17 and later",
    ),
    signature(
        "accept-failed",
        C.SOCKET_ERROR,
        "TryAccept: ",
        rf"ncclOsSocketTryAccept: (?:Accept failed: |exceeded error retry count[^,]{{0,40}}, )"
        rf"(?!Too many open files){ERROR}",
        sample="ncclOsSocketTryAccept: Accept failed: Connection aborted",
        near_miss="ncclOsSocketTryAccept: Accept failed: Too many open files",
        source="os/linux.cc",
        versions="2.29.2 and later",
        refine=_context,
    ),
    signature(
        "accept-failed-old",
        C.SOCKET_ERROR,
        "TryAccept: ",
        rf"\bsocketTryAccept: (?:Accept failed: |exceeded error retry count[^,]{{0,40}}, )"
        rf"(?!Too many open files){ERROR}",
        sample="socketTryAccept: exceeded error retry count (35), Network is down",
        near_miss="socketTryAccept: Accept failed: Too many open files",
        source="misc/socket.cc",
        versions="2.18 to 2.28",
        refine=_context,
    ),
)

_HANDSHAKES = (
    signature(
        "socket-wrong",
        C.SOCKET_HANDSHAKE_FAILED,
        ": wrong ",
        r": wrong (?P<d_field>magic|type) (?P<got>(?:0x)?[0-9a-fA-F]{1,16}) != "
        r"(?P<expected>(?:0x)?[0-9a-fA-F]{1,16})",
        sample="socketFinalizeAccept: wrong magic 2f1a0c != 9b3344",
        near_miss="socketFinalizeAccept: magic 9b3344 == 9b3344",
        source="misc/socket.cc",
        versions="2.16 to 2.26",
    ),
    signature(
        "socket-mismatch",
        C.SOCKET_HANDSHAKE_FAILED,
        "socketFinalizeAccept from ",
        rf"socketFinalizeAccept from {PEER}: (?:socket magic mismatch|wrong socket type)"
        r" \(peer (?P<got>\w{1,18}) != expected (?P<expected>\w{1,18})",
        sample="socketFinalizeAccept from 10.9.0.4<40112>: socket magic mismatch (peer "
        "0x00000000002f1a0c != expected 0x00000000009b3344), discarding peer connection",
        near_miss="socketFinalizeAccept from 10.9.0.4<40112>: done",
        source="misc/socket.cc",
        versions="2.30.7",
    ),
    signature(
        "socket-handshake-receive",
        C.SOCKET_HANDSHAKE_FAILED,
        "handshake receive from ",
        rf"handshake receive from {PEER} failed|peer {PEER.replace('?P<peer>', '?P<d_closed>')} "
        r"closed before magic handshake",
        sample="socketFinalizeAccept: handshake receive from 10.9.0.4<40112> failed, discarding "
        "peer connection",
        near_miss="socketFinalizeAccept: handshake received from 10.9.0.4<40112>",
        source="misc/socket.cc",
        versions="2.30.7",
        further=("magic handshake",),
        refine=renamed(d_closed="peer"),
    ),
    signature(
        "socket-no-magic",
        C.SOCKET_HANDSHAKE_FAILED,
        "receive a valid magic",
        rf"didn't receive a valid magic from {PEER}",
        sample="socketFinalizeAccept: didn't receive a valid magic from 10.9.0.4<40112>",
        near_miss="socketFinalizeAccept: received a valid magic from 10.9.0.4<40112>",
        source="misc/socket.cc",
        versions="2.27 to 2.30.4",
    ),
)

_SIZES = (
    signature(
        "socket-truncated",
        C.COLLECTIVE_MISMATCH,
        "essage truncated : receiving ",
        rf"(?:peer {PEER} )?message truncated : receiving (?P<got>\d{{1,20}}) bytes instead of "
        r"(?P<expected>\d{1,20})",
        sample="NET/Socket : peer 10.9.0.4<4012> message truncated : receiving 65536 bytes instead "
        "of 16384. If you believe your socket network is in a healthy state, there may be a "
        "mismatch in collective sizes or environment settings",
        near_miss="NET/Socket : peer 10.9.0.4<40112> receiving 16384 bytes",
        source="transport/net_socket.cc",
    ),
    signature(
        "ras-peer-dead",
        C.RAS_INCOMPLETE,
        "RAS declaring peer ",
        rf"RAS declaring peer {PEER} as DEAD",
        sample="RAS declaring peer 10.9.0.4<28028> as DEAD; rasDeadPeersHash 0x1f",
        near_miss="RAS new peer 10.9.0.4<28028>",
        source="ras/peers.cc",
        versions="2.24 and later",
        levels=TOLD,
    ),
)

ROWS = (
    *_CONNECTS,
    *_CONNECTIONS,
    *_HANDSHAKES,
    *_SIZES,
)
