"""What was read from logs: the evidence of a post-mortem, before anybody judges it.

Readers fill a ``LogEvidence``; ``ncdiag.diagnose.postmortem`` draws conclusions from it. Values are
strings as they stand in the log unless a docstring says otherwise. What a log does not tell is
``None`` or absent. All of it can be merged: a large log is read in pieces, by several processes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ncdiag.model.benchmark import Benchmark
from ncdiag.model.place import Moment, Place


class Speaker(NamedTuple):
    """Who wrote a line, as far as its prefix and wrappers prove it.

    ``rank`` is a global rank that the line itself proves (``[rank3]:``). ``label`` is what
    a launcher calls the stream (``1,3`` of mpirun, ``3`` of srun -l): it tells streams apart and
    is no rank. ``device`` is the index printed in brackets: neither a rank nor a GPU for sure.
    """

    host: str | None = None
    pid: str | None = None
    rank: int | None = None
    device: str | None = None
    label: str | None = None
    address: str | None = None


NOBODY = Speaker()
# The form of an event that sums up a table of nccl-tests.
TABLE_FORM = "nccl-tests table"


@dataclass(slots=True, kw_only=True)
class Event:
    """A recognised message; equal ones of one speaker are counted, not repeated.

    ``class_name`` is a value of ``FindingClass``; ``form`` names the row of the signature table.
    ``attributes`` are those the class publishes; ``details`` are for the diagnosis only.
    ``ranks`` are those the message names as concerned, besides the speaker's own.
    ``role`` and ``severity`` are set where this form differs from its class's default.
    ``source`` is the source file that printed it (``transport/net_ib.cc``).
    """

    class_name: str
    form: str
    place: Place
    text: str
    speaker: Speaker = NOBODY
    attributes: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    ranks: tuple[int, ...] = ()
    role: str | None = None
    severity: str | None = None
    source: str | None = None
    count: int = 1
    last: Place | None = None


@dataclass(slots=True, kw_only=True)
class CommunicatorState:
    """One rank's membership in one communicator, as its process tells of it.

    ``pointer`` joins lines of one process, ``comm_id`` ranks across hosts (absent before 2.16).
    ``progressed`` is the first later step (channels, rings, trees) by which the start-up is known
    to have gone on; ``ended`` is its destruction or abort, ``aborted`` says which.
    ``calls`` maps a collective's number to (operation, count, datatype), the newest few of them;
    numbers at which one process made several calls (a group) are left out, as are transfers.
    ``api_calls`` counts the calls of lines that carry no number.
    """

    pointer: str
    rank: int | None = None
    ranks: int | None = None
    comm_id: str | None = None
    parent: str | None = None
    device: str | None = None
    bus_id: str | None = None
    nodes: int | None = None
    local_ranks: int | None = None
    started: Place | None = None
    completed: Place | None = None
    progressed: Place | None = None
    ended: Place | None = None
    aborted: bool = False
    calls: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    last_call: Place | None = None
    api_calls: int = 0


@dataclass(slots=True, kw_only=True)
class NcclProcess:
    """What one process said of itself; ``host`` and ``pid`` name it within the job.

    ``versions`` as printed. ``networks`` follow ``Using network``. ``nics`` are device names
    without port, in the order printed. ``addresses`` are those of its own sockets (out-of-band and
    bootstrap), without port. ``transports`` counts channel lines by head (``NET/IB``, ``P2P``,
    ``SHM``); ``gdr_channels`` and ``plain_channels`` count network channel lines with and without
    GPUDirect. ``hca_gdr`` maps a NIC to whether GPUDirect is enabled for it.
    ``nvls``, ``sharp`` and ``pxn`` are ``None`` until a line tells. ``environment`` holds what the
    library printed as set; ``defaulted`` maps what it would not take to (value, default used), and
    ``unused`` names what it says it has no use for. ``chain`` is the latest error back-trace:
    (source file, line, result); ``chain_bootstrap`` and ``chain_socket`` say whether any frame ever
    was one of the bootstrap or of the socket network. ``channel_ranks`` are ranks, of some
    communicator, that its own channel lines prove. ``ofi`` holds what the libfabric plug-in says:
    ``version``, ``provider``, ``protocol``, ``libfabric``, ``nics``. ``algorithms`` counts tuning
    lines as ``AllReduce RING/SIMPLE``. ``net_devices`` maps a rank to its number of network devices
    of at most ``net_devices_max``.
    """

    host: str
    pid: str
    library: str | None = None
    speaker: Speaker = NOBODY
    first: Place | None = None
    last: Place | None = None
    versions: list[str] = field(default_factory=list)
    communicators: list[CommunicatorState] = field(default_factory=list)
    networks: list[str] = field(default_factory=list)
    nics: list[str] = field(default_factory=list)
    nic_speeds_mbit_per_s: dict[str, str] = field(default_factory=dict)
    interfaces: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    plugins: list[str] = field(default_factory=list)
    transports: Counter[str] = field(default_factory=Counter)
    gdr_channels: int = 0
    plain_channels: int = 0
    hca_gdr: dict[str, bool] = field(default_factory=dict)
    nvls: bool | None = None
    sharp: bool | None = None
    mnnvl: bool | None = None
    pxn: bool | None = None
    environment: dict[str, str] = field(default_factory=dict)
    defaulted: dict[str, tuple[str, str]] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    connected: Place | None = None
    chain: list[tuple[str, int, int]] = field(default_factory=list)
    net_devices: dict[int, int] = field(default_factory=dict)
    net_devices_max: int | None = None
    channel_ranks: set[int] = field(default_factory=set)
    ofi: dict[str, str] = field(default_factory=dict)
    algorithms: Counter[str] = field(default_factory=Counter)
    chain_bootstrap: bool = False
    chain_socket: bool = False
    chain_place: Place | None = None


@dataclass(slots=True, kw_only=True)
class GroupProgress:
    """What PyTorch's records say of one rank in one process group.

    ``group`` is the group's number, name or both as printed, ``None`` where the line has none.
    ``rank`` is global, ``group_rank`` the rank inside the group.
    Sequence numbers are ``None`` where no line tells; -1 means none yet.
    """

    rank: int | None
    group: str | None
    place: Place
    group_rank: int | None = None
    timed_out: int | None = None
    op: str | None = None
    timeout_ms: str | None = None
    enqueued: int | None = None
    started: int | None = None
    completed: int | None = None


@dataclass(slots=True, kw_only=True)
class WorkerFailure:
    """A failure block of torchrun's closing report, or its one-line form.

    ``first`` is true for the block under "Root Cause (first observed failure)".
    """

    place: Place
    host: str | None = None
    rank: int | None = None
    local_rank: str | None = None
    exitcode: str | None = None
    pid: str | None = None
    time: Moment | None = None
    first: bool = False
    error: str | None = None


class RasMember(NamedTuple):
    """A rank or process that a RAS report singles out; ``operation`` is its count where given."""

    rank: int | None
    host: str | None
    pid: str | None
    gpus: str | None
    operation: int | None
    status: str | None = None


@dataclass(slots=True, kw_only=True)
class RasIssue:
    """A section of a RAS report: ``INCOMPLETE``, ``DEAD``, ``ERROR``, ``MISMATCH``, ``TIMEOUT``.

    ``group`` is the communicator as the report calls it. ``counts`` maps an operation count (or
    a status) to the number of ranks that have it; -1 stands for "not launched any".
    """

    kind: str
    place: Place
    group: str | None = None
    ranks: int | None = None
    op: str | None = None
    counts: dict[int, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    members: list[RasMember] = field(default_factory=list)
    text: str = ""


@dataclass(slots=True, kw_only=True)
class RasReport:
    """A report of NCCL's RAS subsystem, text or JSON."""

    place: Place
    version: str | None = None
    nodes: int | None = None
    processes: int | None = None
    gpus: int | None = None
    communicators: int | None = None
    largest: int | None = None
    issues: list[RasIssue] = field(default_factory=list)
    complete: bool = False


