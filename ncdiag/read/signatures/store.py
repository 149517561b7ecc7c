"""PyTorch's key-value store and the rendezvous of its elastic agent."""

import re
from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

_TCPSTORE = "torch TCPStore.cpp and socket.cpp"
_ERRNO = r"\(errno: (?P<d_errno>\d{1,4}) - (?P<error>[^)\n]{1,80})\)"
# "[node7]:29500", "node7:29500", "[::ffff:10.0.0.7]:29500".
_PEER = r"(?:\[(?P<peer>[^\]\n]{1,256})\]|(?P<peer_>[^\s\[\]:]{1,256})):\d{1,5}"
_PLAIN_PEER = _PEER.replace("<peer>", "<peer_in>").replace("<peer_>", "<peer_out>")
_PAIR = r"\((?P<peer>[^,()\n]{1,256}), \d{1,5}\)"
_PRINTED_AS = re.compile(r"\[([EWIF])(?:\d{3,4} |\s)")
# Addresses of the other family; the next one is tried, and works as a rule.
_HARMLESS = frozenset({"97", "99"})


def _one_peer(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Fold the two places of a peer; keep at which severity it was printed."""
    for place in ("peer_", "peer_in", "peer_out"):
        if peer := values.pop(place, None):
            values["peer"] = peer
    if found := _PRINTED_AS.search(line.shown):
        values["d_printed"] = found[1]
    return values


def _serious(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Refuse what only says that an address family is not there."""
    return None if values.get("d_errno") in _HARMLESS else _one_peer(values, line)


def _harmless(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Refuse everything else."""
    return _one_peer(values, line) if values.get("d_errno") in _HARMLESS else None


_store = partial(
    Signature,
    class_=FindingClass.STORE_FAILURE,
    levels=OUTSIDE,
    kind="torch",
    source=_TCPSTORE,
    refine=_one_peer,
)
_rendezvous = partial(
    Signature,
    class_=FindingClass.STORE_FAILURE,
    levels=OUTSIDE,
    kind="elastic",
    source="torch.distributed.elastic.rendezvous",
)

_CONNECT_ROWS: tuple[Signature, ...] = (
    _store(
        name="store_connect",
        needle="client socket has failed to connect to",
        pattern=Pattern(rf"client socket has failed to connect to {_PEER} {_ERRNO}"),
        sample="[c10d] The client socket has failed to connect to [node12]:29511 (errno: 113 - "
        "No route to host).",
        near_miss="[c10d] The client socket has failed to connect to [::1]:29511 (errno: 97 - "
        "Address family not supported by protocol).",
        refine=_serious,
    ),
    _store(
        name="store_address_family",
        needle="client socket has failed",
        further=("client socket cannot be initialized",),
        pattern=Pattern(
            r"client socket (?:has failed to connect|cannot be initialized to connect) to "
            rf"{_PEER} {_ERRNO}"
        ),
        sample="[c10d] The client socket cannot be initialized to connect to [localhost]:29511 "
        "(errno: 97 - Address family not supported by protocol).",
        near_miss="[c10d] The client socket has failed to connect to [node12]:29511 (errno: 111 "
        "- Connection refused).",
        role=Role.WARNING,
        severity=Severity.INFO,
        refine=_harmless,
    ),
    _store(
        name="store_unreachable",
        needle="any network address of (",
        pattern=Pattern(
            rf"(?P<error>client socket has failed to connect) to any network address of {_PAIR}"
        ),
        sample="[c10d] The client socket has failed to connect to any network address of "
        "(node12, 29511).",
        near_miss="[c10d] The server socket has started to listen on any network address of (::, "
        "1)",
    ),
    _store(
        name="store_connect_timeout",
        needle="client socket has timed out after",
        pattern=Pattern(
            r"client socket has (?P<error>timed out) after (?P<d_after>\d{1,12} ?\w{1,7}) while "
            r"trying "
            rf"to connect to (?:{_PAIR}|{_PLAIN_PEER})"
        ),
        sample="torch.distributed.DistNetworkError: The client socket has timed out after "
        "60000ms while trying to connect to (node12, 29511).",
        near_miss="The client socket has timed out after a while",
    ),
    _store(
        name="store_validate",
        needle="TCP client failed to connect/validate to host",
        pattern=Pattern(
            r"TCP client failed to connect/validate to host (?P<peer>[^\s]{1,256}):\d{1,5} - "
            r"(?P<error>timed out) "
        ),
        sample="[c10d] TCP client failed to connect/validate to host 10.77.0.8:29511 - timed out "
        "(try=41, timeout=900000ms): Connection reset by peer",
        near_miss="[c10d] TCP client failed to connect/validate to host 10.77.0.8:29511 - "
        "retrying (try=2, timeout=900000ms, delay=871ms): Connection reset by peer",
        versions="torch 2.4 and later",
    ),
    _store(
        name="store_validate_again",
        needle="TCP client failed to connect/validate to host",
        pattern=Pattern(
            r"TCP client failed to connect/validate to host (?P<peer>[^\s]{1,256}):\d{1,5} - "
            r"retrying"
        ),
        sample="[c10d] TCP client failed to connect/validate to host 10.77.0.8:29511 - retrying "
        "(try=2, timeout=900000ms, delay=871ms): Connection reset by peer",
        near_miss="[c10d] TCP client failed to connect/validate to host 10.77.0.8:29511 - timed "
        "out (try=41, timeout=900000ms): Connection reset by peer",
        versions="torch 2.4 and later",
        role=Role.WARNING,
        severity=Severity.INFO,
    ),
    _store(
        name="store_listen",
        class_=FindingClass.BOOTSTRAP_BIND_FAILED,
        needle="server socket has failed to",
        pattern=Pattern(
            r"server socket has failed to (?:listen on any local network address|bind to "
            r"(?P<address>\S{1,256}))\.?[^\n]{0,600}?"
            r"(?:errno: (?P<d_errno>\d{1,4}) - |message: )(?P<error>[Aa]ddress already in use|"
            r"[Pp]ermission denied|[Cc]annot assign requested address)"
        ),
        sample="RuntimeError: The server socket has failed to listen on any local network "
        "address. port: 29511, useIpv6: false, code: -98, name: EADDRINUSE, message: address "
        "already in use",
        near_miss="The server socket has failed to accept a connection",
        refine=None,
    ),
)

_LOSS_ROWS: tuple[Signature, ...] = (
    _store(
        name="store_lost",
        needle=" failed on SocketImpl(",
        pattern=Pattern(
            r"(?:recv\w{1,12}|send\w{1,12}|wait\w{0,12}) failed on SocketImpl\([^()\n]{0,300}?"
            r"remote=\[(?P<peer>[^\]\n]{1,256})\]:\d{1,5}\): (?P<error>[^\n.]{1,80})"
        ),
        sample="[c10d] recvValue failed on SocketImpl(fd=61, addr=[node3]:41220, "
        "remote=[node12]:29511): Connection reset by peer",
        near_miss="[c10d] recvValue done on SocketImpl(fd=61, addr=[node3]:41220)",
        versions="torch 2.5 and later",
        role=Role.CONSEQUENCE,
        severity=Severity.INFO,
    ),
    _store(
        name="store_flag",
        needle="flag on TCPStore",
        pattern=Pattern(
            r"Failed to check the \"should dump\" flag on TCPStore"
            r"(?:[^\n]{0,120}?with error: (?P<error>[^\n.]{1,80}))?"
        ),
        sample='[PG ID 0 PG GUID 0 Rank 5] Failed to check the "should dump" flag on TCPStore, '
        "(maybe "
        "TCPStore server has shut down too early), with error: Broken pipe",
        near_miss='[PG ID 0 PG GUID 0 Rank 5] checked the "should dump" flag',
        versions="torch 2.3 and later",
        role=Role.CONSEQUENCE,
        severity=Severity.INFO,
    ),
    _store(
        name="store_get",
        needle="got error: ",
        pattern=Pattern(
            r"retrieving ncclUniqueId from \[(?P<d_from>\d{1,7})\][^\n]{0,200}? got error: "
            r"(?P<error>[^\n.,]{1,80})"
        ),
        sample="[4] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via "
        "c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer",
        near_miss="[4] is setting up NCCL communicator and retrieving ncclUniqueId from [0]",
        source="torch ProcessGroupNCCL.cpp",
    ),
    _store(
        name="store_wait",
        needle="wait timeout after",
        pattern=Pattern(
            r"^(?![^\n]{0,400}retrieving ncclUniqueId)[^\n]{0,400}?"
            r"(?P<error>wait timeout) after (?P<d_after>\d{1,12} ?ms), keys?: "
            r"(?P<d_key>[^\s,]{1,200})"
        ),
        sample="torch.distributed.DistStoreError: wait timeout after 120000ms, keys: /default_pg/0",
        near_miss="wait timeout after the last step",
    ),
    _store(
        name="store_connect_old",
        needle="connect() timed out",
        pattern=Pattern(
            r"(?P<error>connect\(\) timed out)\. Original timeout was (?P<d_after>\d{1,12}) ms"
        ),
        sample="RuntimeError: connect() timed out. Original timeout was 900000 ms.",
        near_miss="retry: connect() timed out after 900 ms",
        versions="torch up to 1.10",
    ),
    _store(
        name="store_socket_timeout",
        needle="Socket Timeout",
        pattern=Pattern(
            r"^(?:[\w.]{0,80}(?:Error|Exception): |\s{0,8}what\(\): {1,4})?(?P<error>Socket "
            r"Timeout)\s*$"
        ),
        sample="torch.distributed.DistStoreError: Socket Timeout",
        near_miss="retry after Socket Timeout of the data loader",
        versions="torch 1.x to 2.4",
    ),
    _store(
        name="store_clients",
        needle="waiting for clients",
        pattern=Pattern(
            r"(?P<error>Timed out) after (?P<d_seconds>\d{1,10}) seconds waiting for clients\. "
            r"(?P<d_joined>\d{1,7})/(?P<d_expected>\d{1,7}) clients joined"
        ),
        sample="torch.distributed.DistStoreError: Timed out after 901 seconds waiting for "
        "clients. 30/32 clients joined.",
        near_miss="still waiting for clients. 30/32 clients joined.",
    ),
)

_RENDEZVOUS_ROWS: tuple[Signature, ...] = (
    _rendezvous(
        name="rendezvous_error",
        needle="Rendezvous",
        pattern=Pattern(
            r"(?:^|[\s.])(?P<error>Rendezvous(?:Timeout|Connection|Closed|State)?Error)(?:: |\s*$)"
        ),
        sample="torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The "
        "connection to the C10d store has failed. See inner exception for details.",
        near_miss="raise RendezvousConnectionError from exc",
    ),
    _rendezvous(
        name="rendezvous_heartbeat",
        needle="has failed to send a keep-alive heartbeat",
        pattern=Pattern(
            r"The node '(?P<d_node>[^'\n]{1,300})' has failed to send a keep-alive heartbeat to "
            r"the "
            r"rendezvous '[^'\n]{0,200}' due to an error of type (?P<error>\w{1,80})"
        ),
        sample="The node 'node12_4711_0' has failed to send a keep-alive heartbeat to the "
        "rendezvous 'run7' due to an error of type RendezvousTimeoutError.",
        near_miss="The node 'node12_4711_0' has sent a keep-alive heartbeat to the rendezvous "
        "'run7'.",
    ),
    _rendezvous(
        name="rendezvous_shutdown",
        needle="has failed to shutdown the rendezvous",
        pattern=Pattern(
            r"The node '(?P<d_node>[^'\n]{1,300})' has failed to shutdown the rendezvous "
            r"'[^'\n]{0,200}' due to an error of type (?P<error>\w{1,80})"
        ),
        sample="The node 'node12_4711_0' has failed to shutdown the rendezvous 'run7' due to an "
        "error of type RendezvousConnectionError.",
        near_miss="The node 'node12_4711_0' has shut down the rendezvous 'run7'.",
        role=Role.CONSEQUENCE,
        severity=Severity.INFO,
    ),
)

ROWS: tuple[Signature, ...] = (*_CONNECT_ROWS, *_LOSS_ROWS, *_RENDEZVOUS_ROWS)
