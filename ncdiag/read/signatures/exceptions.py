"""How programs end by an error of their own, where one line tells; tracebacks have a reader."""

from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.signatures.fragments import chain, either, final
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature
from ncdiag.read.signatures.signals import SIGNAL_WORDS, numbered

_FAULTS = "SIGSEGV|SIGBUS|SIGILL|SIGFPE"


_any = partial(Signature, levels=OUTSIDE)
_crash = partial(_any, class_=FindingClass.PROCESS_CRASH)
_died = partial(_any, class_=FindingClass.PROCESS_DIED)
_exception = partial(_any, class_=FindingClass.APPLICATION_EXCEPTION)
_abort = partial(_any, class_=FindingClass.COMM_ABORTED)

_CRASH_ROWS: tuple[Signature, ...] = (
    _crash(
        name="caught_signal",
        needle="Caught signal ",
        pattern=Pattern(
            r"Caught signal (?P<signal>4|7|8|11)\b(?! \(Segmentation fault\)\. Server)"
        ),
        sample="Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)",
        near_miss="Caught signal 15 (Terminated)",
        source="UCX and other signal handlers",
    ),
    _crash(
        name="caught_signal_name",
        needle="SIGSEGV",
        further=("SIGBUS", "SIGILL", "SIGFPE"),
        pattern=Pattern(
            rf"\*\*\* (?P<signal>{_FAULTS}) (?:received at time|\(@0x)|"
            rf"\b(?:[Rr]eceived|[Cc]aught|with|[Ff]atal|by) (?:signal:? )?(?P<signal_>{_FAULTS})\b"
            r"(?![^\n]{0,40}received by PID)"
        ),
        sample="*** SIGSEGV received at time=1900000000 on cpu 12 ***",
        near_miss="handlers of SIGSEGV are installed",
        source="abseil, glog, Go, fault handlers of frameworks, torch.multiprocessing",
        refine=chain(either("signal"), numbered),
    ),
    _crash(
        name="fatal_python",
        needle="Fatal Python error: ",
        pattern=Pattern(rf"Fatal Python error: (?P<signal>{SIGNAL_WORDS})"),
        sample="Fatal Python error: Segmentation fault",
        near_miss="Fatal Python error: Aborted",
        source="Python faulthandler",
        refine=numbered,
    ),
    _crash(
        name="worker_crash",
        needle="is killed by signal: ",
        pattern=Pattern(rf"is killed by signal: (?P<signal>{SIGNAL_WORDS})"),
        sample="RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is "
        "possible that dataloader's workers are out of shared memory.",
        near_miss="RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. ",
        source="torch.utils.data",
        refine=numbered,
    ),
    _crash(
        name="glibc",
        needle="double free",
        further=(
            "free(): ",
            "corrupted ",
            "alloc(): ",
            "malloc_consolidate(): ",
            "munmap_chunk(): ",
            "smashing detected",
            "overflow detected",
        ),
        pattern=Pattern(
            r"(?:^|[\s:'])(?:double free or corruption|free\(\): (?:invalid|double|corrupted)|"
            r"malloc(?:_consolidate)?\(\): \w|realloc\(\): invalid|munmap_chunk\(\): invalid "
            r"pointer|"
            r"corrupted (?:size vs\. prev_size|double-linked list)|"
            r"\*\*\* (?:stack smashing|buffer overflow) detected \*\*\*)"
        ),
        sample="double free or corruption (!prev)",
        near_miss="free memory: 12 GiB",
        source="glibc",
    ),
    _crash(
        name="unexpected_fault",
        needle="encountered in worker",
        pattern=Pattern(
            r"Unexpected (?P<signal>segmentation fault|bus error|floating-point exception) "
            r"encountered in worker"
        ),
        sample="ERROR: Unexpected segmentation fault encountered in worker.",
        near_miss="Unexpected segment encountered in worker",
        source="torch.utils.data",
        refine=numbered,
    ),
    _crash(
        name="segfault_encountered",
        needle="Segfault encountered",
        pattern=Pattern(r"!{3,20} ?Segfault encountered ?!{3,20}"),
        sample="!!!!!!! Segfault encountered !!!!!!!",
        near_miss="no Segfault encountered",
        source="CPython extension builds",
    ),
)

