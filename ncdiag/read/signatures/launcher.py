"""Launchers, schedulers and signals: how a job is ended, and by whom."""

import re
from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures import mpi, schedulers, signals
from ncdiag.read.signatures.fragments import either
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature
from ncdiag.read.signatures.signals import SIGNAL_WORDS, numbered

# "srun: error: node[3-5]: tasks 12-14,20: ".
_SRUN = (
    r"srun: error: (?P<d_host>[^\s:]{1,256}): tasks? (?P<d_tasks>[\d,-]{1,400}): "
    r"(?:\[\d{1,6}\] )?"
)
# Job and step, the host where there is one, and the time of a line that ends in three asterisks.
_CANCELLED = (
    r"\*\*\* (?P<d_what>JOB|STEP) (?P<d_job>\d{1,12})(?:\.[\w+]{1,24})? (?:ON "
    r"(?P<d_host>\S{1,256}) )?"
    r"CANCELLED AT (?P<d_at>[\dT:-]{1,32})"
)
_WORKER = (
    ("pid", re.compile(r"Worker PID: (\d{1,10})|\bpid=(\d{1,10})")),
    ("d_host", re.compile(r"Worker IP address: ([\w.:]{1,64})|\bip=([\w.:]{1,64})")),
)


def _job(values: dict[str, str], line: Line) -> dict[str, str]:
    """Publish the job's number."""
    del line
    if job := values.pop("d_job", None):
        values["job"] = job
    return values


def _by_exit_code(values: dict[str, str], line: Line) -> dict[str, str]:
    """Publish the signal that a shell's exit code stands for."""
    del line
    return values | {"signal": str(int(values["d_exitcode"]) - 128)}


def _by_address(values: dict[str, str], line: Line) -> dict[str, str]:
    """Add process and address of the worker that Ray speaks of."""
    found = {name: pattern.search(line.text) for name, pattern in _WORKER}
    return values | {name: match[1] or match[2] for name, match in found.items() if match}


_slurm = partial(Signature, levels=OUTSIDE, kind="slurm", source="Slurm srun and slurmstepd")
_srun = partial(_slurm, needle="srun: error: ")
_ray = partial(Signature, levels=OUTSIDE, kind="ray", source="Ray core worker and raylet")
_pod = partial(Signature, levels=OUTSIDE, source="Kubernetes events and pod status")

