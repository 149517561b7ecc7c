import io
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.cluster.inventory import MAX_FILE_BYTES, check_hosts, parse_hosts, read_hosts
from ncdiag.cluster.names import MAX_HOSTS, parted
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host


def parse(text: str) -> tuple[Host, ...]:
    return parse_hosts(text, "hosts.txt")


def one(line: str) -> Host:
    (host,) = parse(line)
    return host


def names(text: str) -> list[str]:
    return [host.name for host in parse(text)]


def refusal(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(UsageError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gpu001", Host(name="gpu001", address="gpu001")),
        ("gpu001.example.org", Host(name="gpu001.example.org", address="gpu001.example.org")),
        ("10.0.0.7", Host(name="10.0.0.7", address="10.0.0.7")),
        ("[fe80::1%eth0]", Host(name="fe80::1%eth0", address="fe80::1%eth0")),
        ("fd00::7", Host(name="fd00::7", address="fd00::7")),
        ("ops@gpu001", Host(name="gpu001", address="gpu001", user="ops")),
        ("ops@gpu001:2222", Host(name="gpu001", address="gpu001", user="ops", port=2222)),
        ("ops@[fd00::7]:22", Host(name="fd00::7", address="fd00::7", user="ops", port=22)),
        ("gpu001 root=/srv/f/1", Host(name="gpu001", address="gpu001", root="/srv/f/1")),
        ("gpu001 slots=8", Host(name="gpu001", address="gpu001")),
        ("gpu001 slots=8 max_slots=8", Host(name="gpu001", address="gpu001")),
        ("gpu001 slots=8 max-slots=8", Host(name="gpu001", address="gpu001")),
        ("gpu001:8", Host(name="gpu001", address="gpu001")),
        ("[fd00::7]:8", Host(name="fd00::7", address="fd00::7")),
        ("gpu001 address=10.0.0.7", Host(name="gpu001", address="10.0.0.7")),
        ("gpu001 address=[fd00::7]", Host(name="gpu001", address="fd00::7")),
        ("gpu001 address=fd00::7%ib0", Host(name="gpu001", address="fd00::7%ib0")),
        (
            "gpu001 leaf=l1 rack=r7 nic=mlx5_0,mlx5_1:1 rate=400gbit uplink=2tbit gpus=8 # here",
            Host(
                name="gpu001",
                address="gpu001",
                leaf="l1",
                rack="r7",
                nics=("mlx5_0", "mlx5_1:1"),
                rate_gbit_per_s=400.0,
                uplink_gbit_per_s=2000.0,
                gpus=8,
            ),
        ),
    ],
)
def test_each_form_of_an_entry_is_understood(line: str, expected: Host) -> None:
    assert one(line) == expected


def test_node_sets_unfold_and_keep_their_padding() -> None:
    assert names("gpu[008-010,130]") == ["gpu008", "gpu009", "gpu010", "gpu130"]
    assert names("rack[1-2]n[1-2]-ib") == ["rack1n1-ib", "rack1n2-ib", "rack2n1-ib", "rack2n2-ib"]
    assert names("10.0.0.[9-11]") == ["10.0.0.9", "10.0.0.10", "10.0.0.11"]


def test_a_node_set_carries_its_login_and_attributes_to_each_host() -> None:
    hosts = parse("ops@n[1-2]:2222 leaf=l1")
    assert [(h.name, h.user, h.port, h.leaf) for h in hosts] == [
        ("n1", "ops", 2222, "l1"),
        ("n2", "ops", 2222, "l1"),
    ]


def test_the_order_of_the_file_is_kept() -> None:
    assert names("z\na\nm[2-3]\nb") == ["z", "a", "m2", "m3", "b"]


def test_comments_blank_lines_crlf_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_bytes(b"\xef\xbb\xbf# fleet\r\n\r\na # first\r\n  b\t leaf=l1 \rc")
    assert [host.name for host in read_hosts(str(file))] == ["a", "b", "c"]


def test_the_same_host_twice_counts_once() -> None:
    assert names("n1\nn[1-2]\nn1:8\nn2") == ["n1", "n2"]


