"""The network as sockets and libfabric see it, and the start-up."""

from ncdiag.diagnose.postmortem.guide.record import Guide
from ncdiag.model.finding import FindingClass as Class

GUIDE = {
    Class.BOOTSTRAP_CONNECT_FAILED: Guide(
        "A process could not reach the rendezvous or its neighbour during start-up. Refused: "
        "nobody listens there (it died, never started, or the address is a loopback or container "
        "bridge); no route or timed out: firewall, or an interface that others cannot reach. The "
        "address in the line tells which interface was chosen.",
        (
            (
                "Look at the address: 127.*, 169.254.* or 172.17.* means the wrong interface; set "
                "NCCL_SOCKET_IFNAME=eth0 (or =^lo,docker0) alike on all hosts"
            ),
            "Read the log of the process that should have listened: it may have failed first",
            "Test the path from the host that complains: ping PEER; nc -vz PEER 22",
            "Open all TCP ports between the job's hosts: NCCL picks them at random",
        ),
        "ssh HOST 'ip -br addr; ip route get PEER'",
    ),
    Class.BOOTSTRAP_NO_INTERFACE: Guide(
        "No network interface matches what was asked for. NCCL_SOCKET_IFNAME (or the variable of "
        "the out-of-band network) names something this host does not have: other interface names "
        "on this host, or a container without the host's network.",
        (
            "Compare the interfaces of this host with the others: ip -br addr",
            "Set a prefix or an exclusion that fits all hosts: NCCL_SOCKET_IFNAME=^lo,docker0",
            "In containers use the host's network: --network host",
        ),
        "ssh HOST ip -br addr",
    ),
    Class.BOOTSTRAP_BIND_FAILED: Guide(
        "The process could not listen on the address it was given: the port is taken, often by a "
        "process left over from the last run, or the address belongs to another host. It is a "
        "matter of set-up: other hosts would fail alike.",
        (
            "See who has the port: ss -ltnp | grep PORT; end what is left of earlier jobs",
            "Check that MASTER_ADDR or NCCL_COMM_ID names this host as it sees itself",
            "Choose another MASTER_PORT for each job",
        ),
        "ssh HOST ss -ltnp",
    ),
    Class.BOOTSTRAP_MISMATCH: Guide(
        "The processes disagree on who takes part: another world size, a rank given twice, two "
        "jobs on one rendezvous, or libraries of different versions. Nothing is wrong with the "
        "hardware.",
        (
            "Compare WORLD_SIZE, RANK and MASTER_PORT of all processes as the launcher sets them",
            (
                "Compare the library on all hosts: NCCL_DEBUG=VERSION, or python -c 'import torch; "
                "print(torch.cuda.nccl.version())'"
            ),
            "Make sure that no process of an earlier job is left: pgrep -af python",
        ),
        "srun -l python -c 'import torch; print(torch.cuda.nccl.version())'",
    ),
    Class.SOCKET_CONNECT_FAILED: Guide(
        "A data connection over TCP could not be made although the start-up went well. The "
        "interface chosen for data differs from the one used to start, or the peer's process is "
        "gone.",
        (
            "Read the peer's log first: refused means that its process has ended",
            "Choose one interface that all hosts reach: NCCL_SOCKET_IFNAME=eth0",
            "Test the path: ping -I eth0 PEER; traceroute PEER",
        ),
        "ssh HOST ip route get PEER",
    ),
    Class.SOCKET_CLOSED_BY_PEER: Guide(
        "The other end closed its connection: that process ended or gave up. This host only tells "
        "of it; the reason stands in the log of the peer.",
        (
            "Read the end of the peer's log, and its exit code at the launcher",
            "If the peer's log is missing, look there for a kill: dmesg -T | grep -iE 'oom|xid'",
        ),
        "ssh PEER 'dmesg -T | tail -50'",
    ),
    Class.SOCKET_ERROR: Guide(
        "A TCP connection broke. Reset or broken pipe: the peer's process was killed, so read its "
        "log. Timed out or no route: the peer's host or the network on the way went away.",
        (
            "Reset or broken pipe: read the peer's log and its kernel log around that time",
            (
                "Timed out or no route: see whether the host was up: uptime; dmesg -T; then "
                "measure ncdiag sweep --nodes HOST,PEER"
            ),
        ),
        "ssh PEER 'uptime; dmesg -T | tail -50'",
    ),
    Class.SOCKET_HANDSHAKE_FAILED: Guide(
        "Something spoke to the job's port that does not belong there: a port scanner, a "
        "monitoring probe, a process of an earlier job, or ends that chose different networks. "
        "With newer libraries the intruder is only turned away.",
        (
            "Find out who has the address in the line, and what runs there",
            "Exclude the job's hosts from port scans and health probes",
            "Make sure that all ranks load the same library and network plug-in (NCCL_NET)",
        ),
        "ssh HOST 'ss -tnp | head -50'",
    ),
    Class.OFI_COMPLETION_ERROR: Guide(
        "A libfabric operation failed. The provider's error number tells more: an unreachable "
        "peer (security group, host gone), or the device and its firmware. It counts against a "
        "host only when it comes back.",
        (
            (
                "Check that the peer's instance runs and that the security group lets all traffic "
                "pass between members of the group itself"
            ),
            "Test the two hosts alone: fi_pingpong -p efa PEER; ncdiag sweep --nodes HOST,PEER",
            (
                "Compare versions with the supported set: fi_info --version; modinfo efa | grep "
                "version; the aws-ofi-nccl line of the log"
            ),
        ),
        "ssh HOST fi_info -p efa",
    ),
    Class.OFI_MEMORY_REGISTRATION: Guide(
        "Libfabric could not register memory. Limits on locked memory, or a kernel driver that "
        "does not fit the libraries in the container, are the usual causes.",
        (
            "Check the limits in the job: ulimit -l must say unlimited",
            (
                "Compare the driver with the container: modinfo efa | grep ^version; dmesg -T | "
                "grep -iE 'efa|cxi'"
            ),
            "See whether GPU memory is the trouble: run once with FI_HMEM_CUDA_USE_GDRCOPY=0",
        ),
        "ssh HOST 'ulimit -l; dmesg -T | grep -iE \"efa|cxi\" | tail'",
    ),
    Class.OFI_ENDPOINT_FAILED: Guide(
        "No libfabric endpoint could be opened: the provider is not there, or the instance has no "
        "such devices. It is a matter of set-up, mostly of the container.",
        (
            "See what libfabric finds, inside the same container: fi_info -p efa",
            "Give the container the devices: --device /dev/infiniband/uverbs0 (all of them)",
            "Check that the instance type has the adapters and that they are attached",
        ),
        "ssh HOST fi_info",
    ),
    Class.SHARP_FAILED: Guide(
        "Reductions in the switches (SHARP) could not be set up. Mostly the job goes on without, "
        "slower for large reductions: the aggregation manager is down, its quota is used up, or a "
        "switch has no free trees.",
        (
            "To run without it at once: NCCL_COLLNET_ENABLE=0",
            (
                "Check the aggregation manager: sharp_hello on two hosts; systemctl status "
                "sharp_am where the subnet manager runs"
            ),
            "See whether ended jobs still hold trees, and free them",
        ),
        "ssh HOST sharp_hello",
    ),
}
