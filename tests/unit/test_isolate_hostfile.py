import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.cluster.inventory import parse_hosts
from ncdiag.isolate.places.base import Asked, LeftAloneError, given_reason
from ncdiag.isolate.places.hostfile import HostfilePlace, asked, with_again, without
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.isolation import PlaceState

REASON = given_reason("slow host")
HOSTS = """\
# the cluster, by rack

  gpu01 slots=8   # the first
gpu02:8
root@gpu[03-08]:2222 leaf=leaf1 # a rack
# gpu09 is being repaired
gpu10
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_isolated_host_becomes_a_comment_and_all_else_stays() -> None:
    text = without(without(HOSTS, "gpu01", REASON, "f"), "gpu02", REASON, "f")
    assert text == HOSTS.replace("  gpu01", "# ncdiag: slow host |   gpu01").replace(
        "gpu02", "# ncdiag: slow host | gpu02"
    )
    assert asked(text, "f").of("gpu01").state is PlaceState.OURS
    assert asked(text, "f").of("gpu10").state is PlaceState.AVAILABLE
    assert asked(text, "f").of("gpu09").state is PlaceState.MISSING
    assert with_again(with_again(text, "gpu02", "f"), "gpu01", "f") == HOSTS


def test_a_node_set_is_parted_around_the_host_and_keeps_its_order() -> None:
    text = without(HOSTS, "gpu05", REASON, "f")
    assert text.splitlines()[4:7] == [
        "root@gpu[03-04]:2222 leaf=leaf1 # a rack",
        "# ncdiag: slow host | root@gpu05:2222 leaf=leaf1 # a rack",
        "root@gpu[06-08]:2222 leaf=leaf1 # a rack",
    ]
    assert parse_hosts(with_again(text, "gpu05", "f"), "f") == parse_hosts(HOSTS, "f")


NAMES = [f"r{rack}n{number:02}" for rack in (1, 2) for number in range(1, 5)]


@given(
    st.lists(st.sampled_from(NAMES), unique=True, max_size=7),
    st.sampled_from(["r[1-2]n[01-04]", "\n".join(NAMES), "r1n[01-04]\r\nr2n[01-04] slots=8\r\n"]),
)
def test_whoever_is_taken_out_is_out_and_comes_back_in_the_same_order(
    out: list[str], text: str
) -> None:
    before = [host.name for host in parse_hosts(text, "f")]
    without_them = text
    for name in out:
        without_them = without(without_them, name, REASON, "f")
    left = [host.name for host in parse_hosts(without_them, "f")]
    assert left == [name for name in before if name not in out]
    again = without_them
    for name in out:
        assert asked(again, "f").of(name).reason == REASON
        again = with_again(again, name, "f")
    assert [host.name for host in parse_hosts(again, "f")] == before


def test_line_ends_and_a_missing_last_one_stay() -> None:
    assert without("\ufeffa\r\nb", "b", REASON, "f") == "\ufeffa\r\n# ncdiag: slow host | b"
    assert without("\ufeffa\r\nb", "a", REASON, "f") == "\ufeff# ncdiag: slow host | a\r\nb"


def test_the_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "hosts.txt", tmp_path / "link.txt"
    file.write_text(HOSTS)
    file.chmod(0o640)
    link.symlink_to(file)
    place = HostfilePlace(link)
    place.isolate("gpu10", REASON, "plan")
    assert link.is_symlink()
    assert file.read_text() == HOSTS.replace("gpu10", "# ncdiag: slow host | gpu10")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert names(tmp_path) == ["hosts.txt", "link.txt"]
    place.isolate("gpu10", given_reason("another"), "plan")
    place.release("gpu10", REASON)
    assert file.read_text() == HOSTS
    assert place.key == f"hostfile:{file}"


def test_what_somebody_changed_since_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "hosts.txt"
    text = HOSTS.replace("gpu10", "# ncdiag: another reason | gpu10")
    file.write_text(text)
    with pytest.raises(LeftAloneError, match="changed since: ncdiag: another reason"):
        HostfilePlace(file).release("gpu10", REASON)
    with pytest.raises(LeftAloneError, match="its line is gone"):
        HostfilePlace(file).release("gpu11", REASON)
    with pytest.raises(LeftAloneError, match="its line is gone"):
        HostfilePlace(file).isolate("gpu11", REASON, "plan")
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"gpu01\n-oProxyCommand=x\n", "hosts.txt:2: .*starts with '-'"),
        (b"gpu01\ngpu[1-\n", "hosts.txt:2: not a node set"),
        (b"# none\n", "no hosts in it"),
        (b"gpu\xff\n", "not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_hosts_file_is_one_line(
    tmp_path: Path, content: bytes, line: str
) -> None:
    file = tmp_path / "hosts.txt"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=line):
        HostfilePlace(file).ask()
    assert file.read_bytes() == content


def test_a_missing_file_and_a_folder_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        HostfilePlace(tmp_path / "none").ask()
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        HostfilePlace(tmp_path).ask()


@pytest.mark.timeout(20)
def test_a_pipe_that_nobody_writes_into_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="this is no file to be written over"):
        HostfilePlace(tmp_path / "pipe").ask()


def test_a_file_that_cannot_be_replaced_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text(HOSTS)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UndecidedError, match=r"cannot write .*No space left"):
        HostfilePlace(file).isolate("gpu10", REASON, "plan")
    assert file.read_text() == HOSTS
    assert names(tmp_path) == ["hosts.txt"]


@given(st.text() | st.text("gpu[1-3], #|ncdiag:\r\n=@x", max_size=100))
def test_any_file_is_one_line_or_any_host_of_it_can_be_taken_out(text: str) -> None:
    said, found = "", Asked({})
    try:
        found = asked(text, "f")
    except UsageError as error:
        said = f"{error}"
    assert bool(found.standings) is not said.startswith("f:")
    for name in found.standings:
        if found.of(name).state is PlaceState.AVAILABLE:
            out = asked(without(text, name, REASON, "f") + "\nanother\n", "f")
            assert out.of(name).state is PlaceState.OURS


def test_what_a_killed_run_left_beside_the_file_is_taken_away_and_nothing_else(
    tmp_path: Path,
) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text("gpu01\ngpu02\n")
    old, new, own = (tmp_path / f".hosts.txt.{name}.tmp" for name in ("17", "18", "mine"))
    for left in (old, new, own):
        left.touch()
    for left in (old, own):
        os.utime(left, (1.0, 1.0))
    HostfilePlace(file).isolate("gpu01", "ncdiag: fan", "p1")
    assert [left.exists() for left in (old, new, own)] == [False, True, True]
