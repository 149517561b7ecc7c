"""mpirun, prterun, mpiexec of Open MPI and Hydra: what they say when a job ends."""

from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

_OPEN_MPI = "Open MPI mpirun, PRRTE prterun"
_NOTICED = (
    r"noticed that process rank (?P<ranks>\d{1,7})(?: with PID (?P<d_pid>\d{1,10}))?"
    r"(?: on node (?P<d_host>[^\s<>]{1,256}))? {1,2}exited on signal "
)
_HYDRA = r"EXIT STRING: "

_mpi = partial(Signature, levels=OUTSIDE, kind="mpi", source=_OPEN_MPI)
_noticed = partial(_mpi, needle="exited on signal ")
_signal = partial(_mpi, needle="Signal: ", source="Open MPI's signal handler")
_hydra = partial(_mpi, needle="EXIT STRING: ", source="Hydra of MPICH")

ROWS: tuple[Signature, ...] = (
    _mpi(
        name="mpirun_forward",
        class_=FindingClass.TERMINATED_BY_LAUNCHER,
        needle="orwarding signal ",
        pattern=Pattern(r"[Ff]orwarding signal (?P<signal>(?!18\b|10\b|12\b)\d{1,3}) to job"),
        sample="mpirun: Forwarding signal 15 to job",
        near_miss="mpirun: Forwarding signal 18 to job",
    ),
    _mpi(
        name="mpirun_killing",
        class_=FindingClass.TERMINATED_BY_LAUNCHER,
        needle="killing job",
        further=("abort is already in progress", "Abort is in progress"),
        pattern=Pattern(
            r"(?:mpirun|mpiexec|prterun|orterun): (?:killing job|abort is already in progress|"
            r"Abort is in progress)"
        ),
        sample="mpirun: killing job...",
        near_miss="the watchdog is killing jobs",
    ),
    _noticed(
        name="noticed_crash",
        class_=FindingClass.PROCESS_CRASH,
        pattern=Pattern(_NOTICED + r"(?P<signal>4|7|8|11)\b"),
        sample="mpirun noticed that process rank 6 with PID 4711 on node gpu041 exited on signal "
        "11 (Segmentation fault).",
        near_miss="mpirun noticed that process rank 6 with PID 4711 on node gpu041 exited on "
        "signal 9 (Killed).",
    ),
    _noticed(
        name="noticed_killed",
        class_=FindingClass.PROCESS_DIED,
        pattern=Pattern(_NOTICED + r"(?P<d_signal>9)\b"),
        sample="prterun noticed that process rank 6 with PID 4711 on node gpu041 exited on "
        "signal 9 (Killed).",
        near_miss="prterun noticed that process rank 6 with PID 4711 on node gpu041 exited on "
        "signal 15 (Terminated).",
    ),
    _noticed(
        name="noticed_aborted",
        class_=FindingClass.COMM_ABORTED,
        pattern=Pattern(_NOTICED + r"(?P<d_signal>6)\b"),
        sample="mpirun noticed that process rank 6 with PID 4711 on node gpu041 exited on signal "
        "6 (Aborted).",
        near_miss="mpirun noticed that process rank 6 with PID 4711 on node gpu041 exited on "
        "signal 7 (Bus error).",
    ),
    _noticed(
        name="noticed_terminated",
        class_=FindingClass.TERMINATED_BY_LAUNCHER,
        pattern=Pattern(_NOTICED + r"(?P<signal>1|15)\b"),
        sample="mpirun noticed that process rank 6 with PID 4711 on node gpu041 exited on signal "
        "15 (Terminated).",
        near_miss="mpirun noticed that process rank 6 with PID 4711 on node gpu041 exited on "
        "signal 11 (Segmentation fault).",
    ),
    _noticed(
        name="noticed_interrupt",
        class_=FindingClass.JOB_CANCELLED,
        pattern=Pattern(_NOTICED + r"2\b"),
        sample="mpirun noticed that process rank 0 with PID 4711 on node gpu041 exited on signal "
        "2 (Interrupt).",
        near_miss="mpirun noticed that process rank 0 with PID 4711 on node gpu041 exited on "
        "signal 15 (Terminated).",
        constants={"reason": "Interrupt"},
    ),
    _signal(
        name="handler_crash",
        class_=FindingClass.PROCESS_CRASH,
        pattern=Pattern(r"\bSignal: [A-Z][\w :/-]{2,40} \((?P<signal>4|7|8|11)\)"),
        sample="Signal: Segmentation fault (11)",
        near_miss="Signal: Aborted (6)",
    ),
    _signal(
        name="handler_aborted",
        class_=FindingClass.COMM_ABORTED,
        pattern=Pattern(r"\bSignal: [A-Z][\w :/-]{2,40} \((?P<d_signal>6)\)"),
        sample="Signal: Aborted (6)",
        near_miss="Signal: Segmentation fault (11)",
    ),
    _hydra(
        name="hydra_crash",
        class_=FindingClass.PROCESS_CRASH,
        pattern=Pattern(_HYDRA + r"[A-Z][\w -]{2,40} \(signal (?P<signal>4|7|8|11)\)"),
        sample="YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)",
        near_miss="YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)",
    ),
    _hydra(
        name="hydra_killed",
        class_=FindingClass.PROCESS_DIED,
        pattern=Pattern(_HYDRA + r"Killed \(signal 9\)"),
        sample="YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
        near_miss="YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)",
        constants={"d_signal": "9"},
    ),
    _hydra(
        name="hydra_terminated",
        class_=FindingClass.TERMINATED_BY_LAUNCHER,
        pattern=Pattern(_HYDRA + r"(?:Terminated \(signal 15\)|Hangup \(signal 1\))"),
        sample="YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)",
        near_miss="YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
        constants={"signal": "15"},
    ),
    _hydra(
        name="hydra_aborted",
        class_=FindingClass.COMM_ABORTED,
        pattern=Pattern(_HYDRA + r"Aborted \(signal 6\)"),
        sample="YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Aborted (signal 6)",
        near_miss="YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
        constants={"d_signal": "6"},
    ),
    _mpi(
        name="mpi_abort",
        class_=FindingClass.COMM_ABORTED,
        needle="MPI_ABORT was invoked on rank",
        pattern=Pattern(r"MPI_ABORT was invoked on rank (?P<ranks>\d{1,7})\b"),
        sample="MPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD",
        near_miss="MPI_ABORT is available",
    ),
    _mpi(
        name="mpich_abort",
        class_=FindingClass.COMM_ABORTED,
        needle="application called MPI_Abort",
        pattern=Pattern(
            r"application called MPI_Abort\([^()\n]{0,80}, (?P<d_code>-?\d{1,10})\) - process "
            r"(?P<ranks>\d{1,7})"
        ),
        sample="application called MPI_Abort(MPI_COMM_WORLD, 7) - process 5",
        near_miss="application called MPI_Finalize",
        source="MPICH",
    ),
    _mpi(
        name="daemon_lost",
        class_=FindingClass.PROCESS_DIED,
        needle="has lost communication with a remote daemon",
        pattern=Pattern(r"(?:ORTE|PRTE) has lost communication with a remote daemon"),
        sample="PRTE has lost communication with a remote daemon.",
        near_miss="PRTE has opened communication with a remote daemon.",
        constants={"d_daemon": "yes"},
    ),
    _mpi(
        name="daemon_lost_where",
        class_=FindingClass.PROCESS_DIED,
        needle="Remote daemon:",
        pattern=Pattern(r"Remote daemon: \[\S{1,256}\] on node (?P<d_host>\S{1,256})"),
        sample="  Remote daemon: [prterun-login1-4711@0,3] on node gpu041",
        near_miss="  HNP daemon   : [prterun-login1-4711@0,0] on node login1",
        constants={"d_daemon": "yes"},
    ),
    _mpi(
        name="daemon_failed",
        class_=FindingClass.PROCESS_DIED,
        needle="died unexpectedly",
        further=("terminated unexpectedly", "failed to start as expected"),
        pattern=Pattern(
            r"(?:daemon \(pid \d{1,10}\) (?:died unexpectedly|on node \S{1,256} terminated "
            r"unexpectedly)|"
            r"A daemon \(pid \d{1,10}\) died unexpectedly|A daemon on node (?P<d_host>\S{1,256}) "
            r"failed to start as expected)"
        ),
        sample="A daemon (pid 4711) died unexpectedly with status 255 while attempting to launch",
        near_miss="daemon started",
        constants={"d_daemon": "yes"},
    ),
    _mpi(
        name="primary_job",
        class_=FindingClass.PROCESS_DIED,
        needle="exited with non-zero status",
        further=("BAD TERMINATION OF ONE OF YOUR APPLICATION", "Primary job  terminated normally"),
        pattern=Pattern(
            r"processes exited with non-zero status|BAD TERMINATION OF ONE OF YOUR APPLICATION|"
            r"Primary job {1,2}terminated normally, but"
        ),
        sample="mpirun detected that one or more processes exited with non-zero status, thus "
        "causing",
        near_miss="mpirun detected that all processes exited with status 0",
        role=Role.CONSEQUENCE,
        severity=Severity.INFO,
    ),
)
