"""File systems: whether they answer, have space, and can be written."""

from collections.abc import Sequence

from ncdiag.health.checks.check import Case, Check, Trip, for_each, quoted
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import Mount, Severity, Source
from ncdiag.model.units import format_bytes, format_share

# Full or not to be written by what they are.
_FIXED = ("squashfs", "iso9660", "erofs", "cramfs", "romfs", "udf")
_MEANT_TO_BE_WRITTEN = ("/", "/tmp", "/var", "/var/tmp", "/scratch", "/local", "/home")  # noqa: S108
_DISK_KINDS = ("ext2", "ext3", "ext4", "xfs", "btrfs")
# Systems whose root is verified and read-only by design sit on a device mapper.
_MAPPED = ("dm-", "/mapper/", "verity")


def _mounts(case: Case) -> Sequence[Mount]:
    return case.facts.mounts


def _path(mount: Mount) -> str:
    return quoted(mount.path)


def _hung(mount: Mount, case: Case) -> list[Trip]:
    del case
    why = f": {quoted(mount.reason)}" if mount.reason else ""
    if mount.state == "hung":
        return [Trip(text=f"{quoted(mount.kind)} at {quoted(mount.path)} does not answer{why}")]
    if mount.state == "failed":
        fuse = mount.kind.startswith("fuse")
        text = f"{quoted(mount.kind)} at {quoted(mount.path)} cannot be read{why}"
        return [Trip(text=text, severity=Severity.NOTE if fuse else Severity.WARNING)]
    return []


def _full(mount: Mount, case: Case) -> list[Trip] | None:
    if mount.read_only or mount.kind in _FIXED or not mount.total_bytes:
        return None
    if mount.free_bytes is None:
        return None
    share = mount.free_bytes / mount.total_bytes
    few = share < case.limits.mount_free_share
    if few and mount.free_bytes < case.limits.mount_free_bytes:
        return [
            Trip(
                text=f"{quoted(mount.path)} has {format_bytes(max(0, mount.free_bytes))} free",
                measured=format_share(share),
                limit=format_share(case.limits.mount_free_share),
            )
        ]
    if not mount.total_inodes or mount.free_inodes is None:
        return []
    share = mount.free_inodes / mount.total_inodes
    if share >= case.limits.mount_free_inodes_share:
        return []
    return [
        Trip(
            text=f"{quoted(mount.path)} has {mount.free_inodes:,} inodes free",
            measured=format_share(share),
            limit=format_share(case.limits.mount_free_inodes_share),
        )
    ]


def _read_only(mount: Mount, case: Case) -> list[Trip] | None:
    if mount.read_only is None:
        return None
    if not mount.read_only:
        return []
    earlier = next((m for m in _earlier(case) if m.path == mount.path), None)
    if earlier is not None and earlier.read_only is False:
        text = f"{quoted(mount.path)} became read-only between two readings"
        return [Trip(text=text, severity=Severity.FAULT)]
    mapped = any(part in (mount.device or "") for part in _MAPPED)
    if mount.path in _MEANT_TO_BE_WRITTEN and mount.kind in _DISK_KINDS and not mapped:
        text = f"{quoted(mount.path)} ({mount.kind}) is read-only"
        return [Trip(text=text, severity=Severity.WARNING)]
    return []


def _earlier(case: Case) -> Sequence[Mount]:
    return case.before.mounts if case.before else ()


CHECKS = (
    Check(
        id="hung_mount",
        title="File systems that answer",
        severity=Severity.FAULT,
        meaning="Whatever touches this file system waits for ever, and cannot be killed.",
        fix="Ask for the server; umount -l PATH; processes that hang need a reboot",
        sources=(Source.MOUNTS,),
        rule=for_each(_mounts, _path, _hung, "no file system is known"),
        class_=FindingClass.STORAGE_ERROR,
    ),
    Check(
        id="mount_full",
        title="Space on file systems",
        severity=Severity.WARNING,
        meaning="Logs, checkpoints and temporary files can soon not be written.",
        fix="df -h; df -i; remove what dead jobs left behind",
        sources=(Source.MOUNTS,),
        rule=for_each(_mounts, _path, _full, "no file system tells its space"),
    ),
    Check(
        id="mount_read_only",
        title="File systems to be written",
        severity=Severity.FAULT,
        meaning="A file system that should be written is read-only: the kernel does that after "
        "errors of the disk. It is a fault when it happened between two readings.",
        fix="dmesg -T | grep -iE 'remount|i/o error'; check the disk, then fsck and mount again",
        sources=(Source.MOUNTS,),
        rule=for_each(_mounts, _path, _read_only, "no file system tells how it is mounted"),
        class_=FindingClass.STORAGE_ERROR,
    ),
)
