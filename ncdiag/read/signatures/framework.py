"""PyTorch's collectives: time-outs of the watchdog, ranks that part, and what follows."""

import re
from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures import store
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

_C10D = "torch ProcessGroupNCCL.cpp"
# "[PG ID 0 PG GUID 0(default_pg) Rank 3] ", "[PG 1 Rank 3] ": the rank is the one in the group.
_PG = r"(?:\[(?P<group>PG [^\[\]\n]{1,300}?) Rank \d{1,7}\]:? ?)?"
_PG_ASIDE = _PG.replace("?P<group>", "?P<d_group>")
# Words between a group and what is said of it; without a group, they are not looked at.
_PG_BEFORE = _PG.removesuffix("?").removesuffix(")") + r"[^\n\[]{0,60}?)?"
# "[Rank 3] ", the global one as a rule.
_OWN = r"(?:\[Rank (?P<ranks_own>\d{1,7})\]:? ?)?"
_WORK = (
    r"Work[A-Z]{2,8}\((?:SeqNum=(?P<seq>\d{1,20}), )?OpType=(?P<op>\w{1,64})"
    r"(?:(?!Work[A-Z])[^\n]){0,2000}?Timeout\(ms\)=(?P<timeout_ms>\d{1,20})\)"
)
_FINGERPRINT = r"CollectiveFingerPrint\("
_FIELDS = (
    ("OpType", re.compile(r"OpType=([A-Z_0-9a-z]{1,64})")),
    ("TensorShape", re.compile(r"TensorShape=(\[[^\]\n]{0,400}\])")),
    ("TensorDtypes", re.compile(r"TensorDtypes=([^,)\n]{1,100})")),
    ("SequenceNumber", re.compile(r"SequenceNumber=(\d{1,20})")),
)


def _own_rank(values: dict[str, str], line: Line) -> dict[str, str]:
    """Prefer the rank of the prefix to the one in the text."""
    if line.speaker.rank is not None:
        values.pop("ranks_own", None)
    return values


def _difference(values: dict[str, str], line: Line) -> dict[str, str]:
    """The first thing in which two fingerprints differ: what was wanted, what came."""
    del line
    mine, other = values.pop("d_mine"), values.pop("d_other")
    for _, pattern in _FIELDS:
        wanted, came = pattern.search(mine), pattern.search(other)
        if wanted and came and wanted[1] != came[1]:
            return values | {"expected": wanted[1], "got": came[1]}
    return values


_torch = partial(Signature, levels=OUTSIDE, kind="torch", source=_C10D)
_timeout = partial(_torch, class_=FindingClass.TORCH_WATCHDOG_TIMEOUT, refine=_own_rank)
_stuck = partial(_torch, class_=FindingClass.TORCH_WATCHDOG_STUCK)
_abort = partial(_torch, class_=FindingClass.COMM_ABORTED, refine=_own_rank)
_desync = partial(_torch, class_=FindingClass.TORCH_DESYNC)

_TIMEOUT_ROWS: tuple[Signature, ...] = (
    _timeout(
        name="watchdog_timeout",
        needle="atchdog caught collective operation timeout",
        pattern=Pattern(
            _PG
            + _OWN
            + r"[Ww]atchdog caught collective operation timeout: "
            + _WORK
            + r"(?: ran for (?P<d_ran_ms>\d{1,20}) milliseconds)?"
        ),
        sample="[Rank 9] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, "
        "OpType=_REDUCE_SCATTER_BASE, NumelIn=4096, NumelOut=256, Timeout(ms)=900000) ran for "
        "900047 milliseconds before timing out.",
        near_miss="[Rank 9] Watchdog caught collective operation timeout disabled",
        versions="torch 1.10 and later; SeqNum since 2.0",
    ),
    _timeout(
        name="blocking_wait",
        needle="timed out in blocking wait",
        pattern=Pattern(_PG + _OWN + r"(?:Work )?" + _WORK + r" timed out in blocking wait"),
        sample="[Rank 2] Work WorkNCCL(SeqNum=15, OpType=BROADCAST, NumelIn=8, NumelOut=8, "
        "Timeout(ms)=60000) timed out in blocking wait.",
        near_miss="[Rank 2] Work WorkNCCL(SeqNum=15, OpType=BROADCAST, Timeout(ms)=60000) done",
    ),
    _timeout(
        name="blocking_wait_old",
        needle="Caught collective operation timeout",
        pattern=Pattern(
            r"Caught collective operation timeout: (?:"
            + _WORK
            + r")?(?:[^\n]{0,40}?ran for (?P<d_ran_ms>\d{1,20}) milliseconds)?"
        ),
        sample="RuntimeError: [2] Caught collective operation timeout: "
        "WorkNCCL(OpType=ALLREDUCE, TensorShape=[12], Timeout(ms)=30000) ran for 30013 "
        "milliseconds before timing out.",
        near_miss="Caught collective operation handler",
        versions="torch 1.x",
    ),
    _timeout(
        name="gloo_timeout",
        needle="Timed out waiting ",
        pattern=Pattern(
            r"Timed out waiting (?P<timeout_ms>\d{1,20})ms for (?P<d_direction>send|recv) operation"
        ),
        sample="[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
        "waiting 600000ms for recv operation to complete",
        near_miss="Timed out waiting for the next batch",
        source="gloo",
    ),
)