def test_a_host_given_again_with_other_attributes_is_refused_with_both_lines() -> None:
    message = refusal(parse, "n1 leaf=a rate=1gbit\n\nn[1-2] leaf=b rate=1gbit")
    assert message == (
        "hosts.txt:3: n1 was already given on line 1 with leaf=a, here leaf=b; keep one of the two"
    )
    assert "user=root, here no user=" in refusal(parse, "root@n1\nn1")
    assert "nic=eth0,eth1, here no nic=" in refusal(parse, "n1 nic=eth0,eth1\nn1")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("-oProxyCommand=x", "'-oProxyCommand=x' starts with '-'"),
        ("$(reboot)", "'$' cannot stand in a host name"),
        ("a;b", "';' cannot stand"),
        ("../../etc", "'/' cannot stand"),
        ("..", "'..' is no host name"),
        (".hidden", "'.hidden' is no host name"),
        ("\x1b[31m", r"'\x1b' cannot stand"),
        ("grün", "'ü' cannot stand"),
        ("<script>alert(1)</script>", "'<' cannot stand"),
        ("a,b", "a comma stands only inside brackets"),
        ("a b", "expected key=value after the host, not 'b'"),
        ("a%b", "'a%b' is no host name"),
        ("@all", "groups are off"),
        ("-x@host", "starts with '-'"),
        ("user@-oProxyCommand", "'-oProxyCommand' is no host name"),
        ("u@v@host", "'u@v' is no user name"),
        ("user@", "'' is no host name"),
        (":8", "'' is no host name"),
        ("host:", "'' is no number"),
        ("host:ssh", "'ssh' is no number"),
        ("user@host:0", "0 is no port"),
        ("user@host:65536", "65536 is no port"),
        ("999.0.0.1", "999.0.0.1 is no IPv4 address"),
        ("[fe80::1", "'[fe80::1' is no IPv6 address"),
        ("fe80::zz", "'fe80::zz' is no IPv6 address"),
        ("[fe80::1%]", "'' is no interface name"),
        ("1:2:3", "'1:2:3' is no IPv6 address"),
        ("n[1-", "not a node set"),
        ("n1-4]", "not a node set"),
        ("n[a-c]", "ranges look like"),
        ("n[]", "ranges look like"),
        ("n[4-1]", "not a node set"),
        ("n[1-2][3-4]", "not a node set"),
        ("n[01-3]", "not a node set"),
        ("n" * 254, "more than 253 characters"),
        ("n[" + "9" * 19 + "]", "more than 18 digits"),
        ("n1 raet=1gbit", "unknown key 'raet'; did you mean rate=?"),
        ("n1 Leaf=l1", "did you mean leaf=?"),
        ("n1 zzz=1", "unknown key 'zzz'; known are leaf= rack= nic= rate= uplink= gpus= root= "),
        ("n1 =1", "unknown key ''"),
        ("n1 leaf=", "leaf= has no value"),
        ("n1 leaf=a leaf=a", "leaf= is given twice"),
        ("n1 leaf=a|b", "without | and ,"),
        ("n1 leaf=" + "x" * 65, "up to 64 printable"),
        ("n1 rate=fast", "rate=: not a rate: 'fast'"),
        ("n1 rate=0gbit", "rate=: a rate must be above zero"),
        ("n1 rate=" + "1" * 70, "not a rate; write rate=400gbit"),
        ("n1 uplink=-1gbit", "uplink=: not a rate"),
        ("n1 root=facts/n1", "root='facts/n1': an absolute path is needed, such as root=/var"),
        ("n1 root=../n1", "root='../n1': an absolute path is needed"),
        ("n1 root=/a\u202eb", "an absolute path is needed"),
        ("n1 root=/" + "a" * 1024, "an absolute path is needed"),
        ("n1 root=", "root= has no value"),
        ("n1 gpus=many", "gpus='many': a number is needed"),
        ("n1 gpus=٣", "a number is needed"),
        ("n1 nic=eth0,eth0", "a NIC stands there twice"),
        ("n1 nic=eth0,", "'' is no NIC"),
        ("n1 nic=-x", "'-x' is no NIC"),
        ("n1 nic=../eth0", "'../eth0' is no NIC"),
        ("n1 address=-x", "a host name or an IP address is needed"),
        ("n1 address=n[1-2]", "'n[1-2]' is no host name"),
        ("n[1-2] address=10.0.0.1", "address= belongs to one host, but 'n[1-2]' names 2"),
    ],
)
def test_a_malformed_line_is_refused_with_its_number(line: str, complaint: str) -> None:
    message = refusal(parse, f"# fleet\ngood\n{line}\n")
    assert message.startswith("hosts.txt:3: ")
    assert complaint in message


