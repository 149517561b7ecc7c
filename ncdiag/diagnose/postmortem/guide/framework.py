"""PyTorch, launchers and schedulers, and reports of NCCL's RAS subsystem."""

from ncdiag.diagnose.postmortem.guide.record import Guide
from ncdiag.model.finding import FindingClass as Class

_RECORDER = "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1"

GUIDE = {
    Class.TORCH_WATCHDOG_TIMEOUT: Guide(
        "A collective did not finish in time. The ranks that print it were waiting; whoever is "
        "missing, or is behind, is the one to look at. When all had started it, the data path "
        "(network or GPU) is stuck.",
        (
            "Find the rank without such a line, or with the lowest last enqueued number",
            f"Record who waits for whom: {_RECORDER}; give the dumps to ncdiag parse-log",
            "See what the missing rank does: py-spy dump --pid PID; dmesg -T on its host",
            (
                "A rank that is slow for a reason (checkpoint, compilation): a longer timeout in "
                "init_process_group"
            ),
        ),
        f"{_RECORDER} torchrun ...",
    ),
    Class.TORCH_DESYNC: Guide(
        "PyTorch's own records show ranks at different collectives of one group: some wait for a "
        "call that others never made, or made another one. The ranks that did not join did "
        "something else (exception, data loader, checkpoint, another branch).",
        (
            "Read the log and the stack of the ranks that are named: py-spy dump --pid PID",
            f"Record the calls of all ranks: {_RECORDER}",
            "Look for code that only some ranks run: if rank == 0, uneven data, early exit",
        ),
        "py-spy dump --pid PID",
    ),
    Class.TORCH_WATCHDOG_STUCK: Guide(
        "The thread that watches collectives stood still itself: a CUDA or NCCL call blocks it, "
        "or another thread holds the interpreter's lock. A GPU that no longer answers looks just "
        "like this.",
        (
            "Check the GPU first: dmesg -T | grep -iE 'xid|nvrm'; nvidia-smi",
            "See who holds the lock: py-spy dump --native --pid PID",
            (
                "Long calls that hold it (compilation, huge pickles): raise "
                "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"
            ),
        ),
        "ssh HOST 'dmesg -T | grep -iE \"xid|nvrm\"; nvidia-smi'",
    ),
    Class.STORE_FAILURE: Guide(
        "The key-value store or rendezvous was lost, or never reached. At the start: wrong "
        "MASTER_ADDR, a firewall, a name that resolves differently, or missing hosts. Later: the "
        "process that holds the store, mostly rank 0, ended first.",
        (
            "Later in the run: read the log of rank 0, and of the host that holds the store",
            "At the start: getent hosts MASTER; nc -vz MASTER PORT from each host",
            "Count who joined: the message says how many of how many",
        ),
        "nc -vz MASTER_ADDR MASTER_PORT",
    ),
    Class.ELASTIC_WORKER_FAILED: Guide(
        "torchrun reports that a worker ended with an error. It says which rank failed first on "
        "that host and how, seldom why: the reason is in that rank's own output.",
        (
            "Read the output of the named rank; keep it: torchrun --log-dir logs --redirects 3",
            "Get the traceback into the report: put @record on the main function",
            (
                "Exit code -9: dmesg -T | grep -i oom; -7: df -h /dev/shm; -6: an abort after a "
                "time-out"
            ),
        ),
        "torchrun --log-dir logs --redirects 3 --tee 3 ...",
    ),
    Class.PROCESS_CRASH: Guide(
        "A process died by a fault signal: a bug in native code (library, driver, extension), a "
        "damaged installation, or a bad page of memory. On the same host again, with nothing like "
        "it elsewhere, the hardware becomes suspect.",
        (
            "See where: the segfault line of dmesg -T names the library; coredumpctl list",
            "Compare library versions with a host where it works; drop extensions one by one",
            "SIGBUS: df -h /dev/shm, and dmesg -T | grep -iE 'mce|memory failure'",
        ),
        "ssh HOST 'dmesg -T | grep -iE \"segfault|trap|mce\"; coredumpctl list'",
    ),
    Class.PROCESS_DIED: Guide(
        "A process ended and nothing in these logs says why. A kill for memory is the usual "
        "cause, then a pod or host that went away, then a person.",
        (
            (
                "Look for a kill: dmesg -T | grep -iE 'oom|killed process'; journalctl -k -b -1 "
                "when the host was rebooted"
            ),
            (
                "Ask the scheduler: sacct -j JOB --format=JobID,State,ExitCode,MaxRSS,NodeList; "
                "kubectl describe pod POD"
            ),
        ),
        "ssh HOST 'dmesg -T | grep -iE \"oom|killed process\"'",
    ),
    Class.APPLICATION_EXCEPTION: Guide(
        "The program's own error ended a rank; the others then lost their partner. The traceback "
        "names the line. Nothing is wrong with hosts or network.",
        (
            "Read the first traceback of the named rank and mend the program or its data",
            "Do not restart on other hosts: it will fail there as well",
        ),
        "grep -nE -A30 'Traceback|terminate called' FILE | head -60",
    ),
    Class.TERMINATED_BY_LAUNCHER: Guide(
        "The process was told to stop because the job was ending. It is never the cause: another "
        "rank failed first, or somebody or something ended the job.",
        ("Look for what failed before the first such line, on all hosts",),
        "ncdiag parse-log DIRECTORY_WITH_ALL_LOGS",
    ),
    Class.JOB_TIME_LIMIT: Guide(
        "The scheduler ended the job because its time was up. If nothing failed before, ask for "
        "more time; if the log falls silent long before, the job hung.",
        (
            "Compare the time of the last progress with the end",
            "Ask for more time (--time); save a checkpoint before the end: --signal=USR1@300",
        ),
        "sacct -j JOB --format=JobID,State,Elapsed,Timelimit,End",
    ),
    Class.JOB_CANCELLED: Guide(
        "The scheduler or a person stopped the job. NODE FAILURE means that the scheduler lost a "
        "host; PREEMPTION that another job needed the place; without a reason somebody cancelled "
        "it.",
        (
            (
                "Ask who and why: sacct -j JOB --format=JobID,State,Reason,NodeList; scontrol show "
                "job JOB"
            ),
            "Node failure: scontrol show node HOST; its kernel log and its BMC's event log",
        ),
        "sacct -j JOB --format=JobID,State,ExitCode,NodeList",
    ),
    Class.RAS_MISMATCH: Guide(
        "NCCL's own report shows ranks of a communicator at different operations or in different "
        "states. The ranks behind hold the others up. A difference of one may only be the moment "
        "at which it was taken.",
        (
            (
                "Ask again a minute later; whoever is still at the same count is stuck: "
                "ncdiag parse-log --ras HOST"
            ),
            "See what the ranks behind do: py-spy dump --pid PID; nvidia-smi on their hosts",
        ),
        "ncdiag parse-log --ras HOST",
    ),
    Class.RAS_INCOMPLETE: Guide(
        "Some processes did not answer NCCL's RAS, or count as dead. They have ended, their host "
        "is gone, or they are stuck so deeply that even their helper thread does not answer.",
        (
            "See whether host and process live: ping; pgrep -af python on the named host",
            "Look at its kernel log: dmesg -T | tail -50; not reachable at all: its BMC",
        ),
        "ssh HOST 'uptime; pgrep -af python; dmesg -T | tail'",
    ),
}