_SLURM_ROWS: tuple[Signature, ...] = (
    _slurm(
        name="slurm_time_limit",
        class_=FindingClass.JOB_TIME_LIMIT,
        needle="DUE TO TIME LIMIT",
        pattern=Pattern(rf"(?:{_CANCELLED} )?DUE TO TIME LIMIT"),
        sample="slurmstepd: error: *** STEP 8812.3 ON gpu041 CANCELLED AT 2030-02-03T04:05:06 "
        "DUE TO TIME LIMIT ***",
        near_miss="slurmstepd: error: *** JOB 8812 ON gpu041 CANCELLED AT 2030-02-03T04:05:06 "
        "DUE TO PREEMPTION ***",
        refine=_job,
    ),
    _slurm(
        name="slurm_time_exceeded",
        class_=FindingClass.JOB_TIME_LIMIT,
        needle="has exceeded its time limit",
        further=("reached time limit",),
        pattern=Pattern(
            r"[Jj]ob (?P<job>\d{1,12}) (?:has exceeded its time limit|reached time limit)"
        ),
        sample="salloc: Job 8812 has exceeded its time limit and its allocation has been revoked.",
        near_miss="salloc: Job 8812 has been allocated resources",
    ),
    _slurm(
        name="slurm_cancelled",
        class_=FindingClass.JOB_CANCELLED,
        needle=" DUE TO ",
        pattern=Pattern(
            rf"{_CANCELLED} DUE TO (?!TIME LIMIT)(?P<reason>[A-Z][A-Z ]{{1,60}}?)(?=[,.*]|\s*$| \*)"
        ),
        sample="slurmstepd: error: *** JOB 8812 ON gpu041 CANCELLED AT 2030-02-03T04:05:06 DUE "
        "TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
        near_miss="slurmstepd: error: *** JOB 8812 ON gpu041 CANCELLED AT 2030-02-03T04:05:06 "
        "DUE TO TIME LIMIT ***",
    ),
    _slurm(
        name="slurm_cancelled_bare",
        class_=FindingClass.JOB_CANCELLED,
        needle="CANCELLED AT ",
        pattern=Pattern(rf"{_CANCELLED}\s{{0,4}}\*\*\*"),
        sample="slurmstepd: error: *** STEP 8812.0 ON gpu041 CANCELLED AT 2030-02-03T04:05:06 ***",
        near_miss="slurmstepd: error: *** STEP 8812.0 ON gpu041 CANCELLED AT 2030-02-03T04:05:06 "
        "DUE TO TIME LIMIT ***",
    ),
    _slurm(
        name="slurm_node_failure",
        class_=FindingClass.JOB_CANCELLED,
        needle="Node failure on",
        pattern=Pattern(r"(?P<reason>Node failure) on (?P<d_node>\S{1,400})"),
        sample="srun: error: Node failure on gpu041",
        near_miss="srun: error: Nodes gpu041 are still not ready",
    ),
    _slurm(
        name="slurm_revoked",
        class_=FindingClass.JOB_CANCELLED,
        needle="has been revoked",
        further=("Job has been cancelled",),
        pattern=Pattern(
            r"^(?![^\n]{0,200}exceeded its time limit)[^\n]{0,200}?"
            r"(?:Job allocation (?P<d_job>\d{1,12}) (?P<reason>has been revoked)|"
            r"(?P<reason_>Job has been cancelled))"
        ),
        refine=either("reason"),
        sample="salloc: Job allocation 8812 has been revoked.",
        near_miss="salloc: Granted job allocation 8812",
    ),
    _srun(
        name="srun_killed",
        class_=FindingClass.PROCESS_DIED,
        pattern=Pattern(rf"{_SRUN}Killed"),
        sample="srun: error: gpu041: task 13: Killed",
        near_miss="srun: error: gpu041: task 13: Terminated",
        constants={"d_signal": "9"},
    ),
    _srun(
        name="srun_exit_killed",
        class_=FindingClass.PROCESS_DIED,
        pattern=Pattern(rf"{_SRUN}Exited with exit code (?P<exitcode>137)\b"),
        sample="srun: error: gpu041: task 13: Exited with exit code 137",
        near_miss="srun: error: gpu041: task 13: Exited with exit code 13",
    ),
    _srun(
        name="srun_oom",
        class_=FindingClass.OOM_KILL,
        pattern=Pattern(rf"{_SRUN}Out [Oo]f Memory"),
        sample="srun: error: gpu[041-042]: tasks 8-15: Out Of Memory",
        near_miss="srun: error: gpu041: task 8: Out of time",
    ),
    _srun(
        name="srun_crash",
        class_=FindingClass.PROCESS_CRASH,
        pattern=Pattern(rf"{_SRUN}(?P<signal>{SIGNAL_WORDS})"),
        sample="srun: error: gpu041: task 3: Segmentation fault (core dumped)",
        near_miss="srun: error: gpu041: task 3: Aborted (core dumped)",
        refine=numbered,
    ),
    _srun(
        name="srun_exit_crash",
        class_=FindingClass.PROCESS_CRASH,
        pattern=Pattern(rf"{_SRUN}Exited with exit code (?P<d_exitcode>132|135|136|139)\b"),
        sample="srun: error: gpu041: task 3: Exited with exit code 139",
        near_miss="srun: error: gpu041: task 3: Exited with exit code 1",
        refine=_by_exit_code,
    ),
    _srun(
        name="srun_aborted",
        class_=FindingClass.COMM_ABORTED,
        pattern=Pattern(rf"{_SRUN}(?:Aborted|Exited with exit code (?P<d_exitcode>134)\b)"),
        sample="srun: error: gpu041: task 3: Aborted (core dumped)",
        near_miss="srun: error: gpu041: task 3: Terminated",
        constants={"d_signal": "6"},
    ),
    _srun(
        name="srun_terminated",
        class_=FindingClass.TERMINATED_BY_LAUNCHER,
        pattern=Pattern(rf"{_SRUN}(?:Terminated|Exited with exit code 143\b)"),
        sample="srun: error: gpu041: tasks 3-5: Terminated",
        near_miss="srun: error: gpu041: task 3: Killed",
        constants={"signal": "15"},
    ),
    _srun(
        name="srun_exit",
        class_=FindingClass.PROCESS_DIED,
        pattern=Pattern(
            rf"{_SRUN}Exited with exit code (?P<exitcode>(?!13[24-79]\b|143\b|0\b)\d{{1,3}})\b"
        ),
        sample="srun: error: gpu041: tasks 0-7: Exited with exit code 1",
        near_miss="srun: error: gpu041: tasks 0-7: Exited with exit code 143",
        role=Role.CONSEQUENCE,
        severity=Severity.INFO,
    ),
    _slurm(
        name="slurm_oom",
        class_=FindingClass.OOM_KILL,
        needle="oom_kill event",
        further=("oom-kill event",),
        pattern=Pattern(
            r"[Dd]etected \d{1,9} oom[-_]kill event(?:s|\(s\))? in (?:StepId=|step )?"
            r"(?P<d_step>[\w.+]{0,40})"
        ),
        sample="slurmstepd: error: Detected 2 oom_kill events in StepId=8812.0. Some of the step "
        "tasks have been OOM Killed.",
        near_miss="slurmstepd: error: oom_kill support is off",
    ),
    _slurm(
        name="slurm_memory_limit",
        class_=FindingClass.OOM_KILL,
        needle="exceeded memory limit",
        further=("xceeded job memory limit", "xceeded step memory limit"),
        pattern=Pattern(
            r"slurmstepd: error: (?:(?:Job|Step) (?P<d_step>[\d.]{1,24}) exceeded memory limit|"
            r"Exceeded (?:job|step) memory limit)"
        ),
        sample="slurmstepd: error: Job 8812 exceeded memory limit (10442128 > 10240000), being "
        "killed",
        near_miss="slurmstepd: memory limit set to 10240000",
        versions="Slurm before 20",
    ),
)