@pytest.mark.parametrize(
    "node_set",
    ["n[1-999999999]", "n[1-1000]x[1-1000]y[1-1000]", "x[1-99999999]y[5-1]", "n[1-100001]"],
)
def test_a_huge_node_set_is_refused_before_it_fills_the_memory(node_set: str) -> None:
    tracemalloc.start()
    try:
        assert f"more than {MAX_HOSTS:,} hosts" in refusal(parse, node_set)
        assert tracemalloc.get_traced_memory()[1] < 1024**2
    finally:
        tracemalloc.stop()


def test_too_many_hosts_over_several_lines_are_refused() -> None:
    assert f"hosts.txt:2: more than {MAX_HOSTS:,}" in refusal(parse, "a[1-60000]\nb[1-60000]")


def test_ten_thousand_hosts_parse_from_a_range_and_from_as_many_lines() -> None:
    attributes = "leaf=l1 rate=400gbit uplink=2000gbit"
    folded = parse(f"gpu[00001-10000] {attributes}")
    unfolded = parse("\n".join(f"gpu{i:05d} {attributes}" for i in range(1, 10001)))
    assert len(folded) == 10_000
    assert folded == unfolded


@given(st.text())
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        assert parse(text)
    except UsageError as error:
        assert "\n" not in f"{error}"  # noqa: PT017 - either outcome is right


_WORDS = st.sampled_from(
    ["n", "[", "]", "1", "-", "9", ",", ":", "@", "%", "fe80::", ".", " ", "\n", "leaf=", "rate="]
)


@given(st.lists(_WORDS, max_size=25).map("".join))
def test_any_mixture_of_the_grammar_parses_into_safe_names_or_is_refused(text: str) -> None:
    try:
        hosts = parse(text)
    except UsageError as error:
        assert "\n" not in f"{error}"  # noqa: PT017 - either outcome is right
        return
    assert all(host.name[0] not in "-./[@" for host in hosts)
    assert all(host.address[0] not in "-./[@" for host in hosts)


def test_the_names_of_hosts_parse_again_to_the_same_hosts() -> None:
    hosts = parse("gpu[1-2]\n[fe80::1%eth0]\n10.0.0.1\n")
    assert parse("\n".join(host.name for host in hosts)) == hosts


def test_an_existing_file_comes_before_a_node_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpu1").write_text("a\nb\n")
    assert [host.name for host in read_hosts("gpu1")] == ["a", "b"]
    assert [host.name for host in read_hosts("gpu2")] == ["gpu2"]


def test_a_node_set_may_list_several_entries() -> None:
    hosts = read_hosts("a,gpu[1-2,4], ops@b:2222")
    assert [host.name for host in hosts] == ["a", "gpu1", "gpu2", "gpu4", "b"]
    assert hosts[-1].port == 2222


def test_a_long_node_set_is_not_taken_for_a_path() -> None:
    assert len(read_hosts(",".join(f"gpu{i:04d}" for i in range(1000)))) == 1000


def test_a_dash_reads_standard_input() -> None:
    assert [host.name for host in read_hosts("-", io.BytesIO(b"a\nb\n"))] == ["a", "b"]
    assert refusal(read_hosts, "-", io.BytesIO(b"a\n$b")).startswith("stdin:2: ")


