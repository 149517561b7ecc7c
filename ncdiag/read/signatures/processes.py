"""Processes that the kernel killed, found stuck, or saw crash."""

from functools import partial

from ncdiag.model.finding import FindingClass
from ncdiag.read.signatures.fragments import either
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

_kernel = partial(Signature, levels=OUTSIDE, kind="kernel")
_oom = partial(_kernel, class_=FindingClass.OOM_KILL, source="Linux mm/oom_kill.c")
_stall = partial(
    _kernel, class_=FindingClass.KERNEL_STALL, source="Linux kernel/hung_task.c, watchdog.c, rcu"
)
_crash = partial(
    _kernel, class_=FindingClass.PROCESS_CRASH, source="Linux arch/x86/mm/fault.c, kernel/traps.c"
)


_OOM_ROWS: tuple[Signature, ...] = (
    _oom(
        name="oom_constraint",
        needle="oom-kill:constraint=",
        pattern=Pattern(
            r"oom-kill:constraint=(?P<constraint>[A-Z_]{1,40}),(?:(?!oom-kill:)[^\n]){0,4000}?"
            r"task=(?P<process>[^,\n]{1,64}),pid=(?P<pid>\d{1,10})"
        ),
        sample="oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,mems_allowed=0-1,oom_memcg=/slurm/uid_1200/job_77,task_memcg=/slurm/uid_1200/job_77/step_0,task=python3,pid=31337,uid=1200",
        near_miss="oom-kill:disabled for this cgroup",
        versions="Linux 4.19 and later",
    ),
    _oom(
        name="oom_killed",
        needle="Killed process ",
        further=("Kill process ",),
        pattern=Pattern(
            r"(?:Out of memory|Memory cgroup out of memory|Out of memory \([\w ]{1,40}\)): "
            r"Kill(?:ed)? process (?P<pid>\d{1,10})(?: \((?P<process>[^)\n]{1,64})\)|, UID "
            r"\d{1,10}, "
            r"\((?P<process_>[^)\n]{1,64})\))"
        ),
        sample="Out of memory: Killed process 31337 (python3) total-vm:91234kB, anon-rss:81234kB",
        near_miss="Out of memory: no killable processes",
        refine=either("process"),
    ),
    _oom(
        name="oom_killed_old",
        needle="Killed process ",
        pattern=Pattern(
            r"^(?!Out of|Memory cgroup)(?:[^\n]{0,60}\s)?Killed process (?P<pid>\d{1,10}) "
            r"\((?P<process>[^)\n]{1,64})\),? (?:total-vm|UID|vsz)"
        ),
        sample="Killed process 31337 (python3) total-vm:91234kB, anon-rss:81234kB, file-rss:0kB",
        near_miss="Killed process group of session 4",
        versions="Linux before 5.3, after the line that chose the process",
    ),
    _oom(
        name="oom_reaper",
        needle="oom_reaper: reaped process",
        pattern=Pattern(
            r"oom_reaper: reaped process (?P<pid>\d{1,10}) \((?P<process>[^)\n]{1,64})\)"
        ),
        sample="oom_reaper: reaped process 31337 (python3), now anon-rss:0kB, file-rss:0kB",
        near_miss="oom_reaper: unable to reap pid:31337 (python3)",
        versions="Linux 4.6 and later",
    ),
    _oom(
        name="oom_invoked",
        needle="invoked oom-killer",
        pattern=Pattern(r"(?<![^\s:])(?P<d_invoker>[^\s:]{1,64}) invoked oom-killer: gfp_mask"),
        sample="python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        near_miss="python3 raised its oom_score_adj",
    ),
    _oom(
        name="oom_limit",
        needle="killed as a result of limit of",
        pattern=Pattern(r"Task in [^\n]{1,400} killed as a result of limit of "),
        sample="Task in /slurm/job_77/step_0 killed as a result of limit of /slurm/job_77",
        near_miss="Task in /slurm/job_77/step_0 started",
        versions="Linux before 4.19",
        constants={"d_cgroup": "yes"},
    ),
)

