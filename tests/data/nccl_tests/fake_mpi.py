# Plain Python without types: started thousands of times, and the standard library is all it has.
# ruff: noqa: ANN001, ANN201, ANN202, ANN204
"""Which rank this process is, as MPI launchers tell, and two ranks that talk through PMI-1."""

import os
import socket
import time

_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID", "RANK")
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "WORLD_SIZE")
_CHUNK = 1 << 20
_DATAGRAM = 60_000


class Job:
    """The MPI job this process belongs to."""

    carries_bytes = False

    def __init__(self, rank, size, hosts):
        self.rank, self.size, self.hosts = rank, size, hosts
        self._loops = os.environ.get("FAKE_NCCL_TESTS_TRAFFIC") == "lo"

    def loop(self, amount):
        """Let so many bytes cross the loopback interface, if that was asked for."""
        if not self._loops:
            return
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.bind(("127.0.0.1", 0))  # nobody reads: they are counted, and dropped
            data, address = bytes(_DATAGRAM), own.getsockname()
            for _ in range(amount // _DATAGRAM + 1):
                own.sendto(data, address)


def join(*, alone):
    """The job of this process; ``alone`` as a program that knows nothing of MPI."""
    rank, size = (0, 1) if alone else (_number(_RANKS, 0), _number(_SIZES, 1))
    named = [name for name in os.environ.get("FAKE_NCCL_TESTS_HOSTS", "").split(",") if name]
    if alone and named:
        named = [named[_number(_RANKS, 0) % len(named)]]
    own = socket.gethostname()
    hosts = [named[n] if n < len(named) else own for n in range(size)]
    if os.environ.get("FAKE_NCCL_TESTS_TRAFFIC") == "peer" and "PMI_FD" in os.environ and size == 2:
        return TalkingJob(rank, size, hosts)
    return Job(rank, size, hosts)


def _number(names, default):
    return next((int(os.environ[name]) for name in names if os.environ.get(name)), default)


class TalkingJob(Job):
    """Two ranks with a TCP connection, over which both send at the same time."""

    carries_bytes = True

    def __init__(self, rank, size, hosts):
        super().__init__(rank, size, hosts)
        pmi = _Pmi(int(os.environ["PMI_FD"]))
        interface = os.environ.get("NCCL_SOCKET_IFNAME", "lo").lstrip("=")
        if rank == 0:
            listener = socket.create_server((_address(interface), 0))
            pmi.put("where", ":".join(map(str, listener.getsockname())))
        pmi.barrier()
        if rank == 0:
            self._peer, _ = listener.accept()
        else:
            address, _, port = pmi.get("where").rpartition(":")
            # From the interface that was asked for, as NCCL does it.
            self._peer = socket.create_connection(
                (address, int(port)), 30, (_address(interface), 0)
            )
        self._peer.settimeout(30)

    def exchange(self, size, iterations):
        """Send and receive ``size`` bytes so often; microseconds of each time."""
        return [self._once(size) for _ in range(max(1, iterations))]

    def _once(self, size):
        import selectors

        began = time.monotonic()
        data = memoryview(bytes(_CHUNK))
        to_send = to_receive = size
        with selectors.DefaultSelector() as selector:
            selector.register(self._peer, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while to_send or to_receive:
                wanted = selectors.EVENT_WRITE * (to_send > 0) | (to_receive > 0)
                selector.modify(self._peer, wanted)
                for _, events in selector.select(30):
                    if events & selectors.EVENT_WRITE:
                        to_send -= self._peer.send(data[: min(to_send, _CHUNK)])
                    if events & selectors.EVENT_READ:
                        to_receive -= len(self._peer.recv(min(to_receive, _CHUNK)))
        return (time.monotonic() - began) * 1e6


class _Pmi:
    """The few words of PMI-1 that it takes to tell the other rank where to connect."""

    def __init__(self, number):
        self._lines = socket.socket(fileno=number).makefile("rwb")
        self._say("cmd=init pmi_version=1 pmi_subversion=1")
        self._space = self._say("cmd=get_my_kvsname")["kvsname"]

    def put(self, key, value):
        self._say(f"cmd=put kvsname={self._space} key={key} value={value}")

    def get(self, key):
        return self._say(f"cmd=get kvsname={self._space} key={key}")["value"]

    def barrier(self):
        self._say("cmd=barrier_in")

    def _say(self, words):
        self._lines.write(words.encode() + b"\n")
        self._lines.flush()
        answer = self._lines.readline().decode().split()
        return dict(part.partition("=")[::2] for part in answer)


def _address(interface):
    """The IPv4 address of an interface."""
    import fcntl
    import struct

    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        # SIOCGIFADDR in linux/sockios.h.
        return socket.inet_ntoa(fcntl.ioctl(asking, 0x8915, request)[20:24])