def test_without_nodes_the_slurm_allocation_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "gpu[01-02],login1")
    assert [host.name for host in read_hosts(None)] == ["gpu01", "gpu02", "login1"]
    monkeypatch.setenv("SLURM_JOB_NODELIST", "gpu01")
    with pytest.raises(UsageError, match=r"1 host given, .*; ask for more nodes \(salloc -N2\)"):
        read_hosts(None, at_least=2)
    monkeypatch.delenv("SLURM_JOB_NODELIST")
    assert "add --nodes hosts.txt" in refusal(read_hosts, None)


@pytest.mark.parametrize("nodes", ["missing.txt", "no/such/file", "./hosts"])
def test_a_missing_file_is_not_taken_for_a_host(nodes: str) -> None:
    assert "no such file" in refusal(read_hosts, nodes)


def test_too_few_hosts_are_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file 'hosts', so it was read as a host name"):
        read_hosts("hosts", at_least=2)
    file = tmp_path / "hosts"
    file.write_text("a\na\n")
    with pytest.raises(UsageError, match="hosts: 1 host given, at least 2 needed; add"):
        read_hosts(str(file), at_least=2)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("gpu[1-", "--nodes: not a node set: 'gpu[1-': missing bracket"),
        ("a,gpu[1-", "--nodes 'a,gpu[1-': not a node set: 'gpu[1-': missing bracket"),
    ],
)
def test_a_node_set_that_is_none_is_quoted_once(nodes: str, message: str) -> None:
    assert refusal(read_hosts, nodes) == message


@pytest.mark.parametrize("nodes", ["", ",", " "])
def test_an_empty_node_set_is_refused(nodes: str) -> None:
    assert "--nodes is empty" in refusal(read_hosts, nodes)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "no hosts in it"),
        (b"# nothing\n\n", "no hosts in it"),
        (b"a\n\xff\xfeb", ":2: not UTF-8 text (byte 0xff)"),
        ("a\n".encode("utf-16"), ":1: not UTF-8 text"),
        (bytes(range(128)), r":1: '\x00' cannot stand"),
        (b"a" * (MAX_FILE_BYTES + 1), "larger than 16 MiB"),
        (b"a" * (MAX_FILE_BYTES - 1), ":1: a host name of more than 253 characters"),
    ],
)
def test_a_file_that_is_no_hosts_file_is_refused(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    file = tmp_path / "hosts"
    file.write_bytes(content)
    assert complaint in refusal(read_hosts, str(file))


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert "is a directory, not a hosts file" in refusal(read_hosts, str(tmp_path))


def test_a_file_that_cannot_be_read_is_refused() -> None:
    # Reading a process's memory from its start fails for root too.
    assert "cannot be read" in refusal(read_hosts, "/proc/self/mem")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "-oProxyCommand=x"}, "is no host name"),
        ({"name": "<script>"}, "is no host name"),
        ({"address": "-x"}, "'-x' is no host name"),
        ({"address": "fe80::1%-$x"}, "is no interface name"),
        ({"user": "-x"}, "'-x' is no user name"),
        ({"port": 0}, "0 is no port"),
        ({"nics": ("../x",)}, "'../x' is no NIC"),
        ({"name": "n2"}, "n2 stands there twice"),
    ],
)
def test_hosts_from_elsewhere_are_held_to_the_same_rules(
    change: dict[str, object], complaint: str
) -> None:
    good = parse("root@n1:22 nic=eth0 address=10.0.0.1\nn2\n[fe80::1%eth0]")
    check_hosts(good)
    assert complaint in refusal(check_hosts, (replace(good[0], **change), *good[1:]))


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("gpu1", ["gpu1"]),
        ("a,gpu[1-4,7],b", ["a", "gpu[1-4,7]", "b"]),
        ("gpu[1,2]x[3,4],b", ["gpu[1,2]x[3,4]", "b"]),
        ("a,", ["a", ""]),
    ],
)
def test_a_comma_inside_of_brackets_parts_no_node_sets(text: str, sets: list[str]) -> None:
    assert parted(text) == sets