_DEATH_ROWS: tuple[Signature, ...] = (
    _died(
        name="worker_killed",
        needle="is killed by signal: ",
        pattern=Pattern(r"(?:\(pid (?P<pid>\d{1,10})\) )?is killed by signal: Killed"),
        sample="RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. ",
        near_miss="RuntimeError: DataLoader worker (pid 4711) is killed by signal: Terminated. ",
        source="torch.utils.data",
        constants={"d_signal": "9"},
    ),
    _died(
        name="worker_exited",
        needle="exited unexpectedly",
        pattern=Pattern(
            r"worker(?:s)? \(pid(?:\(s\))? (?P<pid>\d{1,10})[\d, ]{0,200}\) exited unexpectedly"
        ),
        sample="RuntimeError: DataLoader worker (pid(s) 4711, 4712) exited unexpectedly",
        near_miss="DataLoader worker exited after the last batch",
        source="torch.utils.data",
    ),
    _died(
        name="engine_worker_died",
        needle="died unexpectedly, shutting down",
        pattern=Pattern(r"Worker proc (?P<d_name>\S{1,128}) died unexpectedly, shutting down"),
        sample="Worker proc VllmWorker-5 died unexpectedly, shutting down executor.",
        near_miss="Worker proc VllmWorker-5 ended, shutting down executor.",
        source="vLLM executor",
    ),
    _died(
        name="engine_worker_pid",
        needle=" died, exit code: ",
        pattern=Pattern(
            r"Worker (?P<d_name>\S{1,128}) pid (?P<pid>\d{1,10}) died, "
            r"exit code: (?P<exitcode>-?\d{1,4})"
        ),
        sample="Worker VllmWorkerProcess pid 4711 died, exit code: -9",
        near_miss="Worker VllmWorkerProcess pid 4711 ended, exit code: 0",
        source="vLLM multiproc_worker_utils.py",
    ),
    _died(
        name="spawn_killed",
        needle="terminated with signal SIGKILL",
        pattern=Pattern(r"process (?P<d_index>\d{1,6}) terminated with signal SIGKILL"),
        sample="torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with "
        "signal SIGKILL",
        near_miss="torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with "
        "signal SIGTERM",
        source="torch.multiprocessing",
        constants={"d_signal": "9"},
    ),
)

_ABORT_ROWS: tuple[Signature, ...] = (
    _abort(
        name="python_aborted",
        needle="Fatal Python error: Aborted",
        pattern=Pattern(r"Fatal Python error: Aborted"),
        sample="Fatal Python error: Aborted",
        near_miss="Fatal Python error: Segmentation fault",
        source="Python faulthandler",
        constants={"d_signal": "6"},
    ),
    _abort(
        name="abort_received",
        needle="*** SIGABRT",
        pattern=Pattern(r"\*\*\* SIGABRT (?:received at time|\(@0x)"),
        sample="*** SIGABRT received at time=1900000000 on cpu 12 ***",
        near_miss="*** SIGSEGV received at time=1900000000 on cpu 12 ***",
        source="abseil, glog",
        constants={"d_signal": "6"},
    ),
)