_STALL_ROWS: tuple[Signature, ...] = (
    _stall(
        name="blocked_task",
        needle="blocked for more than",
        pattern=Pattern(
            r"task (?P<process>[^\n]{1,64}?):(?P<d_pid>\d{1,10}) blocked for more than "
            r"(?P<d_seconds>\d{1,8}) seconds"
        ),
        sample="INFO: task python3:20441 blocked for more than 241 seconds.",
        near_miss="queue blocked for more than expected",
    ),
    _stall(
        name="soft_lockup",
        needle="soft lockup - CPU#",
        pattern=Pattern(
            r"soft lockup - CPU#(?P<d_cpu>\d{1,6}) stuck for (?P<d_seconds>\d{1,8})s! "
            r"\[(?P<process>[^\]\n]{1,64}):\d{1,10}\]"
        ),
        sample="watchdog: BUG: soft lockup - CPU#41 stuck for 23s! [python3:20441]",
        near_miss="watchdog: soft lockup detector enabled",
    ),
    _stall(
        name="hard_lockup",
        needle="hard LOCKUP",
        pattern=Pattern(r"[Ww]atchdog[^\n]{0,20} detected hard LOCKUP on cpu (?P<d_cpu>\d{1,6})"),
        sample="NMI watchdog: Watchdog detected hard LOCKUP on cpu 17",
        near_miss="NMI watchdog: hard LOCKUP detector disabled",
    ),
    _stall(
        name="rcu_stall",
        needle="self-detected stall",
        further=("detected stalls", "expedited stalls"),
        pattern=Pattern(
            r"rcu_\w{1,20} (?:self-detected stall|detected stalls|detected expedited stalls) on"
        ),
        sample="rcu: INFO: rcu_preempt detected stalls on CPUs/tasks: { 12 }",
        near_miss="rcu: Hierarchical RCU implementation.",
    ),
    _stall(
        name="kernel_panic",
        needle="Kernel panic - not syncing: ",
        pattern=Pattern(
            r"Kernel panic - not syncing: (?!Fatal (?:local )?[Mm]achine check|Fatal hardware|"
            r"Timeout: Not)(?P<d_reason>[^\n]{1,80})"
        ),
        sample="Kernel panic - not syncing: hung_task: blocked tasks",
        near_miss="Kernel panic - not syncing: Fatal machine check",
        constants={"d_panic": "yes"},
    ),
    _stall(
        name="uninterruptible",
        needle="uninterruptible sleep (D-state)",
        pattern=Pattern(r"stuck in uninterruptible sleep \(D-state\)"),
        sample="worker process 4711 stuck in uninterruptible sleep (D-state), the host may need "
        "to be recycled",
        near_miss="0 processes in uninterruptible sleep (D-state)",
        source="torch elastic multiprocessing",
        versions="torch 2.14 and later",
        kind="elastic",
    ),
)

_CRASH_ROWS: tuple[Signature, ...] = (
    _crash(
        name="segfault",
        needle="segfault at ",
        pattern=Pattern(
            r"(?<![^\s\[\]])(?P<d_process>[^\s\[\]]{1,64})\[(?P<d_pid>\d{1,10})\]: segfault at "
            r"[0-9a-f]{1,16} ip (?:[^\n]{0,120}? in (?P<d_library>[^\s\[]{1,120})\[)?"
        ),
        sample="pt_main_thread[20441]: segfault at 18 ip 00007f10aa sp 00007ffc10 error 4 in "
        "libtorch_cuda.so[7f10aa000000+9000]",
        near_miss="handler for segfault at exit installed",
    ),
    _crash(
        name="trap",
        needle="traps: ",
        pattern=Pattern(
            r"traps: (?P<d_process>[^\s\[\]]{1,64})\[(?P<d_pid>\d{1,10})\] "
            r"(?:trap )?(?P<d_trap>general protection|invalid opcode|divide error|stack segment|"
            r"bus error|int3)"
        ),
        sample="traps: python3[20441] trap invalid opcode ip:7f10aa sp:7ffc10 error:0 in libx.so",
        near_miss="traps: enabled for 12 vectors",
    ),
)

ROWS: tuple[Signature, ...] = (*_OOM_ROWS, *_STALL_ROWS, *_CRASH_ROWS)