_RAY_ROWS: tuple[Signature, ...] = (
    _ray(
        name="ray_worker_died",
        class_=FindingClass.PROCESS_DIED,
        needle="worker died or was killed",
        further=("worker died unexpectedly", "Worker unexpectedly exits"),
        pattern=Pattern(
            r"worker died (?:or was killed while executing|unexpectedly)|Worker unexpectedly exits"
        ),
        sample="A worker died or was killed while executing a task by an unexpected system "
        "error. Node ID: 0a0b Worker IP address: 10.77.0.8 Worker port: 10022 Worker PID: 4711",
        near_miss="A worker started executing a task",
        refine=_by_address,
    ),
    _ray(
        name="ray_actor_died",
        class_=FindingClass.PROCESS_DIED,
        needle="ActorDiedError",
        further=("RayActorError", "WorkerCrashedError", "The actor died unexpectedly"),
        pattern=Pattern(
            r"(?:ActorDiedError|RayActorError|WorkerCrashedError|The actor died unexpectedly)\b"
            r"(?![^\n]{0,2000}(?:ray\.kill|killed by))(?:\(|:| before|\s*$)"
        ),
        sample="ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this "
        "task.",
        near_miss="except ray.exceptions.ActorDiedError as error",
        refine=_by_address,
    ),
    _ray(
        name="ray_node_dead",
        class_=FindingClass.PROCESS_DIED,
        needle="has been marked dead because the detector",
        pattern=Pattern(
            r"node with node id: [^\n]{1,80}? and address: (?P<d_host>[^\s,]{1,256})"
            r"(?: and node name: [^\n]{1,256}?)? has been marked dead because the detector has "
            r"missed too many heartbeats"
        ),
        sample="The node with node id: 0a0b and address: 10.77.0.8 and node name: 10.77.0.8 has "
        "been marked dead because the detector has missed too many heartbeats from it.",
        near_miss="The node with node id: 0a0b and address: 10.77.0.8 has left",
        source="Ray raylet node_manager.cc",
    ),
    _ray(
        name="ray_oom",
        class_=FindingClass.OOM_KILL,
        needle="running low on memory",
        further=("due to memory pressure", "OutOfMemoryError: Task was killed"),
        pattern=Pattern(
            r"node running low on memory|killed due to (?:memory pressure|the node running low)|"
            r"workers? \(tasks / actors\) killed due to memory pressure|"
            r"OutOfMemoryError: Task was killed"
        ),
        sample="3 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers "
        "crashed due to other reasons at node (ID: 0a0b, IP: 10.77.0.8)",
        near_miss="memory pressure is low",
    ),
    _ray(
        name="ray_memory_monitor",
        class_=FindingClass.OOM_KILL,
        needle="exceeds the memory usage threshold of",
        pattern=Pattern(
            r"Memory on the node \(IP: (?P<d_host>[\w.:]{1,64})[^\n]{0,800}? exceeds the memory "
            r"usage threshold of [\d.]{1,12}\. Ray killed this worker"
        ),
        sample="Memory on the node (IP: 10.77.0.8, ID: 0a0b) where the task (actor ID: 0c0d, "
        "name=Trainer.__init__, pid=4711, memory used=90.00GB) was running was 120.00GB / "
        "125.00GB (0.96), which exceeds the memory usage threshold of 0.95. Ray killed this "
        "worker (ID: 0e0f) because it was the most recently scheduled task",
        near_miss="Memory on the node (IP: 10.77.0.8, ID: 0a0b) was 120.00GB / 125.00GB (0.96), "
        "which exceeds the memory usage threshold of 0.95. Nothing was killed",
        refine=_by_address,
    ),
)