_EXCEPTION_ROWS: tuple[Signature, ...] = (
    _exception(
        name="assertion",
        needle="Assertion",
        pattern=Pattern(
            r"(?:^|: )(?P<exception>Assertion) [`'](?P<d_condition>[^\n]{1,120}?)['`] failed"
        ),
        sample="train: src/batch.cc:41: int next(): Assertion `size > 0' failed.",
        near_miss="Assertion of ownership failed",
        source="glibc assert",
    ),
    _exception(
        name="device_assertion",
        needle="Assertion `",
        pattern=Pattern(
            r"block: \[[\d,]{5,30}\], thread: \[[\d,]{5,30}\] (?P<exception>Assertion) "
            r"`(?P<d_condition>[^`\n]{1,120})` failed"
        ),
        sample="/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1553: indexSelectLargeIndex: "
        "block: [121,0,0], thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
        near_miss="train: src/batch.cc:41: int next(): Assertion `size > 0' failed.",
        source="CUDA device code of torch",
    ),
    _exception(
        name="rust_panic",
        needle="panicked at ",
        pattern=Pattern(r"thread '[^'\n]{1,80}' (?:\(\d{1,10}\) )?(?P<exception>panicked) at "),
        sample="thread 'main' panicked at src/loader.rs:88:17:",
        near_miss="the audience panicked at noon",
        source="Rust",
    ),
    _exception(
        name="fatal_python_other",
        needle="Fatal Python error: ",
        pattern=Pattern(
            rf"(?P<exception>Fatal Python error): (?!Aborted|{SIGNAL_WORDS})"
            rf"(?P<d_reason>[^\n]{{1,80}})"
        ),
        sample="Fatal Python error: Cannot recover from stack overflow.",
        near_miss="Fatal Python error: Aborted",
        source="CPython",
    ),
    _any(
        name="cuda_memory",
        class_=FindingClass.CUDA_OUT_OF_MEMORY,
        needle="out of memory. Tried to allocate",
        pattern=Pattern(r"(?:CUDA|HIP) (?P<error>out of memory)\. Tried to allocate"),
        sample="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 "
        "has a total capacity of 79.15 GiB of which 1.12 GiB is free.",
        near_miss="Caught torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB; "
        "retrying",
        source="torch CUDACachingAllocator.cpp",
        kind="torch",
        refine=final,
    ),
    _any(
        name="thread_limit",
        class_=FindingClass.RESOURCE_LIMIT,
        needle="can't start new thread",
        pattern=Pattern(r"(?P<error>can't start new thread)"),
        sample="RuntimeError: can't start new thread",
        near_miss="cannot start a new thread pool",
        source="CPython",
    ),
    _any(
        name="store_connection",
        class_=FindingClass.STORE_FAILURE,
        needle="DistNetworkError: ",
        further=("DistStoreError: ",),
        pattern=Pattern(
            r"Dist(?:Network|Store)Error: (?P<error>Connection (?:reset|closed) by peer|Broken "
            r"pipe|"
            r"[Ff]ailed to recv, got 0 bytes|Connection refused)"
        ),
        sample="torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
        near_miss="torch.distributed.DistNetworkError: The client socket has timed out after "
        "60000ms",
        source="torch c10d",
        kind="torch",
    ),
)

_AGENT_ROWS: tuple[Signature, ...] = (
    _any(
        name="launch_return_code",
        class_=FindingClass.ELASTIC_WORKER_FAILED,
        needle="exits with return code = ",
        pattern=Pattern(r"exits with return code = (?P<exitcode>(?!0\b|-15\b)-?\d{1,4})"),
        sample="['/usr/bin/python3', '-u', 'train.py', '--local_rank=3'] exits with return code "
        "= 1",
        near_miss="['/usr/bin/python3', '-u', 'train.py', '--local_rank=3'] exits with return "
        "code = 0",
        source="deepspeed.launcher.launch",
    ),
    _any(
        name="launch_error",
        class_=FindingClass.ELASTIC_WORKER_FAILED,
        needle="CalledProcessError: Command",
        pattern=Pattern(
            r"CalledProcessError: Command '(?>(?:(?!Error: Command)[^\n]){0,2000}?"
            r"(?:local_rank|-u'|accelerate|torchrun))(?:(?!Error: Command)[^\n]){0,4000}?"
            r" returned non-zero exit status (?P<exitcode>\d{1,3})"
        ),
        sample="subprocess.CalledProcessError: Command '['/usr/bin/python3', '-u', 'train.py', "
        "'--local_rank=3']' returned non-zero exit status 1.",
        near_miss="subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero "
        "exit status 1.",
        source="torch.distributed.launch before torch 1.9, accelerate",
    ),
    _any(
        name="rank_crashed",
        class_=FindingClass.ELASTIC_WORKER_FAILED,
        needle="crashed with exit code",
        pattern=Pattern(
            r"Rank (?P<ranks>\d{1,7}) crashed with exit code (?P<exitcode>(?!-15\b)-?\d{1,4})"
        ),
        sample="Rank 12 crashed with exit code 1.",
        near_miss="Rank 12 crashed with exit code -15.",
        source="composer.cli.launcher",
    ),
    _any(
        name="spawn_exited",
        class_=FindingClass.ELASTIC_WORKER_FAILED,
        needle="terminated with exit code",
        pattern=Pattern(
            r"process (?P<d_index>\d{1,6}) terminated with exit code (?P<exitcode>(?!0\b)-?\d{1,4})"
        ),
        sample="torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with "
        "exit code 1",
        near_miss="torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with "
        "exit code 0",
        source="torch.multiprocessing",
        role=Role.CONSEQUENCE,
        severity=Severity.INFO,
    ),
)

ROWS: tuple[Signature, ...] = (
    *_CRASH_ROWS,
    *_DEATH_ROWS,
    *_ABORT_ROWS,
    *_EXCEPTION_ROWS,
    *_AGENT_ROWS,
)
