"""What kernels and MPI's launchers say in several lines, and kinds of log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanned import scanned

from ncdiag.model.log import Event
from ncdiag.read.fabric_blocks import FabricBlockReader
from ncdiag.read.kernel_blocks import KernelBlockReader
from ncdiag.read.line import LineReader
from ncdiag.read.log_kinds import KindReader
from ncdiag.read.mpi_ends import MpiEndReader
from ncdiag.read.ray_deaths import RayDeathReader


def read(reader: LineReader, text: str | bytes) -> list[Event]:
    return scanned(reader, text).events


GONE = (
    "Feb  3 04:05:06 gpu8 kernel: [  812.000001] NVRM: The NVIDIA GPU 0000:9a:00.0\n"
    "Feb  3 04:05:06 gpu8 kernel: [  812.000002] NVRM: (PCI ID: 10de:2330) installed in this "
    "system has\n"
    "Feb  3 04:05:06 gpu8 kernel: [  812.000003] NVRM: fallen off the bus and is not responding "
    "to commands."
)


def test_gpu_that_is_gone_by_three_lines() -> None:
    (event,) = read(KernelBlockReader(), GONE)
    assert event.class_name == "gpu_fell_off_bus"
    assert event.attributes == {"pci": "0000:9a:00.0"}
    assert event.speaker.host == "gpu8"


def test_gpu_of_another_host_is_not_meant() -> None:
    lines = GONE.split("\n")
    other = lines[2].replace("gpu8", "gpu9")
    (event,) = read(KernelBlockReader(), "\n".join([lines[0], lines[1], other]))
    assert event.attributes == {}
    assert event.speaker.host == "gpu9"


def test_line_that_names_its_gpu_is_left_to_its_row() -> None:
    text = "NVRM: GPU 0000:9a:00.0: GPU has fallen off the bus."
    assert read(KernelBlockReader(), text) == []
    assert (
        read(KernelBlockReader(), "NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus.")
        == []
    )


def hydra(how: str) -> str:
    edge = "=" * 83
    return (
        f"{edge}\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
        f"=   RANK 6 PID 4711 RUNNING AT gpu8\n=   {how}\n"
        f"=   CLEANING UP REMAINING PROCESSES\n{edge}\n"
    )


@pytest.mark.parametrize(
    ("how", "class_", "attributes"),
    [
        ("KILLED BY SIGNAL: 11 (Segmentation fault)", "process_crash", {"signal": "11"}),
        ("KILLED BY SIGNAL: 9 (Killed)", "process_died", {"pid": "4711"}),
        ("KILLED BY SIGNAL: 15 (Terminated)", "terminated_by_launcher", {"signal": "15"}),
        ("EXIT CODE: 139", "process_crash", {"signal": "11"}),
        ("EXIT CODE: 137", "process_died", {"pid": "4711", "exitcode": "137"}),
        ("EXIT CODE: 9", "process_died", {"pid": "4711", "exitcode": "9"}),
        ("EXIT CODE: 134", "comm_aborted", {}),
    ],
)
def test_block_of_hydra(how: str, class_: str, attributes: dict[str, str]) -> None:
    (event,) = read(MpiEndReader(), hydra(how))
    assert (event.class_name, event.attributes, event.role) == (class_, attributes, None)
    assert (event.ranks, event.details) == ((6,), {"host": "gpu8", "pid": "4711"})


def test_plain_exit_code_is_a_consequence() -> None:
    (event,) = read(MpiEndReader(), hydra("EXIT CODE: 3"))
    assert (event.class_name, event.role) == ("process_died", "consequence")
    assert event.attributes == {"pid": "4711", "exitcode": "3"}


def test_notice_of_prterun_over_two_lines() -> None:
    first = "prterun noticed that process rank 2 with PID 512 on node gpu8 exited on"
    (event,) = read(MpiEndReader(), f"{first}\nsignal 4 (Illegal instruction).")
    assert (event.class_name, event.attributes) == ("process_crash", {"signal": "4"})
    assert (event.ranks, event.details["host"]) == ((2,), "gpu8")


def test_summary_of_mpirun() -> None:
    rule = "-" * 74
    text = (
        f"{rule}\nPrimary job  terminated normally, but 1 process returned\na non-zero exit "
        f"code.\n{rule}\n"
        f"{rule}\nmpirun detected that one or more processes exited with non-zero status, thus "
        f"causing\n"
        "the job to be terminated. The first process to do so was:\n\n"
        f"  Process name: [[812,1],5]\n  Exit code:    139\n{rule}\n"
    )
    reader = MpiEndReader()
    (event,) = read(reader, text)
    assert (event.class_name, event.attributes) == ("process_crash", {"signal": "11"})
    assert event.ranks == (5,)
    assert reader.kinds == {"mpi"}
    assert not reader.open


def test_block_that_never_ends_is_given_up() -> None:
    reader = MpiEndReader()
    read(reader, "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n" + "step\n" * 40)
    assert not reader.open


DEATH = (
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    "\tclass_name: Trainer\n\tactor_id: 0a0b\n\tpid: 812\n\tnamespace: n\n\tip: 10.4.4.3\n"
)


def test_actor_of_ray_that_died() -> None:
    reader = RayDeathReader()
    (event,) = read(reader, DEATH + "step\n" * 9)
    assert (event.class_name, event.attributes) == ("process_died", {"pid": "812"})
    assert event.details == {"host": "10.4.4.3"}
    assert reader.kinds == {"ray"}
    assert not reader.open


def test_actor_of_ray_without_fields_is_left_to_its_row() -> None:
    assert read(RayDeathReader(), DEATH.split("\n", maxsplit=1)[0]) == []


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("[    0.000000] Linux version 6.8.0-31-generic (build@x) (gcc)", {"kernel"}),
        ("Feb  3 04:05:06 gpu8 kernel: audit: type=1400", {"kernel"}),
        ("[Feb 03 2031 04:05:06] [INFO] [tid 9] multicast group 2 is freed.", {"fabric-manager"}),
        ("[rank3]:[W203 04:05:06.1 ProcessGroupNCCL.cpp:1496] Warning: destroyed late", {"torch"}),
        ("slurmstepd: info: job done", {"slurm"}),
        ("[1,3]<stdout>:step 4", {"mpi"}),
        ("(raylet) node started", {"ray"}),
        ("step 4 loss 2.1", set()),
        ("$ mpirun -np 4 ./all_reduce_perf", set()),
    ],
)
def test_kind_of_a_line(line: str, kinds: set[str]) -> None:
    reader = KindReader()
    assert read(reader, line) == []
    assert reader.kinds == kinds
    assert reader.learned == len(kinds)


@pytest.mark.parametrize("kind", [KernelBlockReader, MpiEndReader, RayDeathReader])
def test_logs_cut_anywhere(kind: type[LineReader]) -> None:
    raw = (GONE + "\n" + hydra("EXIT CODE: 9") + DEATH).encode()
    for cut in range(len(raw)):
        read(kind(), raw[:cut])
        read(kind(), raw[cut:])


@given(
    st.lists(st.sampled_from([*hydra("EXIT CODE: 9").split("\n"), "signal 9 (", "x"]), max_size=30)
)
def test_lines_of_mpi_in_any_order(lines: list[str]) -> None:
    read(MpiEndReader(), "\n".join(lines))


@pytest.mark.parametrize(("severity", "degraded"), [("Fatal", False), ("Non Fatal", True)])
def test_fields_below_a_heading_of_the_fabric_manager(severity: str, *, degraded: bool) -> None:
    fields = {"moduleId": "2", "nodeId": "5", "gpuGuid": "0x0A1B", "portNum": "11"}
    lines = [
        f"[ERROR] [tid 7] Fabric Manager detected GPU NVL {severity} error on :",
        *(f"{name} : {value}" for name, value in fields.items()),
        *["another line"] * 4,
        "portNum : 3",
    ]
    (event,) = read(FabricBlockReader(), "\n".join(lines))
    assert event.attributes == {"link": "11"}
    assert event.details["gpu_guid"] == "0x0A1B"
    assert (event.severity == "degraded") is degraded
