"""Where two measuring processes meet: the stores one side keeps and the other connects to."""

import socket
import time
from datetime import timedelta

from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from ncdiag.measure.engines.stream import PeerLostError

# The longest one side waits for the other to come; a process that is being replaced needs about
# 4 s on busy cores.
CONNECT_S = 5.0
_RETRY_S = 0.05


class Stores:
    """The stores this process keeps, one for each address, for as long as it lives."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, TCPStore]] = {}

    def open(self, address: str, port: int = 0) -> int:
        """Listen on ``address`` alone and return the port; raises :class:`OSError`.

        A port that was asked for and is taken is replaced by another.
        """
        if address not in self._kept:
            try:
                listener = _listen(address, port)
            except OSError:
                if not port:
                    raise
                listener = _listen(address, 0)
            self._kept[address] = _serve(listener, address)
        return self._kept[address][0]

    def own(self, address: str, port: int, meeting: str) -> Store:
        """The side of the first: its own store, under ``meeting``; raises :class:`OSError`."""
        if self.open(address, port) != port:
            raise OSError(f"port {port} of {address} is taken")
        return PrefixStore(meeting, self._kept[address][1])


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A process that replaces another takes over its port at once.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def _serve(listener: socket.socket, address: str) -> tuple[int, TCPStore]:
    port = listener.getsockname()[1]
    # Left to itself, TCPStore listens on all addresses, whatever host it is given.
    store = TCPStore(
        address,
        port,
        is_master=True,
        wait_for_workers=False,
        timeout=timedelta(seconds=CONNECT_S),
        master_listen_fd=listener.detach(),
    )
    return port, store


def connect(address: str, port: int, meeting: str) -> Store:
    """The side of the second: the first's store; raises PeerLostError within ``CONNECT_S``."""
    _wait_for_listener(address, port)
    try:
        store = TCPStore(
            address,
            port,
            is_master=False,
            wait_for_workers=False,
            timeout=timedelta(seconds=CONNECT_S),
        )
    except RuntimeError:
        raise PeerLostError(f"{address} port {port} does not answer as a store") from None
    return PrefixStore(meeting, store)


def _wait_for_listener(address: str, port: int) -> None:
    """Try until somebody listens. TCPStore's own time-out lasts twice as long as it is told."""
    end_s = time.monotonic() + CONNECT_S
    while True:
        left_s = end_s - time.monotonic()
        try:
            socket.create_connection((address, port), timeout=max(left_s, _RETRY_S)).close()
        except OSError as error:
            if left_s <= _RETRY_S:
                reason = error.strerror or "no answer"
                raise PeerLostError(f"no way to {address} port {port}: {reason}") from None
            time.sleep(_RETRY_S)
        else:
            return