@dataclass(slots=True, kw_only=True)
class FlightEntry:
    """One collective or transfer of a flight-recorder dump; sizes as nested lists of elements.

    ``group_id`` is the group's number, by which ``FlightDump.status`` goes.
    """

    record_id: int
    group: str
    collective_seq: int
    p2p_seq: int
    name: str
    state: str
    is_p2p: bool = False
    created_ns: int | None = None
    completed_ns: int | None = None
    timeout_ms: int | None = None
    input_sizes: Sequence[Sequence[int]] = ()
    output_sizes: Sequence[Sequence[int]] = ()
    input_types: Sequence[str] = ()
    output_types: Sequence[str] = ()
    frames: Sequence[str] = ()
    group_id: str | None = None


@dataclass(slots=True, kw_only=True)
class FlightDump:
    """A flight-recorder dump of one rank.

    ``groups`` maps a group's name to (description, global ranks). ``status`` maps a group's number
    to (last enqueued, last started, last completed), -1 for none. ``whole`` means that nothing was
    overwritten: the first call of all is still recorded. ``entries`` are in the order recorded,
    without those that were completed long before the last.
    """

    place: Place
    rank: int | None
    version: str | None
    library_version: str | None = None
    groups: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    status: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    entries: list[FlightEntry] = field(default_factory=list)
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectorRecord:
    """What NCCL Inspector measured of one kind of operation in one process, summed up."""

    host: str
    pid: str
    rank: int
    ranks: int
    comm_id: str
    op: str
    size: int
    count: int
    mean_time_us: float
    mean_busbw_gb_per_s: float


