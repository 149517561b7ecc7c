"""Which file system a store lies on: shared ones cannot hold SQLite's write-ahead log.

The log's index is memory that all processes map, which processes on other machines cannot see
(https://www.sqlite.org/wal.html). A file system that is not in the table is taken for a shared one:
a rollback journal is slower, and right everywhere.
"""

import ctypes
import os
from pathlib import Path
from typing import Final, NamedTuple


class FileSystem(NamedTuple):
    """A file system by its name; ``shared`` says that other machines may have it mounted too."""

    name: str
    shared: bool


# f_type of statfs(2). Source: include/uapi/linux/magic.h of Linux 6.12; what is not in Linux
# itself (lustre, gpfs, zfs, beegfs, panfs) from src/stat.c of GNU coreutils 9.5.
FILE_SYSTEMS: Final = {
    0xEF53: FileSystem("ext4", shared=False),  # ext2 and ext3 have the same number
    0x58465342: FileSystem("xfs", shared=False),
    0x9123683E: FileSystem("btrfs", shared=False),
    0xF2F52010: FileSystem("f2fs", shared=False),
    0x2FC12FC1: FileSystem("zfs", shared=False),
    0xCA451A4E: FileSystem("bcachefs", shared=False),
    0x01021994: FileSystem("tmpfs", shared=False),
    0x794C7630: FileSystem("overlayfs", shared=False),  # its upper layer cannot be NFS
    0x6969: FileSystem("nfs", shared=True),
    0x0BD00BD0: FileSystem("lustre", shared=True),
    0x47504653: FileSystem("gpfs", shared=True),
    0xFF534D42: FileSystem("cifs", shared=True),
    0xFE534D42: FileSystem("smb2", shared=True),
    0x517B: FileSystem("smb", shared=True),
    0x00C36400: FileSystem("ceph", shared=True),
    0x19830326: FileSystem("beegfs", shared=True),
    0xAAD7AAEA: FileSystem("panfs", shared=True),
    0x20030528: FileSystem("orangefs", shared=True),
    0x5346414F: FileSystem("afs", shared=True),
    0x6B414653: FileSystem("afs", shared=True),
    0x01161970: FileSystem("gfs2", shared=True),
    0x7461636F: FileSystem("ocfs2", shared=True),
    0x01021997: FileSystem("9p", shared=True),
    0x65735546: FileSystem("fuse", shared=True),  # glusterfs, sshfs and many others
}
UNKNOWN: Final = FileSystem("unknown", shared=True)


def by_magic(number: int | None) -> FileSystem:
    """The file system whose ``f_type`` is ``number``."""
    return UNKNOWN if number is None else FILE_SYSTEMS.get(number & 0xFFFFFFFF, UNKNOWN)


def file_system_of(path: Path) -> FileSystem:
    """The file system that ``path`` lies on, or its folder where it is not there yet."""
    return by_magic(_magic(path if path.exists() else path.absolute().parent))


def _magic(path: Path) -> int | None:
    """``f_type`` of statfs(2), which Python itself does not tell; ``None`` where it fails."""
    # The first member of struct statfs, a long on every 64-bit Linux but s390x; the rest is room
    # for what follows, of which no version has more than 120 bytes.
    answer = (ctypes.c_long * 64)()
    try:
        statfs = ctypes.CDLL(None, use_errno=True).statfs
    except (OSError, AttributeError):
        return None
    failed = statfs(os.fsencode(path), ctypes.byref(answer))
    return None if failed else answer[0]
