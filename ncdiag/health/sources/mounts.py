"""Mounted file systems: which answer, and what room they have.

Each is asked in a thread of its own, so that a dead server costs its own deadline and no more.
"""

import os
import queue
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from ncdiag.health.sources.found import Found, absent, failed, read, unanswered
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.topology.programs import Outcome
from ncdiag.model.health import Mount

_TABLE: Final = "/proc/self/mountinfo"
_RECORD: Final = "mounts.json"
_SHM: Final = "/dev/shm"  # noqa: S108 - shared memory of the host, which is looked at only
HUNG_AFTER_S: Final = 2.0
_MOST_MOUNTS: Final = 256
_MOST_BYTES: Final = 8 << 20
# Of the kernel's own making, read-only images, and what would be mounted by looking at it.
_LEFT_OUT: Final = (
    "autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl "
    "fuse.gvfsd-fuse fuse.lxcfs fuse.portal hugetlbfs iso9660 mqueue nsfs proc pstore ramfs "
    "rpc_pipefs securityfs selinuxfs squashfs sysfs tracefs"
)
_TEMPORARY: Final = "tmpfs"
_OVERLAY: Final = "overlay"  # a layer of each container; the host's own is at /
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")

Ask = Callable[[str], os.statvfs_result]


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the table; ``number`` is the device's, the same for all that shows it."""

    number: str
    mount: Mount


def collect(root: HostRoot) -> Found:
    """All mounts that hold data, and shared memory."""
    try:
        text = root.read(_TABLE, _MOST_BYTES).decode(errors="replace")
    except OSError:
        text = None
    if root.live:
        if text is None:
            return absent(f"{_TABLE} cannot be read")
        return _told(ask_all(mounts_of(text)))
    answer = root.recorded(_RECORD)
    if answer.outcome is Outcome.ABSENT and text is not None:
        return _told(tuple(replace(one, reason="not recorded") for one in mounts_of(text)))
    if nothing := unanswered(answer):
        return nothing
    try:
        return _told(msgspec.json.decode(answer.output, type=tuple[Mount, ...])[:_MOST_MOUNTS])
    except msgspec.MsgspecError as error:
        return failed(f"{_RECORD}: {error}")


def mounts_of(text: str) -> tuple[Mount, ...]:
    """The mounts of a table (proc(5), mountinfo) that are worth asking, each device once."""
    rows = [row for line in text.splitlines() if (row := _row(line))]
    # What is mounted over hides what was at the same path before.
    visible = list({row.mount.path: row for row in rows}.values())
    chosen: dict[str, Mount] = {}
    for row in sorted(visible, key=lambda row: len(row.mount.path)):
        if _is_wanted(row.mount):
            chosen.setdefault(row.number, row.mount)
    return tuple(chosen.values())[:_MOST_MOUNTS]


def _row(line: str) -> _Row | None:
    front, dash, back = line.partition(" - ")
    fields, ends = front.split(" "), back.split(" ")
    if not dash or len(fields) < 6 or len(ends) < 2:
        return None
    mount = Mount(
        path=_plain(fields[4]),
        kind=ends[0][:64],
        device=_plain(ends[1])[:256],
        read_only="ro" in fields[5].split(",") or (len(ends) > 2 and "ro" in ends[2].split(",")),
    )
    return _Row(fields[2], mount)


def _plain(text: str) -> str:
    r"""A name without its escapes: ``\040`` is a blank."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def _is_wanted(mount: Mount) -> bool:
    if mount.kind == _TEMPORARY:
        return mount.path in {_SHM, "/tmp"}  # noqa: S108 - looked at only
    return mount.kind not in _LEFT_OUT.split() and (mount.kind != _OVERLAY or mount.path == "/")


def ask_all(
    mounts: Sequence[Mount], ask: Ask = os.statvfs, hung_after_s: float = HUNG_AFTER_S
) -> tuple[Mount, ...]:
    """Each mount with its room, or with what came in its place."""
    told: queue.SimpleQueue[tuple[int, Mount]] = queue.SimpleQueue()
    for number, mount in enumerate(mounts):
        threading.Thread(target=_ask, args=(number, mount, ask, told), daemon=True).start()
    reason = f"no answer within {hung_after_s:g} s"
    answers = {n: replace(mount, state="hung", reason=reason) for n, mount in enumerate(mounts)}
    until_s = time.monotonic() + hung_after_s
    for _ in mounts:
        try:
            number, mount = told.get(timeout=max(until_s - time.monotonic(), 0))
        except queue.Empty:
            break
        answers[number] = mount
    return tuple(answers.values())


def _ask(number: int, mount: Mount, ask: Ask, told: "queue.SimpleQueue[tuple[int, Mount]]") -> None:
    try:
        room = ask(mount.path)
    except PermissionError:
        told.put((number, replace(mount, reason="permission denied")))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        told.put((number, replace(mount, state="failed", reason=reason)))
    else:
        told.put((number, _with_room(mount, room)))


def _with_room(mount: Mount, room: os.statvfs_result) -> Mount:
    """With what a process without privileges may still use."""
    has_inodes = room.f_files > 0
    return replace(
        mount,
        total_bytes=room.f_blocks * room.f_frsize,
        free_bytes=room.f_bavail * room.f_frsize,
        total_inodes=room.f_files if has_inodes else None,
        free_inodes=room.f_favail if has_inodes else None,
        read_only=bool(room.f_flag & os.ST_RDONLY),
    )


def _told(mounts: tuple[Mount, ...]) -> Found:
    shared = next((one for one in mounts if one.path == _SHM), None)
    return read(
        mounts=mounts,
        shm_total_bytes=shared.total_bytes if shared else None,
        shm_free_bytes=shared.free_bytes if shared else None,
    )