_STUCK_ROWS: tuple[Signature, ...] = (
    _stuck(
        name="watchdog_stuck",
        needle="atchdog got stuck for",
        pattern=Pattern(
            _PG_BEFORE + r"[Ww]atchdog got stuck for (?P<seconds>\d{1,12}) ?(?:seconds|s)\b"
        ),
        sample="[PG ID 3 PG GUID 17(dp_group) Rank 6] ProcessGroupNCCL's watchdog got stuck for "
        "300 seconds without making progress in monitoring enqueued collectives.",
        near_miss="[PG ID 3 PG GUID 17(dp_group) Rank 6] ProcessGroupNCCL's watchdog started",
        versions="torch 2.3 and later",
    ),
    _stuck(
        name="heartbeat",
        needle="eartbeat monitor timed out",
        pattern=Pattern(_PG + r"(?:NCCL )?[Hh]eartbeat monitor timed out"),
        sample="[PG 2 Rank 6] Heartbeat monitor timed out! Process will be terminated after "
        "dumping debug info. workMetaList_.size()=4",
        near_miss="[PG 2 Rank 6] Heartbeat monitor thread started",
        versions="torch 2.2 to 2.4",
    ),
    _stuck(
        name="gil",
        needle="Could not acquire GIL within",
        pattern=Pattern(_PG + r"Could not acquire GIL within \d{1,9} ms on exit"),
        sample="[PG ID 0 PG GUID 0 Rank 1] Could not acquire GIL within 300 ms on exit, possible "
        "GIL induced hang",
        near_miss="acquired GIL within 300 ms",
        role=Role.WARNING,
        severity=Severity.INFO,
    ),
)

_ABORT_ROWS: tuple[Signature, ...] = (
    _abort(
        name="process_down",
        needle="taking the entire process down",
        pattern=Pattern(
            rf"(?:(?=\[){_PG_ASIDE}{_OWN}[^\n\[]{{0,200}}?)?taking the entire process down"
        ),
        sample="[Rank 9] To avoid data inconsistency, we are taking the entire process down.",
        near_miss="To avoid data inconsistency, we are checking the process.",
    ),
    _abort(
        name="watchdog_terminates",
        needle="Terminating the process after attempting to dump debug info",
        pattern=Pattern(
            _PG_BEFORE.replace("?P<group>", "?P<d_group>")
            + r"Terminating the process after attempting to dump debug info"
        ),
        sample="[PG ID 0 PG GUID 0(default_pg) Rank 4] ProcessGroupNCCL's Terminating the "
        "process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.",
        near_miss="[PG ID 0 PG GUID 0(default_pg) Rank 4] ProcessGroupNCCL preparing to dump "
        "debug info. Include stack trace: 1",
    ),
    _abort(
        name="communicator_aborted",
        needle="NCCL communicator was aborted",
        pattern=Pattern(r"NCCL communicator was aborted(?: on rank (?P<ranks_own>\d{1,7}))?"),
        sample="RuntimeError: NCCL communicator was aborted on rank 11.  Original reason for "
        "failure was: NCCL error: unhandled system error",
        near_miss="NCCL communicator was created on rank 11.",
    ),
    _abort(
        name="aborted_elsewhere",
        needle="Found key in store: ",
        pattern=Pattern(_OWN + r"Found key in store: \S{1,300} from rank: (?P<ranks>\d{1,7})\."),
        sample="[Rank 2] Found key in store: NCCLABORTEDCOMM:0a0b0c, from rank: 5. This means "
        "that rank has aborted its NCCL communicators previously and is not in a healthy state.",
        near_miss="Found key in store: 0",
        versions="torch 1.x to 2.1",
    ),
    _torch(
        name="remote_rank",
        class_=FindingClass.REMOTE_ERROR,
        needle="remote error detected from rank",
        pattern=Pattern(r"remote error detected from rank: (?P<ranks>\d{1,7})"),
        sample="[PG ID 0 PG GUID 0(default_pg) Rank 1]  remote error detected from rank: 6",
        near_miss="[PG ID 0 PG GUID 0(default_pg) Rank 1]  no remote error detected",
        versions="torch 2.6 and later, TORCH_NCCL_PROPAGATE_ERROR",
    ),
)

