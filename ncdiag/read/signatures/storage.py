"""Disks, file systems, heat and power."""

from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

_DISK = {"d_scope": "disk"}
_SHARED = {"d_scope": "shared"}
_storage = partial(Signature, class_=FindingClass.STORAGE_ERROR, levels=OUTSIDE, kind="kernel")
_disk = partial(_storage, constants=_DISK)
_shared = partial(_storage, constants=_SHARED)
_nvme = partial(_disk, source="Linux drivers/nvme/host")
_heat = partial(Signature, class_=FindingClass.THERMAL_POWER, levels=OUTSIDE)

_DISK_ROWS: tuple[Signature, ...] = (
    _disk(
        name="block_io",
        needle="error, dev ",
        pattern=Pattern(
            r"(?P<error>(?:I/O|critical (?:medium|target|space allocation|nexus)) error), dev "
            r"(?P<device>[\w/-]{1,40}), sector \d{1,20}"
        ),
        sample="blk_update_request: critical medium error, dev nvme2n1, sector 88123456 op "
        "0x0:(READ)",
        near_miss="protection error, dev unknown",
        source="Linux block/blk-core.c",
    ),
    _disk(
        name="buffer_io",
        needle="Buffer I/O error",
        pattern=Pattern(r"(?P<error>Buffer I/O error) on dev(?:ice)? (?P<device>[\w/-]{1,40}),"),
        sample="Buffer I/O error on dev sdb1, logical block 4096, lost async page write",
        near_miss="Buffer I/O error counters reset",
        source="Linux fs/buffer.c",
    ),
    _nvme(
        name="nvme_timeout",
        needle="nvme nvme",
        pattern=Pattern(
            r"nvme (?P<device>nvme\d{1,4}): I/O (?:tag )?\d{1,6}[^\n]{0,60}? QID \d{1,5} "
            r"(?P<error>timeout), (?:aborting|reset controller|completion polled)"
        ),
        sample="nvme nvme2: I/O 212 QID 9 timeout, reset controller",
        near_miss="nvme nvme2: I/O queues created: 64",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    _nvme(
        name="nvme_down",
        needle="controller is down; will reset",
        pattern=Pattern(r"nvme (?P<device>nvme\d{1,4}): (?P<error>controller is down); will reset"),
        sample="nvme nvme2: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
        near_miss="nvme nvme2: controller is up",
    ),
    _nvme(
        name="nvme_gone",
        needle="nvme nvme",
        pattern=Pattern(
            r"nvme (?P<device>nvme\d{1,4}): (?P<error>Device not ready; aborting \w{1,20}|"
            r"Removing after probe failure|Disabling device after reset failure|"
            r"failed to set APST|Abort status: 0x[1-9a-f]\w{0,4}|Device shutdown incomplete)"
        ),
        sample="nvme nvme2: Device not ready; aborting reset, CSTS=0x1",
        near_miss="nvme nvme2: Shutdown timeout set to 10 seconds",
    ),
    _nvme(
        name="nvme_media",
        needle=" (sct 0x",
        pattern=Pattern(
            r"(?P<device>nvme\d{1,4}(?:n\d{1,4})?): \w{1,20}\(0x[0-9a-f]{1,2}\)[^\n]{0,80}?, "
            r"(?P<error>[A-Z][\w /-]{1,60}) \(sct 0x2 "
        ),
        sample="nvme2n1: Read(0x2) @ LBA 88123456, 8 blocks, Unrecovered Read Error (sct 0x2 / "
        "sc 0x81) DNR",
        near_miss="nvme2n1: I/O Cmd(0x2) @ LBA 1, 8 blocks, Host Aborted Command (sct 0x3 / sc "
        "0x71)",
        versions="Linux 5.18 and later",
    ),
    _disk(
        name="scsi_medium",
        needle="Sense Key : ",
        pattern=Pattern(
            r"sd [\d:]{5,20}: \[(?P<device>sd\w{1,4})\][^\n]{0,40} Sense Key : "
            r"(?P<error>Medium Error|Hardware Error)"
        ),
        sample="sd 4:0:0:0: [sdb] tag#11 Sense Key : Medium Error [current]",
        near_miss="sd 4:0:0:0: [sdb] tag#11 Sense Key : Recovered Error [current]",
        source="Linux drivers/scsi/scsi_logging.c",
    ),
    _disk(
        name="raid_disk",
        needle="Disk failure on ",
        pattern=Pattern(r"md[^\n]{0,40}?: (?P<error>Disk failure) on (?P<device>[\w/-]{1,40}),"),
        sample="md/raid1:md127: Disk failure on nvme3n1p2, disabling device.",
        near_miss="md/raid1:md127: active with 2 out of 2 mirrors",
        source="Linux drivers/md",
    ),
    _disk(
        name="ext4_error",
        needle="EXT4-fs error",
        pattern=Pattern(r"(?P<error>EXT4-fs error) \(device (?P<device>[\w/-]{1,40})\): "),
        sample="EXT4-fs error (device dm-3): ext4_find_entry:1463: inode #2: comm python3: "
        "reading directory lblock 0",
        near_miss="EXT4-fs (dm-3): errors=remount-ro",
        source="Linux fs/ext4",
    ),
    _disk(
        name="ext4_stopped",
        needle="EXT4-fs (",
        pattern=Pattern(
            r"EXT4-fs \((?P<device>[\w/-]{1,40})\): (?P<error>Remounting filesystem read-only|"
            r"Delayed block allocation failed|failed to convert unwritten extents|"
            r"I/O error while writing superblock|shut down requested)"
        ),
        sample="EXT4-fs (dm-3): Remounting filesystem read-only",
        near_miss="EXT4-fs (dm-3): mounted filesystem with ordered data mode",
        source="Linux fs/ext4",
    ),
    _disk(
        name="xfs",
        needle="XFS (",
        pattern=Pattern(
            r"XFS \((?P<device>[\w/-]{1,40})\): (?P<error>[^\n]{0,60}?(?:metadata I/O error|"
            r"has been shut down|Shutting down filesystem|log I/O error|Corruption of in-memory "
            r"data|"
            r"xfs_do_force_shutdown))"
        ),
        sample="XFS (dm-4): Filesystem has been shut down due to log error (0x2).",
        near_miss="XFS (dm-4): Ending clean mount",
        source="Linux fs/xfs",
    ),
)

_SHARED_ROWS: tuple[Signature, ...] = (
    _shared(
        name="nfs_silent",
        needle="not responding",
        pattern=Pattern(
            r"nfs: server (?P<device>[^\s,]{1,128}) (?P<error>not responding), (?P<d_end>still "
            r"trying|"
            r"timed out)"
        ),
        sample="nfs: server nas7.cluster not responding, still trying",
        near_miss="nfs: server nas7.cluster OK",
        source="Linux net/sunrpc/clnt.c",
    ),
    _shared(
        name="lustre_evicted",
        needle="was evicted by",
        pattern=Pattern(
            r"(?<!\S)(?P<device>\S{1,128}): This client (?P<error>was evicted) by "
            r"(?P<d_server>[^\s;]{1,128})"
        ),
        sample="LustreError: 167-0: scr-OST0007-osc-ffff9c21: This client was evicted by "
        "scr-OST0007; in progress operations using this service will fail.",
        near_miss="Lustre: scr-OST0007-osc-ffff9c21: Connection restored to scr-OST0007",
        source="Lustre ptlrpc/import.c",
    ),
    _shared(
        name="lustre_lost",
        needle="was lost",
        pattern=Pattern(
            r"Lustre: (?P<device>\S{1,128}): (?P<error>Connection to \S{1,128} \(at \S{1,128}\) "
            r"was "
            r"lost)"
        ),
        sample="Lustre: scr-MDT0000-mdc-ffff9c21: Connection to scr-MDT0000 (at 10.9.8.7@o2ib) "
        "was lost; in progress operations using this service will wait for recovery to complete",
        near_miss="Lustre: scr-MDT0000-mdc-ffff9c21: Connection restored to 10.9.8.7@o2ib",
        source="Lustre ptlrpc/import.c",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    _shared(
        name="lustre_failed",
        needle="LustreError: ",
        pattern=Pattern(
            r"LustreError: (?:(?!LustreError)[^\n]){0,200}?(?<![\w-])(?P<device>[\w-]{1,64}): "
            r"operation \w{1,40} to node "
            r"\S{1,128} "
            r"(?P<error>failed: rc = -(?:5|28|107|108|110|116))\b"
        ),
        sample="LustreError: 11-0: scr-OST0007-osc-ffff9c21: operation ost_write to node "
        "10.9.8.7@o2ib failed: rc = -107",
        near_miss="LustreError: 11-0: scr-OST0007-osc-ffff9c21: operation ldlm_enqueue to node "
        "10.9.8.7@o2ib failed: rc = -2",
        source="Lustre ptlrpc/client.c",
    ),
    _shared(
        name="stale_handle",
        needle="Stale file handle",
        further=("Stale NFS file handle",),
        pattern=Pattern(r"(?P<error>Stale (?:NFS )?file handle)"),
        sample="cp: cannot stat '/scratch/ckpt/step_400.pt': Stale file handle",
        near_miss="stale file handles are retried",
        source="strerror(ESTALE)",
        kind=None,
    ),
)

# The system's own words wherever a program prints them; shared memory has a class of its own.
_ERRNO_ROWS: tuple[Signature, ...] = (
    _storage(
        name="no_space",
        needle="No space left on device",
        pattern=Pattern(
            r"^(?![^\n]{0,4000}?(?:/dev/shm|shared memory|</torch_|shm_open|NCCL))[^\n]{0,4000}?"
            r"(?P<error>No space left on device)"
        ),
        sample="OSError: [Errno 28] No space left on device: '/checkpoints/run7/step_400.pt'",
        near_miss="RuntimeError: unable to write to file </torch_4711_12>: No space left on "
        "device (28)",
        source="strerror(ENOSPC)",
        kind=None,
    ),
    _storage(
        name="input_output",
        needle="Input/output error",
        pattern=Pattern(r"(?P<error>Input/output error)(?!s)"),
        sample="OSError: [Errno 5] Input/output error: '/data/shard_0017.tar'",
        near_miss="Input/output errors are retried",
        source="strerror(EIO)",
        kind=None,
    ),
    _storage(
        name="read_only",
        needle="Read-only file system",
        pattern=Pattern(r"(?P<error>Read-only file system)"),
        sample="OSError: [Errno 30] Read-only file system: '/var/ckpt/step_400.pt'",
        near_miss="read-only file systems: 3",
        source="strerror(EROFS)",
        kind=None,
    ),
)

_HEAT_ROWS: tuple[Signature, ...] = (
    _heat(
        name="cpu_throttled",
        needle="temperature above threshold",
        pattern=Pattern(r"CPU\d{1,6}: (?P<error>(?:Core|Package) temperature above threshold)"),
        sample="mce: CPU57: Package temperature above threshold, cpu clock throttled (total "
        "events = 9)",
        near_miss="mce: CPU57: Package temperature/speed normal",
        source="Linux drivers/thermal/intel/therm_throt.c",
        kind="kernel",
    ),
    _heat(
        name="critical_temperature",
        needle="critical temperature reached",
        pattern=Pattern(
            r"(?<![\w-])(?P<device>[\w-]{1,40}): (?P<error>critical temperature reached)"
        ),
        sample="thermal thermal_zone3: critical temperature reached (108 C), shutting down",
        near_miss="thermal thermal_zone3: failed to read out temperature",
        source="Linux drivers/thermal/thermal_core.c",
        severity=Severity.FATAL,
        kind="kernel",
    ),
    _heat(
        name="gpu_slowdown",
        needle="Slowdown",
        pattern=Pattern(
            r"(?P<error>HW (?:Thermal |Power Brake )?Slowdown|SW Thermal Slowdown)\s{0,40}"
            r"(?:: ?Active\b|is (?:engaged|active|detected)|detected|active\b)"
        ),
        sample="        HW Power Brake Slowdown           : Active",
        near_miss="        HW Power Brake Slowdown           : Not Active",
        source="nvidia-smi -q -d PERFORMANCE, DCGM",
    ),
    _heat(
        name="gpu_throttled",
        needle="hrottl",
        further=("thermal violation", "ower brake", "ower Brake"),
        pattern=Pattern(
            r"(?i)\bGPU(?:(?!GPU)[^\n]){0,80}?(?P<error>thermal(?:ly)? "
            r"(?:throttl(?:ing|ed)|violation)|throttled due to "
            r"(?:thermal|power|temperature)[\w ]{0,20}|power brake)"
        ),
        sample="GPU 0000:5d:00.0: clocks throttled due to thermal limits",
        near_miss="GPU 0000:5d:00.0: throttle reasons cleared",
        source="DCGM health watch and vendors' tools",
    ),
    _heat(
        name="power_supply",
        needle="AC lost",
        further=(
            "ailure detected",
            "nput lost",
            "ower supply failed",
            "edundancy lost",
            "redictive failure",
        ),
        pattern=Pattern(
            r"(?i)\b(?P<device>power supply(?: ?#?0?x?[0-9a-f]{1,4})?|PSU ?#?\d{0,2})\b[^\n]{0,60}?"
            r"(?P<error>AC lost|failure detected|input lost|power supply failed|redundancy lost|"
            r"predictive failure)"
        ),
        sample="Power Supply #0x71 | Power Supply AC lost | Asserted",
        near_miss="Power Supply #0x71 | Presence detected | Asserted",
        source="IPMI event log",
    ),
)

ROWS: tuple[Signature, ...] = (*_DISK_ROWS, *_SHARED_ROWS, *_ERRNO_ROWS, *_HEAT_ROWS)
