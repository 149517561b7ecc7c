"""The kernel log: GPUs, NVSwitches, NICs, PCIe, memory, storage."""

from ncdiag.diagnose.postmortem.guide.record import Guide
from ncdiag.model.finding import FindingClass as Class

GUIDE = {
    Class.XID_APPLICATION_FAULT: Guide(
        "The program made the GPU do something that it refuses: a bad address, a bad instruction "
        "stream, a faulting kernel. The GPU is suspect only when it happens again with other "
        "programs on the same GPU.",
        (
            "Find the kernel: compute-sanitizer, or CUDA_LAUNCH_BLOCKING=1 with a small case",
            "See whether this GPU has a history: dmesg -T | grep -i xid over the last weeks",
            "If it has: dcgmi diag -r 3 before it gets another job",
        ),
        "ssh HOST 'dmesg -T | grep -i xid'",
    ),
    Class.GPU_MEMORY_ERROR: Guide(
        "The GPU's memory gave wrong data that could not be corrected, or has no spare rows left. "
        "A reset lets the GPU swap the bad row out; if that fails or the fault comes back, the "
        "GPU must be replaced.",
        (
            "Drain the host, then reset the GPU: nvidia-smi --gpu-reset -i GPU (or reboot)",
            (
                "Look at the counters: nvidia-smi -q -d ECC,ROW_REMAPPER; pending means reset, "
                "failed means replace"
            ),
            "Test before it goes back: dcgmi diag -r 3",
        ),
        "ssh HOST nvidia-smi -q -d ECC,ROW_REMAPPER",
    ),
    Class.GPU_FELL_OFF_BUS: Guide(
        "The GPU no longer answers on PCIe. Power, heat, the slot or riser, or the GPU itself "
        "cause that; all GPUs of a host at once point at the host. Every process on it fails, "
        "and only a reboot brings it back, if at all.",
        (
            "Take the host out of service and power-cycle it",
            "Look for what came before: dmesg -T | grep -iE 'xid|aer|pcie|power|thermal'",
            (
                "Again on the same GPU: reseat or swap it; another GPU in that slot failing means "
                "the board or riser"
            ),
        ),
        "ssh HOST 'nvidia-smi -L; dmesg -T | grep -iE \"xid|aer|pcie\"'",
    ),
    Class.GSP_TIMEOUT: Guide(
        "The GPU's own firmware processor does not answer the driver. A driver and firmware "
        "fault, or a GPU that is about to die; processes on it hang until the host is reset.",
        (
            "Drain the host; try nvidia-smi --gpu-reset -i GPU, mostly a reboot is needed",
            "Keep the evidence first: nvidia-bug-report.sh",
            "More than one GPU or host: update the driver; the same GPU again: replace it",
        ),
        "ssh HOST nvidia-smi -q -d ECC,TEMPERATURE",
    ),
    Class.NVLINK_ERROR: Guide(
        "A link between GPUs, or to their switch, failed. One bad link makes several GPUs "
        "complain: the GPU or link that stands in most records is the suspect. Non-fatal records "
        "alone mean retries, not a fault.",
        (
            "See which links are down or count errors: nvidia-smi nvlink -s; nvidia-smi nvlink -e",
            "Drain the host, reset its GPUs and restart nvidia-fabricmanager, or reboot",
            (
                "The same link again: reseat the GPU module, check cables and switch tray; then "
                "replace"
            ),
        ),
        "ssh HOST 'nvidia-smi nvlink -s; nvidia-smi nvlink -e'",
    ),
    Class.GPU_INTERNAL_FAULT: Guide(
        "A unit inside the GPU stopped, or the driver could not start the GPU. It needs a reset; "
        "when it comes back after one, the GPU or its power needs to be looked at.",
        (
            "Drain the host and reset the GPU: nvidia-smi --gpu-reset -i GPU, else reboot",
            "Keep the evidence: nvidia-bug-report.sh; dmesg -T | grep -i nvrm",
            "Test before it goes back: dcgmi diag -r 3",
        ),
        "ssh HOST 'dmesg -T | grep -i nvrm | tail -50'",
    ),
    Class.XID_FOLLOWUP: Guide(
        "The driver cleans up after another fault, or after a process that was killed. Look for "
        "the Xid before it; alone it says little. Xid 154 names what the driver wants done.",
        (
            "Find the first Xid of this GPU: dmesg -T | grep -i xid",
            "Xid 154 with action 1 to 4: drain the host and do what it says (reset, reboot)",
        ),
        "ssh HOST 'dmesg -T | grep -i xid'",
    ),
    Class.NVSWITCH_FATAL: Guide(
        "A switch between the GPUs of this host failed and took links, or the whole fabric, down. "
        "GPUs on it show NVLink errors as well; the switch is the cause.",
        (
            "Take the host out of service and reboot it; the fabric does not recover by itself",
            "Keep the evidence: nvidia-bug-report.sh; /var/log/fabricmanager.log",
            "Again on the same port: baseboard, or the GPU at the other end, must be looked at",
        ),
        "ssh HOST 'dmesg -T | grep -i sxid; systemctl status nvidia-fabricmanager'",
    ),
    Class.NVSWITCH_NONFATAL: Guide(
        "A switch reported an error that it survived, by a retry or a correction. Rare ones mean "
        "nothing; many on one port announce a bad link.",
        (
            "Count them by port: dmesg -T | grep -i sxid",
            "Many on one port: plan a reset of the host and watch nvidia-smi nvlink -e",
        ),
        "ssh HOST 'dmesg -T | grep -ci sxid; nvidia-smi nvlink -e'",
    ),
    Class.NIC_FIRMWARE_FAULT: Guide(
        "The adapter's firmware stopped or reports itself unwell. All traffic of this NIC fails "
        "and peers time out against the host; the driver's own recovery seldom lasts.",
        (
            "Take the host out of service",
            "Keep the evidence: dmesg -T | grep -i mlx5; mstdump NIC",
            (
                "Power-cycle the host (a warm reboot may not reset the NIC); check firmware with "
                "mlxfwmanager; again: replace the adapter"
            ),
        ),
        "ssh HOST 'dmesg -T | grep -i mlx5 | tail -50'",
    ),
    Class.NIC_LINK_DOWN: Guide(
        "A network link of this host went down and stayed so, or came and went. Cable, "
        "transceiver or switch port are the usual causes. Ranks elsewhere see time-outs against "
        "this host.",
        (
            "Check it now: ip -br link; ethtool IFACE; ibstat NIC",
            "See how often and when: dmesg -T | grep -iE 'link (up|down)'",
            (
                "Look at the optics: ethtool -m IFACE or mlxlink -d NIC -m; clean, reseat, swap, "
                "then try another switch port"
            ),
        ),
        "ssh HOST 'ip -br link; ibstat'",
    ),
    Class.PCIE_ERROR: Guide(
        "The PCIe link to a device reported errors. Corrected ones are harmless when rare; an "
        "uncorrected one, or a contained port, means that the device was lost or gave bad data.",
        (
            "Find the device: lspci -s ADDRESS; dmesg -T | grep -iE 'aer|dpc'",
            (
                "Compare the link's width and speed with a healthy host: lspci -vvv -s ADDRESS | "
                "grep LnkSta"
            ),
            "Uncorrected: drain, reseat device and riser, then replace",
        ),
        "ssh HOST 'dmesg -T | grep -iE \"aer|pcie|dpc\"'",
    ),
    Class.HOST_MEMORY_ERROR: Guide(
        "A memory module or the processor gave an error. Uncorrected ones kill processes or the "
        "host; corrected ones in large numbers announce them.",
        (
            (
                "Find the module: dmesg -T | grep -iE 'edac|mce|hardware error'; ras-mc-ctl "
                "--errors; ipmitool sel elist"
            ),
            "Uncorrected: drain the host and replace the module",
            "Corrected and many: plan its replacement",
        ),
        "ssh HOST 'dmesg -T | grep -iE \"edac|mce|hardware error\"'",
    ),
    Class.OOM_KILL: Guide(
        "The kernel killed a process because memory ran out. CONSTRAINT_MEMCG: the job's own "
        "limit was reached; CONSTRAINT_NONE: the host as a whole was full. The rank that died so "
        "shows no error of its own.",
        (
            "See who used how much: dmesg -T | grep -iA30 'oom-killer'",
            (
                "Limit reached: raise --mem or the container's limit, or use less: data loader "
                "workers, pinned memory, checkpoints held in memory"
            ),
            "Host full: look for processes that do not belong to the job",
        ),
        "ssh HOST 'dmesg -T | grep -iE \"oom|killed process\"'",
    ),
    Class.KERNEL_STALL: Guide(
        "The kernel reports that a task or a processor did not move for a long time. Mostly it "
        "waits for storage, for the GPU driver or for the NIC driver; the stack below the line "
        "names which.",
        (
            "Read the stack: nvidia, mlx5, nfs or lustre in it tells whom to ask",
            "See what hangs now: ps -eo pid,stat,wchan:32,cmd | grep ' D'",
            "Processes that cannot be killed need a reboot",
        ),
        "ssh HOST \"dmesg -T | grep -iA20 'blocked for more'\"",
    ),
    Class.STORAGE_ERROR: Guide(
        "A disk or file system failed under the job: input/output errors, no space, a stale "
        "handle or a hung mount. Several hosts at once point at the shared file system, one host "
        "at its own disk.",
        (
            "Look at space and mounts: df -h; df -i; mount | grep -E 'nfs|lustre|gpfs|weka'",
            "Own disk: dmesg -T | grep -iE 'nvme|i/o error'; nvme smart-log /dev/nvme0",
            (
                "Shared: ask the storage team with the time and the list of hosts; the checkpoint "
                "being written may be damaged"
            ),
        ),
        "ssh HOST 'df -h; dmesg -T | grep -iE \"nvme|i/o error|nfs\"'",
    ),
    Class.THERMAL_POWER: Guide(
        "Heat or power made the hardware slow itself down or switch off. One host alone points at "
        "its fans, dust or power supply; neighbours together point at the rack's cooling or feed.",
        (
            "See what limits the clocks: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
            "Look at sensors and supplies: ipmitool sdr; ipmitool sel elist",
            (
                "Drain the host when it shuts down or stays slow; tell the data centre when "
                "neighbours do so too"
            ),
        ),
        "ssh HOST nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
    ),
}