_DESYNC_ROWS: tuple[Signature, ...] = (
    _desync(
        name="not_joined",
        needle="didn't join collective #",
        pattern=Pattern(
            r"\[(?P<ranks>\d[\d, .]{0,8000})\] finished collective #\d{1,20}, but didn't join "
            r"collective #(?P<seq>\d{1,20})"
        ),
        sample="[3, 11] finished collective #640, but didn't join collective #641 (count from 1)",
        near_miss="[3, 11] joined but didn't finish collective #640 (count from 1)",
        source="torch TraceUtils.h",
        versions="torch 1.12 and later, TORCH_NCCL_DESYNC_DEBUG",
    ),
    _desync(
        name="never_joined",
        needle="are the lagging ranks that caused this timeout",
        pattern=Pattern(
            r"ranks \[(?P<ranks>\d[\d, .]{0,8000})\] are the lagging ranks that caused this timeout"
        ),
        sample="	 - To our best knowledge, ranks [7] are the lagging ranks that caused this "
        "timeout. They never joined any collectives",
        near_miss="ranks [7] are the leading ranks",
        source="torch TraceUtils.h",
        versions="torch 1.12 and later, TORCH_NCCL_DESYNC_DEBUG",
    ),
    _desync(
        name="monitored_barrier",
        needle="failed to pass monitoredBarrier",
        pattern=Pattern(
            r"Ranks? (?P<ranks>\d[\d, ]{0,8000}?) failed to pass (?P<op>monitoredBarrier)"
            r"(?: in (?P<d_timeout_ms>\d{1,12}) ms)?"
        ),
        sample="RuntimeError: [Rank 0]: Ranks 4, 6 failed to pass monitoredBarrier in 30000 ms",
        near_miss="Rank 4 successfully reached monitoredBarrier, but received errors while "
        "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
        source="torch ProcessGroupGloo.cpp",
    ),
    _torch(
        name="fingerprint",
        class_=FindingClass.COLLECTIVE_MISMATCH,
        needle="Detected mismatch between collectives",
        pattern=Pattern(
            r"Detected mismatch between collectives on ranks\. Rank (?P<ranks_mine>\d{1,7}) is "
            rf"running collective: {_FINGERPRINT}(?P<d_mine>[^\n]{{0,2000}}?)\),? ?but Rank "
            rf"(?P<ranks_other>\d{{1,7}}) is running collective: {_FINGERPRINT}"
            r"(?P<d_other>[^\n]{0,2000}?)\)(?:\.|$|\s)"
        ),
        sample="RuntimeError: Detected mismatch between collectives on ranks. Rank 2 is running "
        "collective: CollectiveFingerPrint(SequenceNumber=31, OpType=ALLREDUCE, TensorShape=[8], "
        "TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), "
        "device=cuda)), but Rank 0 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=31, OpType=BROADCAST, TensorShape=[8]).Collectives "
        "differ in the following aspects:",
        near_miss="Detected no mismatch between collectives on ranks. Rank 2 is running",
        source="torch ProcessGroupWrapper.cpp",
        versions="torch 1.11 and later, TORCH_DISTRIBUTED_DEBUG=DETAIL",
        refine=_difference,
    ),
    _torch(
        name="fingerprint_cut",
        class_=FindingClass.COLLECTIVE_MISMATCH,
        needle="Detected mismatch between collectives",
        pattern=Pattern(
            r"Detected mismatch between collectives on ranks\.(?![^\n]{1,4000}but Rank \d)"
            r"(?:[^\n]{0,20}Rank (?P<ranks_mine>\d{1,7}) is running)?"
        ),
        sample="RuntimeError: Detected mismatch between collectives on ranks.",
        near_miss="Detected mismatch between collectives on ranks. Rank 2 is running collective: "
        "CollectiveFingerPrint(OpType=BARRIER), but Rank 0 is running collective: "
        "CollectiveFingerPrint(OpType=GATHER)",
        source="torch ProcessGroupWrapper.cpp",
    ),
)

_GLOO_ROWS: tuple[Signature, ...] = (
    _torch(
        name="gloo_closed",
        class_=FindingClass.SOCKET_CLOSED_BY_PEER,
        needle="Connection closed by peer [",
        pattern=Pattern(r"Connection closed by peer \[(?P<peer>[^\]\s]{1,256})\]"),
        sample="[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
        "peer [10.77.0.8]:34012",
        near_miss="Connection closed by peer",
        source="gloo",
    ),
    _torch(
        name="gloo_connect",
        class_=FindingClass.SOCKET_CONNECT_FAILED,
        needle="connectFullMesh failed with",
        pattern=Pattern(
            r"connectFullMesh failed with (?:\[[^\]\n]{1,200}\] )?(?P<error>[^\n]{1,80})"
        ),
        sample="Gloo connectFullMesh failed with "
        "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
        near_miss="Gloo connectFullMesh done",
        source="gloo",
    ),
)

ROWS: tuple[Signature, ...] = (
    *_TIMEOUT_ROWS,
    *_STUCK_ROWS,
    *_ABORT_ROWS,
    *_DESYNC_ROWS,
    *_GLOO_ROWS,
    *store.ROWS,
)
