"""Several dumps in one text: none is passed over, and marks of launchers are taken off."""

import pytest

from ncdiag.cli import main
from ncdiag.model.errors import ExitCode
from ncdiag.model.topology import GpuMatrix, NotATopologyError
from ncdiag.read.topology.read_topology import SeveralTopologiesError, dumps, read_topology

Capture = pytest.CaptureFixture[str]

MATRIX = (
    "\tGPU0\tGPU1\tGPU2\tGPU3\n\n"
    "GPU0\t X \tNV4\tNV4\tNV4\n"
    "GPU1\tNV4\t X \tNV4\tNV4\n"
    "GPU2\tNV4\tNV4\t X \tNV4\n"
    "GPU3\tNV4\tNV4\tNV4\t X \n"
    "\nLegend:\n\n  X    = Self\n"
)
BAD = MATRIX.replace("GPU2\tNV4\tNV4\t X \tNV4", "GPU2\tSYS\tSYS\t X \tSYS").replace(
    "NV4\tNV4\t X \n", "NV4\tSYS\t X \n"
)
BAD = "\n".join(
    "\t".join("SYS" if at == 3 and cell == "NV4" else cell for at, cell in enumerate(row))
    for row in (line.split("\t") for line in BAD.split("\n"))
)
PEERS = "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n"
IBSTAT = (
    "CA 'mlx5_0'\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: {state}\n"
    "\t\tPhysical state: {physical}\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"
)
UP = IBSTAT.format(state="Active", physical="LinkUp")
DOWN = IBSTAT.format(state="Down", physical="Polling")
SYSTEM = '<system version="1">\n<cpu numaid="0">{gpus}</cpu>\n</system>\n'
GPU = '<pci busid="0000:0{at}:00.0"><gpu dev="{at}" sm="90"/></pci>'
XML = SYSTEM.format(gpus=GPU.format(at=1))
GRAPHS = '<graphs version="1"><graph id="0" nchannels="0"/></graphs>\n'
FABRIC = (
    "#\n# Topology file: generated on a day\n#\nvendid=0x2c9\n"
    'Switch 2 "S-0000000000000001" # "leaf" base port 0 lid 1 lmc 0\n'
    '[1] "H-0000000000000002"[1](3) # "n1 mlx5_0" lid 2 4xNDR\n'
    '\nCa 1 "H-0000000000000002" # "n1 mlx5_0"\n'
    '[1](3) "S-0000000000000001"[1] # lid 2 lmc 0 "leaf" lid 1 4xNDR\n'
)


def mark(text: str, before: str) -> str:
    return "".join(f"{before}{line}\n" for line in text.splitlines())


def labels(text: str) -> list[str]:
    return [one.label for one in dumps(text.encode())]


@pytest.mark.parametrize(
    "before", ["[1,0]<stdout>:", "[1,0]<stdout>: ", "node07: ", "0: ", " 3: ", "[node07] "]
)
@pytest.mark.parametrize("text", [MATRIX, UP, XML, FABRIC])
def test_a_mark_before_every_line_is_taken_off(before: str, text: str) -> None:
    assert read_topology(mark(text, before).encode()) == read_topology(text.encode())


def test_blanks_after_the_mark_may_be_gone() -> None:
    text = mark(MATRIX, "node07: ").replace("node07: \n", "node07:\n")
    assert read_topology(text.encode()) == read_topology(MATRIX.encode())


def test_words_of_the_launcher_and_of_stderr_are_no_dump() -> None:
    text = "srun: job 7 queued\n" + mark(MATRIX * 3, "0: ").replace(mark(MATRIX * 2, "0: "), "")
    assert read_topology(text.encode()) == read_topology(MATRIX.encode())
    text = mark("ssh: warning", "[1,0]<stderr>:") + mark(MATRIX, "[1,0]<stdout>:")
    assert read_topology(text.encode()) == read_topology(MATRIX.encode())


def test_lines_that_only_look_marked_stay_as_they_are() -> None:
    slurm = "SwitchName=a Nodes=n[1-4]\n# a: b\n"
    assert labels(slurm) == [""]
    yaml = "switches:\n  - switch: a\n    nodes: n[1-4]\n"
    with pytest.raises(NotATopologyError):
        read_topology(f"tree: a\n{yaml}".replace("- ", "").encode())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (mark(MATRIX, "n1: ") + mark(BAD, "n2: "), ["n1", "n2"]),
        (mark(UP, "[1,0]<stdout>:") + mark(DOWN, "[1,1]<stdout>:"), ["1,0", "1,1"]),
        (f"------\nn[1-3]\n------\n{UP}------\nn4\n------\n{DOWN}", ["n[1-3]", "n4"]),
        (f"==> n1.txt <==\n{UP}\n==> n2.txt <==\n{DOWN}", ["n1.txt", "n2.txt"]),
        (f"n1\n{MATRIX}n2\n{BAD}", ["1", "2"]),
        (UP + DOWN, ["1", "2"]),
        (FABRIC + FABRIC, ["1", "2"]),
        (XML + XML, ["1", "2"]),
        (XML + GRAPHS + XML, ["1", "2", "3"]),
        (XML.strip() + "<!-- next -->" + XML, ["1", "2"]),
        (MATRIX + DOWN, ["1", "2"]),
        (f"$ nvidia-smi topo -m\n{MATRIX}\n{XML}\n{DOWN}", ["1", "2", "3"]),
    ],
)
def test_several_dumps_are_told_apart(text: str, names: list[str]) -> None:
    assert labels(text) == names
    for one in dumps(text.encode()):
        one.read()
    with pytest.raises(SeveralTopologiesError, match=f"holds {len(names)} dumps"):
        read_topology(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        MATRIX + PEERS,
        f"<!-- <system> of {XML} -->\n{XML}",
        f"{XML}<!-- </system> -->\nbye\n",
        f"$ cat topo.xml\n{XML}$ ",
        "<system/>" + "\n" * 3,
        UP.replace("CA 'mlx5_0'", "CA: 'mlx5_0'") + UP.replace("CA 'mlx5_0'", "CA: 'mlx5_1'"),
    ],
)
def test_one_dump_with_words_around_it_is_one(text: str) -> None:
    assert labels(text) == [""]


def test_a_root_that_is_not_closed_takes_in_what_follows() -> None:
    (whole,) = dumps(f"{XML.replace('</system>', '')}{XML}".encode())
    with pytest.raises((NotATopologyError, Exception), match=r"cut short|well-formed"):
        whole.read()


def test_check_judges_each_and_names_it(
    tmp_path: object, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with open("all.txt", "w") as file:  # noqa: PTH123 - one line
        file.write(mark(MATRIX, "n1: ") + mark(BAD, "n2: ") + mark(MATRIX[:40], "n3: "))
    assert main.run(["topo", "check", "all.txt", "--format", "json"]) == ExitCode.WRONG
    out, err = capfd.readouterr()
    assert '"all.txt:n2"' in out
    assert "nvlink_missing" in out
    assert "all.txt:n3: cut short" in err
    assert main.run(["topo", "show", "all.txt"]) == ExitCode.USAGE
    assert "n1, n2, n3" in capfd.readouterr().err


def test_a_matrix_is_whole_in_each_piece() -> None:
    first, second = (one.read() for one in dumps((MATRIX + BAD).encode()))
    assert isinstance(first, GpuMatrix)
    assert first == read_topology(MATRIX.encode())
    assert second == read_topology(BAD.encode())