_POD_ROWS: tuple[Signature, ...] = (
    _pod(
        name="pod_oom",
        class_=FindingClass.OOM_KILL,
        needle="OOMKilled",
        pattern=Pattern(r"\bOOMKilled\b(?!\W{0,4}(?:false|0\b))"),
        sample="worker-3   0/1   OOMKilled   2   41m",
        near_miss="OOMKilled: false",
    ),
    _pod(
        name="pod_evicted",
        class_=FindingClass.JOB_CANCELLED,
        needle="Evicted",
        pattern=Pattern(
            r"(?:\d/\d\s{1,20}|[Rr]eason:?\s{0,20}|(?:Warning|Normal)\s{1,20})(?P<reason>Evicted)\b"
        ),
        sample="Warning  Evicted  2m  kubelet  The node was low on resource: ephemeral-storage.",
        near_miss="Evicted 3 blocks from the cache",
    ),
    _pod(
        name="pod_preempted",
        class_=FindingClass.JOB_CANCELLED,
        needle="Preempt",
        pattern=Pattern(
            r"(?:[Rr]eason:?\s{0,20}|(?:Warning|Normal)\s{1,20})"
            r"(?P<reason>Preempt(?:ed|ing|ion\w{0,20}))\b"
        ),
        sample="Normal  Preempted  9s  default-scheduler  Preempted by pod 0a0b on node gpu041",
        near_miss="Preempting is disabled",
    ),
    _pod(
        name="pod_node_lost",
        class_=FindingClass.PROCESS_DIED,
        needle="NodeNotReady",
        further=("NodeLost", "NodeShutdown", "TaintManagerEviction"),
        pattern=Pattern(
            r"(?:[Rr]eason:?\s{0,20}|(?:Warning|Normal)\s{1,20})(?:NodeLost|NodeNotReady|"
            r"NodeShutdown|TaintManagerEviction)\b"
        ),
        sample="Warning  NodeNotReady  3m  node-controller  Node is not ready",
        near_miss="NodeReady",
    ),
    _pod(
        name="exit_137",
        class_=FindingClass.PROCESS_DIED,
        needle="ode 137",
        further=("ode: 137", "ode=137", "ode:  137", "tatus 137"),
        pattern=Pattern(
            r"(?i)^(?!srun: )[^\n]{0,200}?\b(?:exit(?:ed)?(?: with)?(?: exit)?(?: |_)?(?:code|"
            r"status))"
            r"[:=\s]{1,20}(?P<exitcode>137)\b"
        ),
        sample="container trainer terminated with exit code 137",
        near_miss="batch 137 exited the queue",
    ),
    _pod(
        name="exit_crash",
        class_=FindingClass.PROCESS_CRASH,
        needle="ode 13",
        further=("ode: 13", "ode=13", "tatus 13"),
        pattern=Pattern(
            r"(?i)^(?!srun: )[^\n]{0,200}?\b(?:exit(?:ed)?(?: with)?(?: exit)?(?: |_)?(?:code|"
            r"status))"
            r"[:=\s]{1,20}(?P<d_exitcode>139|135|132|136)\b"
        ),
        refine=_by_exit_code,
        sample="container trainer terminated with exit code 139",
        near_miss="container trainer terminated with exit code 1",
    ),
)

ROWS: tuple[Signature, ...] = (
    *_SLURM_ROWS,
    *schedulers.ROWS,
    *signals.ROWS,
    *_RAY_ROWS,
    *_POD_ROWS,
    *mpi.ROWS,
)
