"""What the library says of itself and of the way it was used."""

from ncdiag.diagnose.postmortem.guide.record import Guide
from ncdiag.model.finding import FindingClass as Class

_DEBUG = "NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log"

GUIDE = {
    Class.REMOTE_ERROR: Guide(
        "The library only knows that the other side is gone: a process ended somewhere, or the "
        "network to it broke. This is an echo; the rank that fell silent, or failed first, knows "
        "more than the ranks that shout.",
        (
            "Collect the logs of all ranks and give them to ncdiag parse-log together",
            (
                "Find the rank without such a line, or with the earliest other error; read its "
                "kernel log: dmesg -T | grep -iE 'xid|oom|mlx5'"
            ),
            f"Run again with {_DEBUG}",
        ),
        "ncdiag parse-log DIRECTORY_WITH_ALL_LOGS",
    ),
    Class.UNHANDLED_SYSTEM_ERROR: Guide(
        "A system call or the network failed and this log does not say which one: the library's "
        "own warnings are missing. Often the reason stands in the log of another rank.",
        (
            f"Run again with {_DEBUG}",
            "Give the logs of all ranks to ncdiag parse-log together",
            "Meanwhile check the usual: df -h /dev/shm; ulimit -n -l -u; dmesg -T | tail",
        ),
        f"{_DEBUG} ...",
    ),
    Class.INTERNAL_ERROR: Guide(
        "A check inside the library failed and the log does not say why. A bug, mixed versions of "
        "libraries and plug-ins, or memory that somebody overwrote are possible; a single such "
        "line accuses no host.",
        (
            f"Run again with {_DEBUG}",
            (
                "Make sure that one version of NCCL and one plug-in is loaded: "
                "grep -h libnccl /proc/PID/maps | sort -u"
            ),
            "Try the newest patch release of the library; read its release notes for this text",
        ),
        f"{_DEBUG} ...",
    ),
    Class.INVALID_USAGE: Guide(
        "The library was called in a way that it does not allow: an invalid root or pointer, a "
        "communicator that was destroyed, or an algorithm or protocol that NCCL_ALGO or "
        "NCCL_PROTO excludes. Every run fails alike; no host is at fault.",
        (
            "Unset NCCL_ALGO, NCCL_PROTO and other tuning variables, and try again",
            "Find the call in the traceback of the rank that failed first",
            "Let PyTorch check the calls: TORCH_DISTRIBUTED_DEBUG=DETAIL",
        ),
        "env | grep NCCL_",
    ),
    Class.PROXY_FAILURE: Guide(
        "The helper thread reports that an operation failed or that a local process went away. "
        "It passes on a fault; the record before it says what happened.",
        (
            "Read the warnings just before this line in the same process",
            "If there are none, read the logs of the other ranks of this host",
        ),
        "grep -n 'NCCL WARN' FILE | head -20",
    ),
    Class.COMM_ABORTED: Guide(
        "A communicator or a whole process was taken down on purpose after a fault, so that no "
        "corrupt data is used. It tells when the job gave up, not why.",
        ("Look for the first failure before it, in the logs of all ranks",),
        "ncdiag parse-log DIRECTORY_WITH_ALL_LOGS",
    ),
    Class.NO_TRANSPORT_FOUND: Guide(
        "Two ranks have no way to talk to one another, or no network could be opened at all. "
        "Settings switch the possible ways off (NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, NCCL_NET, "
        "NCCL_IB_HCA), or a host lacks its NIC.",
        (
            "Look at what is set: env | grep NCCL_, and /etc/nccl.conf",
            "Check that the host sees its NICs: ibstat; ip -br link",
            f"See what each rank chose: {_DEBUG} NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH",
        ),
        "ssh HOST 'ibstat; env | grep NCCL_; cat /etc/nccl.conf'",
    ),
    Class.TOPOLOGY_ERROR: Guide(
        "The tree of GPUs, PCIe switches and NICs could not be read or put together. A stale "
        "NCCL_TOPO_FILE, a container or virtual machine that shows only part of the PCI tree, or "
        "hosts with one identity are the usual causes.",
        (
            "Unset NCCL_TOPO_FILE and NCCL_GRAPH_FILE and try again",
            (
                "See what the library sees: NCCL_TOPO_DUMP_FILE=/tmp/topo.xml; compare with a host "
                "where it works"
            ),
            "Cloned hosts: make /etc/machine-id and the boot id differ, or set NCCL_HOSTID",
        ),
        "ssh HOST nvidia-smi topo -m",
    ),
    Class.COLLECTIVE_MISMATCH: Guide(
        "Ranks called different collectives, or the same one with other sizes, types or settings. "
        "The program is at fault (a branch that only some ranks take, uneven batches), or NCCL_* "
        "variables differ between hosts.",
        (
            "Find the call: TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks and both calls",
            "Compare the environment of all ranks: srun -l env | grep NCCL_ | sort -k2",
            "Look for code that depends on the rank around the collective",
        ),
        "TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun ...",
    ),
    Class.OPTIONAL_LIBRARY_MISSING: Guide(
        "Something optional is not installed, and the library goes on without it. That matters "
        "only when a fast network was expected: without libibverbs there is no InfiniBand.",
        (
            (
                "If InfiniBand or a plug-in was meant to be used, install it in the image: "
                "libibverbs1 and rdma-core, or the vendor's network plug-in"
            ),
            "Else there is nothing to do",
        ),
        "ldconfig -p | grep -E 'libibverbs|libnccl-net'",
    ),
    Class.NETWORK_FALLBACK: Guide(
        "A slower network is used than the host offers, mostly TCP instead of InfiniBand or "
        "RoCE. Devices missing in the container, a NIC filter that matches nothing, or a missing "
        "library cause it; the job runs, but far too slowly.",
        (
            (
                "See whether the devices are there, inside the container: ls /dev/infiniband; "
                "ibv_devinfo"
            ),
            "Check NCCL_IB_DISABLE, NCCL_IB_HCA and NCCL_NET for values that exclude the NICs",
            "To fail instead of running slowly: NCCL_NET=IB",
        ),
        "ssh HOST ibv_devinfo",
    ),
    Class.RESOURCE_LIMIT: Guide(
        "The operating system refused a file, thread, or memory: a limit of the user, the service "
        "or the container was reached. Raising it is enough.",
        (
            "Look at the limits as the job has them: cat /proc/PID/limits",
            (
                "Raise them where the job starts: ulimit -n 1048576; ulimit -u unlimited; in "
                "systemd LimitNOFILE= and TasksMax=; in containers --pids-limit and --ulimit"
            ),
            "See whether something leaks: ls /proc/PID/fd | wc -l over time",
        ),
        "ssh HOST cat /proc/PID/limits",
    ),
}