@dataclass(slots=True, kw_only=True)
class InputSummary:
    """One input: ``kinds`` are what was recognised in it, in alphabetical order.

    ``truncated`` says that it was not read to its end, ``error`` why it could not be read.
    """

    path: str
    bytes: int = 0
    lines: int = 0
    kinds: list[str] = field(default_factory=list)
    truncated: bool = False
    error: str | None = None


class Pause(NamedTuple):
    """Two timed lines and nothing timed between them: the first is the ``lines``-th of its input.

    ``seconds`` is by the clock of the lines, as far as they have the same one.
    """

    before: Place
    after: Place
    lines: int
    seconds: float


@dataclass(slots=True, kw_only=True)
class Pace:
    """How the timed lines of an input follow one another; ``pauses`` are the longest few."""

    first: Place
    last: Place
    lines: int = 1
    pauses: list[Pause] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class LogEvidence:
    """Everything that was read, in the order of the inputs and of the lines within each.

    ``ends`` is the last line of each input that carries any text, ``clock_ends`` the last that
    carries a time, by path: a hang is a silence before the end. ``paces`` are those of inputs of
    which every line was looked at. ``met`` is the last line of each input by which ranks are known
    to have met, ``ended_well`` the last that tells of a regular end. ``boots`` are the first words
    of kernels, the last of each input and host. ``raised`` are the ends of tracebacks whose
    exceptions are events of the signature table.
    """

    inputs: list[InputSummary] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    processes: list[NcclProcess] = field(default_factory=list)
    versions: list[tuple[str, str]] = field(
        default_factory=list
    )  # (library, version) of bare lines
    benchmarks: list[Benchmark] = field(default_factory=list)
    progress: list[GroupProgress] = field(default_factory=list)
    failures: list[WorkerFailure] = field(default_factory=list)
    ras: list[RasReport] = field(default_factory=list)
    dumps: list[FlightDump] = field(default_factory=list)
    inspector: list[InspectorRecord] = field(default_factory=list)
    hosts: dict[str, Place] = field(default_factory=dict)
    ends: dict[str, Place] = field(default_factory=dict)
    clock_ends: dict[str, Place] = field(default_factory=dict)
    paces: dict[str, Pace] = field(default_factory=dict)
    met: dict[str, Place] = field(default_factory=dict)
    ended_well: dict[str, Place] = field(default_factory=dict)
    boots: dict[tuple[str, str | None], Place] = field(default_factory=dict)
    raised: list[Place] = field(default_factory=list)
