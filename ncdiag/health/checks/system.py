"""The host itself: limits, memory, clock, processes, how long it is up."""

from collections.abc import Iterator

from ncdiag.health.checks.check import GPU_SOURCES, Case, Check, Outcome, Silent, Trip, quoted
from ncdiag.model.health import Severity, Source
from ncdiag.model.units import format_bytes, format_count, format_duration

_UNBOUND = -1
# From these on the kernel hands GPU memory to adapters by itself (DMA-BUF, open kernel modules).
_DMA_BUF_KERNEL, _DMA_BUF_DRIVER = (5, 12), 515
_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem", "nvidia-peermem")


def _memlock(case: Case) -> Iterator[Outcome]:
    bound = case.facts.limits.get("memlock")
    if bound is None:
        yield Silent("the limit on locked memory is not known")
    elif not case.facts.ib_ports:
        yield Silent("no RDMA here, which would need locked memory")
    elif bound != _UNBOUND and 0 <= bound < case.limits.memlock_bytes:
        yield Trip(
            text=f"a process may lock {format_bytes(bound)} of memory",
            measured=format_bytes(bound),
            limit=format_bytes(case.limits.memlock_bytes),
        )


def _shm(case: Case) -> Iterator[Outcome]:
    total, free = case.facts.shm_total_bytes, case.facts.shm_free_bytes
    if total is None and free is None:
        yield Silent("the size of /dev/shm is not known")
    elif total is not None and total < case.limits.shm_bytes:
        yield Trip(
            text=f"shared memory has {format_bytes(total)}",
            measured=format_bytes(total),
            limit=format_bytes(case.limits.shm_bytes),
        )
    elif free is not None and free < case.limits.shm_free_bytes:
        yield Trip(
            text=f"shared memory has {format_bytes(free)} free: dead jobs may have left segments",
            measured=format_bytes(free),
            limit=format_bytes(case.limits.shm_free_bytes),
        )


def _files(case: Case) -> Iterator[Outcome]:
    bound = case.facts.limits.get("nofile")
    if bound is None:
        yield Silent("the limit on open files is not known")
    elif bound != _UNBOUND and 0 <= bound < case.limits.files_note:
        few = bound < case.limits.files_warning
        yield Trip(
            text=f"a process may open {format_count(bound, 'file')} and sockets",
            severity=Severity.WARNING if few else Severity.NOTE,
            measured=str(bound),
            limit=str(case.limits.files_note),
        )


def _clock(case: Case) -> Iterator[Outcome]:
    clock = case.facts.clock
    if clock is None or (clock.synchronized is None and clock.offset_s is None):
        yield Silent("how the clock is kept is not known")
        return
    offset, most = clock.offset_s, case.limits.clock_offset_s
    if offset is not None and abs(offset) > most:
        yield Trip(
            text=f"the clock is {abs(offset):.3g} s {'fast' if offset > 0 else 'slow'}",
            measured=f"{offset:.3g} s",
            limit=f"{most:g} s",
        )
    elif clock.synchronized is False:
        by = f" ({quoted(clock.kept_by)} runs)" if clock.kept_by else ""
        yield Trip(text=f"the clock is not synchronised{by}")


def _went_back(case: Case) -> Iterator[Outcome]:
    if case.clock_went_back_s is None:
        if case.before is None:
            yield Silent("needs two readings")
        return
    yield Trip(
        text=f"the clock went back by {case.clock_went_back_s:.3g} s between two readings: no "
        "rising counters are told"
    )


def _blocked(case: Case) -> Iterator[Outcome]:
    """Processes that wait in the kernel; those that did so in both readings are stuck."""
    now = case.facts.blocked_processes
    if now is None:
        yield Silent("processes could not be looked at")
        return
    before = case.before.blocked_processes if case.before else None
    long_enough = (case.interval_s or 0.0) >= case.limits.blocked_interval_s
    stuck = sorted(set(now) & set(before or ())) if long_enough else []
    if stuck:
        names = ", ".join(map(quoted, stuck[:4])) + (" ..." if len(stuck) > 4 else "")
        yield Trip(text=f"stuck in the kernel in both readings: {names}")
    elif now:
        names = ", ".join(map(quoted, now[:4])) + (" ..." if len(now) > 4 else "")
        text = f"{format_count(len(now), 'process')} waiting in the kernel: {names}"
        yield Trip(text=text, severity=Severity.NOTE)


def _booted(case: Case) -> Iterator[Outcome]:
    uptime_s = case.facts.uptime_s
    if uptime_s is None:
        yield Silent("how long the host is up is not known")
    elif case.is_booting:
        yield Trip(
            text=f"up for {format_duration(max(0.0, uptime_s))}: links and services may still be "
            "starting"
        )


def _peer_memory(case: Case) -> Iterator[Outcome]:
    modules = case.facts.modules
    if modules is None:
        yield Silent("modules of the kernel are not known")
    elif "nvidia" not in modules or not case.facts.ib_ports:
        yield Silent("no RDMA ports and NVIDIA GPUs together here")
    elif not set(modules) & set(_PEER_MODULES):
        may = _may_use_dma_buf(case)
        yield Trip(
            text="nvidia_peermem is not loaded"
            + ("; DMA-BUF may do without it, if the driver is the open one" if may else ""),
            severity=Severity.NOTE if may else Severity.WARNING,
        )


