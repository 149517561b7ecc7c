"""GPUs and memory as the library sees them."""

from ncdiag.diagnose.postmortem.guide.record import Guide
from ncdiag.model.finding import FindingClass as Class

GUIDE = {
    Class.CUDA_ERROR: Guide(
        "A CUDA call failed. The text decides: illegal or misaligned address is the program's "
        "fault until it happens with other programs on the same GPU; ECC, NVLink, unknown error "
        "or a lost device is the GPU's. Later CUDA errors of the process are echoes of the first.",
        (
            "Look for an Xid at that time: dmesg -T | grep -i xid; with one, follow the Xid",
            "Without one, find the failing kernel: CUDA_LAUNCH_BLOCKING=1, or compute-sanitizer",
            "System not yet initialized (802): see that nvidia-fabricmanager runs on the host",
            "Test the GPU: dcgmi diag -r 3",
        ),
        "ssh HOST 'dmesg -T | grep -i xid'",
    ),
    Class.CUDA_OUT_OF_MEMORY: Guide(
        "GPU memory ran out. Mostly the program needs more than there is; sometimes a process of "
        "an earlier job still holds memory. The library needs some for itself, too.",
        (
            "See who holds memory: nvidia-smi; end what is left of earlier jobs",
            "Leave room: smaller batches, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "Reduce the library's share: NCCL_BUFFSIZE, fewer communicators",
        ),
        "ssh HOST nvidia-smi",
    ),
    Class.CUDA_INVALID_DEVICE: Guide(
        "A process asked for a GPU that is not there: more ranks than visible GPUs, or a GPU "
        "that the host has lost. If the same command works on the other hosts, count GPUs.",
        (
            "Count: nvidia-smi -L on each host, and CUDA_VISIBLE_DEVICES in the job",
            "Fewer than there should be: dmesg -T | grep -iE 'xid|nvrm'; the GPU may be lost",
            "Else correct processes per host: --nproc-per-node, --gpus-per-node",
        ),
        "ssh HOST 'nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES'",
    ),
    Class.PEER_MAPPING_EXHAUSTED: Guide(
        "Too many GPUs were made peers of one another: CUDA allows a limited number for each. One "
        "process that drives many GPUs, or very large hosts, meet that limit.",
        (
            "Run one process for each GPU, and let each see only what it needs",
            "On hosts with more than eight GPUs: NCCL_P2P_LEVEL=NVL or NCCL_P2P_DISABLE=1",
        ),
        "ssh HOST nvidia-smi topo -p2p r",
    ),
    Class.DUPLICATE_GPU: Guide(
        "Two ranks use the same GPU. The local rank is not turned into a device (set_device is "
        "missing), or the launcher shows all processes the same single GPU.",
        (
            (
                "Select the device from the local rank: torch.cuda.set_device(int(os.environ"
                "['LOCAL_RANK']))"
            ),
            "Check ranks per host against GPUs per host, and CUDA_VISIBLE_DEVICES of each process",
        ),
        "srun -l bash -c 'hostname; nvidia-smi -L; env | grep -E \"LOCAL|CUDA_VIS\"'",
    ),
    Class.P2P_DISABLED: Guide(
        "GPUs that could talk directly do not, so traffic takes a slower way. Between NVLinked "
        "GPUs that is a hardware fault; over PCIe it comes from ACS, IOMMU, containers without "
        "shared namespaces, or virtual machines.",
        (
            (
                "Look at the links: nvidia-smi nvlink -s; nvidia-smi topo -m; compare with a "
                "healthy host"
            ),
            "NVLink down: drain the host, reset the GPUs or restart nvidia-fabricmanager",
            "PCIe: switch ACS off (lspci -vvv | grep ACSCtl), boot with iommu=pt",
        ),
        "ssh HOST 'nvidia-smi nvlink -s; nvidia-smi topo -m'",
    ),
    Class.SHM_NO_SPACE: Guide(
        "Shared memory is full. Containers get 64 MB by default, which NCCL and data loaders "
        "together exceed; segments left over by killed jobs fill it as well.",
        (
            (
                "Start containers with --shm-size=8g or --ipc=host; in Kubernetes mount an "
                "emptyDir of medium Memory at /dev/shm"
            ),
            "Remove what is left over: ls -l /dev/shm; rm /dev/shm/nccl-* when no job runs",
        ),
        "ssh HOST 'df -h /dev/shm; ls -l /dev/shm | head'",
    ),
    Class.NVLS_MULTICAST_FAILED: Guide(
        "The NVSwitches refused a multicast group for NVLink SHARP. Fabric manager is not "
        "running or does not fit the driver, a fabric partition excludes this GPU, or a switch of "
        "this host is unwell.",
        (
            "To run without it at once: NCCL_NVLS_ENABLE=0",
            (
                "Check fabric manager: systemctl status nvidia-fabricmanager; its version must "
                "equal the driver's; nvidia-smi -q | grep -A2 Fabric must say Completed, Success"
            ),
            "Only one host: look for SXid in its kernel log, restart fabric manager or reboot it",
        ),
        "ssh HOST 'systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric'",
    ),
    Class.MNNVL_FAILED: Guide(
        "The NVLink domain across the rack was found but cannot be used. The IMEX daemon is down "
        "on one of the hosts, their lists of nodes differ, or the IMEX channel is missing in the "
        "container.",
        (
            "Check the domain: nvidia-imex-ctl -N; all hosts must be READY",
            "Check the channel: ls /dev/nvidia-caps-imex-channels, also inside the container",
            "To run without it at once: NCCL_MNNVL_ENABLE=0",
        ),
        "ssh HOST nvidia-imex-ctl -N",
    ),
}
