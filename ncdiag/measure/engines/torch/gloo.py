"""Two-rank groups over gloo: the one module that uses torch's private names for it."""

from datetime import timedelta
from typing import Any

import torch
from torch import distributed
from torch._C._distributed_c10d import Store, Work

from ncdiag.measure.engines.stream import PeerLostError, StalledError
from ncdiag.measure.engines.torch.errors import one_line

# gloo passes 10 Gbit/s a connection on few hosts: 8 MiB last over 5 ms there.
MAX_CHUNK_BYTES = 8 * 1024 * 1024
# The longest a chunk may take; a peer that was stopped or cut off is noticed by nothing else.
PROGRESS_S = 3.0
_TAG = 0
# torch's own stubs leave out most of what is used here.
_Group: Any = distributed.ProcessGroupGloo


class GlooChannel:
    """A connection between two hosts from ``address``, which must be this host's own."""

    max_chunk_bytes = MAX_CHUNK_BYTES
    device = torch.device("cpu")

    def __init__(self, store: Store, address: str, *, first: bool, connect_s: float) -> None:
        # Without a device gloo asks for the address of the host's own name, which may be loopback.
        options = _Group._Options()  # noqa: SLF001 - no public name exists
        options._devices = [_Group.create_device(hostname=address)]  # noqa: SLF001
        options._timeout = timedelta(seconds=connect_s)  # noqa: SLF001
        options._threads = 1  # noqa: SLF001 - they serve collectives, which are not used
        self._peer = 1 if first else 0
        try:
            self._group = _Group(store, 0 if first else 1, 2, options)
        except RuntimeError as error:
            raise PeerLostError(f"gloo could not connect: {one_line(error)}") from None

    def send(self, chunk: torch.Tensor) -> "_GlooPending":
        """Begin to send; the peer must have posted a receive for it to move."""
        try:
            return _GlooPending(self._group.send([chunk], self._peer, _TAG))
        except RuntimeError as error:
            raise PeerLostError(one_line(error)) from None

    def receive(self, chunk: torch.Tensor) -> "_GlooPending":
        """Begin to receive into ``chunk``."""
        try:
            return _GlooPending(self._group.recv([chunk], self._peer, _TAG))
        except RuntimeError as error:
            raise PeerLostError(one_line(error)) from None

    def close(self) -> None:
        """Drop the group, and its connection with it."""
        del self._group


class _GlooPending:
    """A chunk under way."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def wait(self) -> None:
        """Wait for the chunk; raises StalledError or PeerLostError."""
        try:
            self._work.wait(timedelta(seconds=PROGRESS_S))
        except RuntimeError as error:
            if "Timed out waiting" in str(error):
                raise StalledError(f"nothing moved for {PROGRESS_S:g} s") from None
            raise PeerLostError(one_line(error)) from None
