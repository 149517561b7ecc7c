"""Signals and their echoes: what shells, frameworks and agents say of a process's end."""

from functools import partial

from ncdiag.model.finding import FindingClass
from ncdiag.read.line import Line
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

SIGNAL_WORDS = (
    r"Segmentation fault|Bus error|Illegal instruction|Floating point exception|"
    r"Floating-point exception|Trace/breakpoint trap"
)
# Names and texts of signals, in small letters.
_NUMBERS = {
    "sighup": "1",
    "sigint": "2",
    "sigquit": "3",
    "sigill": "4",
    "illegal instruction": "4",
    "sigtrap": "5",
    "trace/breakpoint trap": "5",
    "sigabrt": "6",
    "sigbus": "7",
    "bus error": "7",
    "sigfpe": "8",
    "floating point exception": "8",
    "floating-point exception": "8",
    "sigkill": "9",
    "sigusr1": "10",
    "sigsegv": "11",
    "segmentation fault": "11",
    "sigusr2": "12",
    "sigterm": "15",
}


def numbered(values: dict[str, str], line: Line) -> dict[str, str]:
    """Publish a signal's number for its name or text."""
    del line
    signal = values["signal"]
    return values | {"signal": _NUMBERS.get(signal.lower(), signal)}


def _told_to_stop(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Refuse a number that is no signal, and a line that has a row of its own."""
    number_only = values["signal"] == "15" and "ignal" not in line.text
    refused = number_only or "Main process received" in line.text
    return None if refused else numbered(values, line)


_any = partial(Signature, levels=OUTSIDE)
_terminated = partial(_any, class_=FindingClass.TERMINATED_BY_LAUNCHER)
_cancelled = partial(_any, class_=FindingClass.JOB_CANCELLED)

ROWS: tuple[Signature, ...] = (
    _terminated(
        name="main_process_sigterm",
        needle="Main process received SIGTERM",
        pattern=Pattern(r"Main process received (?P<signal>SIGTERM)"),
        sample="Main process received SIGTERM, exiting",
        near_miss="Main process received SIGHUP",
        source="torch.distributed.launch of torch 1.7 to 1.8",
        refine=numbered,
    ),
    _terminated(
        name="killing_subprocess",
        needle="Killing subprocess ",
        pattern=Pattern(r"(?:^|\] )\W{0,8}Killing subprocess \d{1,10}\s*$"),
        sample="Killing subprocess 4711",
        near_miss="Killing subprocess pool",
        source="torch.distributed.launch, deepspeed.launcher",
    ),
    _terminated(
        name="elastic_signal",
        needle="closing signal",
        pattern=Pattern(r"Sending process \d{1,10} closing signal (?P<signal>\w{1,16})"),
        sample="Sending process 4711 closing signal SIGTERM",
        near_miss="closing signal handlers",
        source="torch elastic multiprocessing/api.py",
        kind="elastic",
        refine=numbered,
    ),
    _terminated(
        name="elastic_death_signal",
        needle="death signal",
        pattern=Pattern(
            r"Received (?:Signals\.)?(?P<signal>\w{1,16}|\d{1,3}) death signal, shutting down "
            r"workers"
        ),
        sample="Received Signals.SIGTERM death signal, shutting down workers",
        near_miss="Received no death signal",
        source="torch elastic agent",
        kind="elastic",
        refine=numbered,
    ),
    _terminated(
        name="elastic_signal_exception",
        needle="SignalException: Process",
        pattern=Pattern(
            r"SignalException: Process \d{1,10} got signal: (?P<signal>(?!2\b)"
            r"\d{1,3})"
        ),
        sample="torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got "
        "signal: 15",
        near_miss="torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 "
        "got signal: 2",
        source="torch elastic multiprocessing/api.py",
        kind="elastic",
    ),
    _terminated(
        name="received_signal",
        needle="eceived signal",
        further=("eceived SIGTERM", "eceived Signal"),
        pattern=Pattern(
            r"\b[Rr]eceived (?:[Ss]ignal:? )?(?P<signal>15|SIGTERM)\b(?! handler)"
            r"(?![^\n]{0,80}death signal)"
        ),
        sample="[trainer] Received signal 15, saving a checkpoint",
        near_miss="received 15 batches in 2 s",
        source="training frameworks' own handlers",
        refine=_told_to_stop,
    ),
    _terminated(
        name="shell_terminated",
        needle="Terminated",
        pattern=Pattern(r"(?:^|line \d{1,7}: {1,4}\d{1,10} )Terminated(?:\s*$|\s{2,}\S)"),
        sample="/var/spool/slurmd/job8812/slurm_script: line 31: 4711 Terminated              "
        "python train.py",
        near_miss="Terminated sentences are kept.",
        source="bash",
        constants={"signal": "15"},
    ),
    _any(
        name="shell_killed",
        class_=FindingClass.PROCESS_DIED,
        needle="Killed",
        pattern=Pattern(r"(?:^|line \d{1,7}: {1,4}(?P<pid>\d{1,10}) )Killed(?:\s*$|\s{2,}\S)"),
        sample="./run.sh: line 31: 4711 Killed                  python train.py",
        near_miss="Killed by the author in chapter 3",
        source="bash",
        constants={"d_signal": "9"},
    ),
    _any(
        name="shell_crash",
        class_=FindingClass.PROCESS_CRASH,
        needle="(core dumped)",
        pattern=Pattern(
            rf"^(?!srun: )[^\n]{{0,200}}?(?P<signal>{SIGNAL_WORDS}) {{1,24}}\(core dumped\)"
        ),
        sample="./run.sh: line 31: 4711 Segmentation fault      (core dumped) python train.py",
        near_miss="./run.sh: line 31: 4711 Aborted                 (core dumped) python train.py",
        source="bash",
        refine=numbered,
    ),
    _any(
        name="shell_aborted",
        class_=FindingClass.COMM_ABORTED,
        needle="Aborted",
        pattern=Pattern(r"^(?!srun: )[^\n]{0,120}?\bAborted {1,24}\(core dumped\)"),
        sample="./run.sh: line 31: 4711 Aborted                 (core dumped) python train.py",
        near_miss="Aborted the upload",
        source="bash",
        constants={"d_signal": "6"},
    ),
    _cancelled(
        name="keyboard_interrupt",
        needle="KeyboardInterrupt",
        pattern=Pattern(
            r"^(?:\s{0,8}|[^\n]{0,40}\] ?)(?P<reason>KeyboardInterrupt)(?::[^\n]*|"
            r"\s*)$"
        ),
        sample="KeyboardInterrupt",
        near_miss="    except KeyboardInterrupt:",
        source="Python",
    ),
    _cancelled(
        name="interrupted",
        needle="Ctrl-C",
        further=("got signal: 2", "aborted by the user", "srun: interrupt"),
        pattern=Pattern(
            r"(?:sending Ctrl-C to (?:StepId=|job )|Process \d{1,10} got signal: 2\b|"
            r"Ctrl-C caught|aborted by the user|srun: interrupt \(one more)"
        ),
        sample="srun: sending Ctrl-C to StepId=8812.0",
        near_miss="press Ctrl-C to stop",
        source="srun, torch elastic, mpirun",
        constants={"reason": "Ctrl-C"},
    ),
)
