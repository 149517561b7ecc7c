"""How a rank starts MPI: with real ranks on this machine's loopback addresses, by Hydra."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)
pytest.importorskip("mpi4py", reason="mpi4py is missing: pip install mpi4py")
HYDRA = Path(sys.prefix, "bin", "mpiexec.hydra")
if not HYDRA.exists():
    pytest.skip("mpiexec.hydra is missing: pip install mpich", allow_module_level=True)

BEGIN = """
import os, re, signal, sys, time
from pathlib import Path
from ncdiag.measure.engines.mpi.place import Place, variables_of
os.environ.update(variables_of(Place("lo")))
from ncdiag.measure.engines.mpi import library
rank = int(os.environ["PMI_RANK"])
"""
KILLED = """
library.start()
mapped = re.findall(r"/dev/shm/mpich_shm_\\w+", Path("/proc/self/maps").read_text())
opened = [os.readlink(one) for one in Path(f"/proc/{os.getppid()}/fd").iterdir()]
noted = [path for path in opened if path.startswith("/tmp/hydra_hwloc_xmlfile_")]
print(*mapped, *(path.removesuffix(" (deleted)") for path in noted), flush=True)
library.MPI.COMM_WORLD.Barrier()
os.kill(os.getpid(), signal.SIGKILL)
"""
ALONE = """
from ncdiag.measure.engines.mpi.lease import Lease
Lease(1.5 if rank else 0.5)
if rank == 0:
    library.start()
time.sleep(3600)
"""
UNMET = """
library.start()
from ncdiag.measure.engines.base import Timing
from ncdiag.measure.engines.mpi.measuring import Measurer
from ncdiag.measure.engines.mpi.messages import Part
from ncdiag.model.host import Nic, NicKind
if rank == 0:
    measurer = Measurer(Place("lo"), lambda: None)
    nic = Nic(name="lo", kind=NicKind.ETHERNET, interface="lo")
    for number in (1, 2):
        part = Part(number=number, peer=1, first=True, nic=nic, timing=Timing(), deadline_s=0.1)
        print(measurer.measure(part).failure.text, flush=True)
    print(sum(chunk.nbytes for chunk in measurer._held()), "bytes", flush=True)
library.MPI.COMM_WORLD.Barrier()
os._exit(0)
"""


def two_ranks(program: str) -> subprocess.CompletedProcess[str]:
    argv = (str(HYDRA), "-launcher", "fork", "-hosts", "127.0.0.2,127.0.0.3", "-ppn", "1")
    return subprocess.run(
        (*argv, "-n", "2", sys.executable, "-c", BEGIN + program),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_a_rank_that_is_killed_leaves_no_file_behind() -> None:
    done = two_ranks(KILLED)
    files = [Path(word) for word in done.stdout.split() if word.startswith(("/dev/shm", "/tmp"))]  # noqa: S108
    assert files, done
    assert not [path for path in files if path.exists()]


def test_the_lease_ends_a_rank_that_waits_for_another_to_start_mpi() -> None:
    assert two_ranks(ALONE).stderr.count("nothing was heard from the driver") == 2


def test_a_pair_that_never_met_holds_no_more_memory_than_its_greeting() -> None:
    done = two_ranks(UNMET)
    assert "within the time of a pair" in done.stdout, done
    assert done.stdout.splitlines()[-1] == "16 bytes"