def _may_use_dma_buf(case: Case) -> bool:
    driver = _numbers(case.facts.versions.get("driver"))
    kernel = _numbers(case.facts.versions.get("kernel"))
    return driver[:1] >= (_DMA_BUF_DRIVER,) and kernel[:2] >= _DMA_BUF_KERNEL


def _numbers(version: str | None) -> tuple[int, ...]:
    parts = (version or "").split("-", 1)[0].split(".")[:3]
    return tuple(int(part[:9]) for part in parts if part.isascii() and part.isdigit())


def _numa_balancing(case: Case) -> Iterator[Outcome]:
    value = case.facts.settings.get("numa_balancing")
    if value is None or not case.facts.gpus:
        yield Silent("no GPUs here, or the kernel does not tell")
    elif value == "on":
        yield Trip(text="NUMA balancing is on", measured="on", limit="off")


def _governor(case: Case) -> Iterator[Outcome]:
    value = case.facts.settings.get("cpu_governor")
    if value is None or not case.facts.gpus:
        yield Silent("no GPUs here, or the kernel does not tell")
    elif "powersave" in value:
        yield Trip(text="the CPU governor is powersave", measured=quoted(value))


CHECKS = (
    Check(
        id="memlock_limit",
        title="Locked memory",
        severity=Severity.WARNING,
        meaning="RDMA registers memory, which has to be locked: NCCL fails with ibv_reg_mr or "
        "falls back to sockets.",
        fix="ulimit -l unlimited: LimitMEMLOCK=infinity for slurmd or containerd, limits.conf for "
        "ssh",
        sources=(Source.LIMITS,),
        also=(Source.INFINIBAND,),
        rule=_memlock,
        configuration=True,
    ),
    Check(
        id="shm_small",
        title="Shared memory",
        severity=Severity.WARNING,
        meaning="NCCL within a host and data loaders need /dev/shm; programs die with a bus error "
        "when it is full.",
        fix="docker run --shm-size=16g; in Kubernetes an emptyDir of medium Memory; else clear it",
        sources=(Source.MOUNTS,),
        rule=_shm,
        configuration=True,
    ),
    Check(
        id="file_limit",
        title="Open files",
        severity=Severity.WARNING,
        meaning="Each connection of a large job is an open file; a few thousand are soon used up.",
        fix="ulimit -n 65536: LimitNOFILE= for slurmd or containerd, limits.conf for ssh",
        sources=(Source.LIMITS,),
        rule=_files,
        configuration=True,
    ),
    Check(
        id="clock_unsynchronized",
        title="Clock",
        severity=Severity.WARNING,
        meaning="The clock is not kept in step: logs of hosts cannot be put in order, and "
        "certificates seem to be of another time.",
        fix="timedatectl; chronyc tracking; enable chronyd or systemd-timesyncd",
        sources=(Source.CLOCK,),
        rule=_clock,
        configuration=True,
    ),
    Check(
        id="clock_went_back",
        title="Clock going back",
        severity=Severity.NOTE,
        meaning="The clock was set back between two readings: rates cannot be told from them.",
        fix="Read again; chronyc tracking",
        sources=(Source.PROC, Source.CLOCK),
        rule=_went_back,
    ),
    Check(
        id="blocked_processes",
        title="Processes stuck in the kernel",
        severity=Severity.WARNING,
        meaning="Processes in state D wait for a disk, file system or driver. Those that wait in "
        "both readings are stuck, and cannot be killed.",
        fix="ps -eo pid,stat,wchan:32,cmd | grep ' D'; look for what they wait for",
        sources=(Source.PROC,),
        rule=_blocked,
    ),
    Check(
        id="boot_recent",
        title="Just booted",
        severity=Severity.NOTE,
        meaning="Links train and services start after a boot; what is down now may soon be up.",
        fix="Look again in ten minutes",
        sources=(Source.PROC,),
        rule=_booted,
    ),
    Check(
        id="peer_memory",
        title="GPUDirect RDMA",
        severity=Severity.WARNING,
        meaning="Adapters cannot reach GPU memory: all traffic goes through host memory.",
        fix="modprobe nvidia_peermem, or use the open kernel modules with DMA-BUF",
        sources=(Source.MODULES,),
        also=(Source.INFINIBAND,),
        rule=_peer_memory,
        configuration=True,
    ),
    Check(
        id="numa_balancing",
        title="NUMA balancing",
        severity=Severity.NOTE,
        meaning="The kernel moves memory between sockets, which makes times of ranks vary.",
        fix="sysctl kernel.numa_balancing=0",
        sources=(Source.PROC,),
        also=GPU_SOURCES,
        rule=_numa_balancing,
        configuration=True,
    ),
    Check(
        id="cpu_governor",
        title="CPU governor",
        severity=Severity.NOTE,
        meaning="Processors clock down between bursts, and launches of kernels become slow.",
        fix="cpupower frequency-set -g performance",
        sources=(Source.PROC,),
        also=GPU_SOURCES,
        rule=_governor,
        configuration=True,
    ),
)
