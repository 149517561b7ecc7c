"""Mounted file systems: which are asked, and what becomes of those that do not answer."""

import os
from pathlib import Path

from host_trees import HostTree

from ncdiag.health.sources import mounts
from ncdiag.health.sources.place import HostRoot
from ncdiag.model.health import Mount

TREES = Path(__file__).parents[1] / "data/health/trees"
SHM = "/dev/shm"  # noqa: S108 - a name that is compared only
TABLE = r"""
21 1 259:2 / / rw shared:1 - ext4 /dev/nvme0n1p2 rw
30 21 259:2 /var /srv/bound rw - ext4 /dev/nvme0n1p2 rw
22 21 0:5 / /proc rw - proc proc rw
40 21 0:50 / /net rw - autofs systemd-1 rw
41 21 0:51 / /scratch\040disk ro,nosuid - lustre mds@o2ib:/fs rw
42 21 0:52 / /run/user/0 rw - tmpfs tmpfs rw
43 21 0:53 / /dev/shm rw - tmpfs tmpfs rw
44 21 0:54 / /var/lib/docker/overlay2/1/merged rw - overlay overlay rw
45 21 0:55 / /old rw - nfs4 filer:/old rw
46 45 0:56 / /old rw - nfs4 filer:/new rw
broken
47 21 0:57 / /cut rw -
"""


def test_only_mounts_that_hold_data_are_asked_and_each_device_once() -> None:
    assert mounts.mounts_of(TABLE) == (
        Mount(path="/", kind="ext4", device="/dev/nvme0n1p2", read_only=False),
        Mount(path="/old", kind="nfs4", device="filer:/new", read_only=False),
        Mount(path=SHM, kind="tmpfs", device="tmpfs", read_only=False),
        Mount(path="/scratch disk", kind="lustre", device="mds@o2ib:/fs", read_only=True),
    )


def test_a_mount_that_does_not_answer_costs_its_own_deadline_and_no_other() -> None:
    reading, writing = os.pipe()
    room = os.statvfs("/")

    def ask(path: str) -> os.statvfs_result:
        if path == "/dead":
            os.read(reading, 1)
        if path == "/stale":
            raise OSError(116, "Stale file handle")
        if path == "/secret":
            raise PermissionError(13, "Permission denied")
        return room

    names = ("/dead", "/fine", "/stale", "/secret")
    asked = tuple(Mount(path=name, kind="nfs4") for name in names)
    try:
        dead, fine, stale, secret = mounts.ask_all(asked, ask, hung_after_s=0.2)
    finally:
        os.write(writing, b"x")
        os.close(writing)
    assert (dead.state, dead.reason, dead.total_bytes) == ("hung", "no answer within 0.2 s", None)
    assert (fine.state, fine.total_bytes) == ("ok", room.f_blocks * room.f_frsize)
    assert (stale.state, stale.reason) == ("failed", "Stale file handle")
    assert (secret.state, secret.reason, secret.total_bytes) == ("ok", "permission denied", None)


def test_recorded_mounts_tell_shared_memory_too() -> None:
    found = mounts.collect(HostRoot(TREES / "cpu-only"))
    assert [mount.path for mount in found.facts["mounts"]] == ["/", SHM, "/home"]
    assert found.facts["shm_total_bytes"] == 1_080_000_000_000


def test_mounts_without_a_record_are_known_by_name_only(tmp_path: Path) -> None:
    tree = HostTree(tmp_path)
    tree.write("proc/self/mountinfo", "21 1 259:2 / / rw - ext4 /dev/sda1 rw")
    (mount,) = mounts.collect(HostRoot(tree.root)).facts["mounts"]
    assert (mount.path, mount.reason, mount.total_bytes) == ("/", "not recorded", None)
