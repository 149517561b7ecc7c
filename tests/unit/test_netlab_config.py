"""A lab's file, read and checked, and what is planned from it: nothing here touches the system."""

import sys
import tomllib
from ipaddress import IPv4Network
from pathlib import Path

import pytest

# netlab stands beside ncdiag and is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from netlab import plan
from netlab.config import Fault, LabConfig, load, parse
from netlab.errors import WRONG_USE, NetlabError
from netlab.lab import hosts_file
from netlab.rates import format_rate, parse_rate_bit_per_s

ROOT = Path(__file__).resolve().parents[2]
SUBNET = IPv4Network("10.77.0.0/16")
SMALL = 'name = "demo"\nrate = "500mbit"\n[leaves]\nleaf1 = ["a", "b"]\nleaf2 = ["c"]\n'


def lab(text: str) -> LabConfig:
    return parse(tomllib.loads(text))


def refusal(text: str) -> str:
    with pytest.raises(NetlabError) as caught:
        lab(text)
    assert caught.value.exit_code == WRONG_USE
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_small_lab_gets_its_defaults() -> None:
    config = lab(SMALL)
    assert [(host.name, host.number, host.leaf) for host in config.hosts] == [
        ("a", 1, "leaf1"),
        ("b", 2, "leaf1"),
        ("c", 3, "leaf2"),
    ]
    assert {host.rate_bit_per_s for host in config.hosts} == {500_000_000}
    assert (config.rails, config.subnet, config.faults) == (1, None, ())


def test_ranges_of_hosts_keep_their_leading_zeros() -> None:
    config = lab('name="x"\nrate="1gbit"\n[leaves]\nl=["gpu[08-10]", "n[1-2]-a"]')
    assert [host.name for host in config.hosts] == ["gpu08", "gpu09", "gpu10", "n1-a", "n2-a"]


def test_every_kind_of_fault_is_understood() -> None:
    config = lab(
        SMALL
        + """
        [hosts]
        a = { nics = 2 }
        b = { nics = 2, rate = "1gbit" }
        [[faults]]
        host = "a"
        rail = 1
        send = "100mbit"
        receive = "1.5mbit"
        [[faults]]
        host = "a"
        to = "b"
        send = "50mbit"
        [[faults]]
        leaf = "leaf2"
        uplink = "60mbit"
        [[faults]]
        rail = 0
        receive = "300mbit"
        [[faults]]
        host = "b"
        down = true
        [[faults]]
        host = "c"
        sshd = false
        """
    )
    assert config.faults == (
        Fault(host="a", rail=1, send_bit_per_s=100_000_000, receive_bit_per_s=1_500_000),
        Fault(host="a", to="b", send_bit_per_s=50_000_000),
        Fault(leaf="leaf2", uplink_bit_per_s=60_000_000),
        Fault(rail=0, receive_bit_per_s=300_000_000),
        Fault(host="b", down=True),
        Fault(host="c", sshd=False),
    )
    assert plan.without_sshd(config) == {"b", "c"}
    assert {interface.device for interface in plan.unplugged(config)} == {"b-eth0", "b-eth1"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SMALL.replace("demo", "Demo"), "a lab cannot be called 'Demo'"),
        (SMALL.replace("demo", "a-b"), "a lab cannot be called 'a-b'"),
        (SMALL.replace("rate", "rat"), "unknown key 'rat' in the lab file"),
        (SMALL.replace("500mbit", "500"), "rate is not a rate: '500'"),
        (SMALL.replace('"500mbit"', "500"), "rate is not a rate: 500"),
        (SMALL.replace("500mbit", "0mbit"), "rate must lie between"),
        (SMALL.replace('rate = "500mbit"', ""), "rate is not a rate: None"),
        (SMALL.replace('"c"', '"a"'), "the name a stands twice"),
        (SMALL.replace('"c"', '"leaf1"'), "the name leaf1 stands twice"),
        (SMALL.replace('"c"', '"$(reboot)"'), "a host cannot be called '$(reboot)'"),
        (SMALL.replace('"c"', '"fabric"'), "a host cannot be called 'fabric'"),
        (SMALL.replace('"c"', '"-x"'), "a host cannot be called '-x'"),
        (SMALL.replace('"c"', "7"), "a host cannot be called '7'"),
        (SMALL.replace('"c"', '"h[9-2]"'), "counts down"),
        (SMALL.replace('"c"', '"h[1-999]"'), "2 to 200 hosts, not 1001"),
        (SMALL.replace('["c"]', '"c"'), "leaves.leaf2 must be a list"),
        (SMALL.replace("leaf2", "spine"), "a leaf cannot be called 'spine'"),
        ('name="x"\nrate="1gbit"', "leaves must be a table, not None"),
        ('name="x"\nrate="1gbit"\n[leaves]\nl=["a"]', "2 to 200 hosts, not 1"),
        (SMALL + '[hosts.z]\nrate = "1gbit"', "hosts.z stands on no leaf"),
        (SMALL + "[hosts.a]\nnics = 3", "hosts.a.nics must be 1 or 2, not 3"),
        (SMALL + "[hosts.a]\nnics = true", "hosts.a.nics must be 1 or 2, not True"),
        (SMALL + "[hosts.a]\nroot = 'x\"y'", "hosts.a.root must be a plain path"),
        (SMALL + "[hosts.a]\ncolour = 1", "unknown key 'colour' in hosts.a"),
        ('subnet = "10.77.0.0/24"\n' + SMALL, "must be a private /16"),
        ('subnet = "8.8.0.0/16"\n' + SMALL, "must be a private /16"),
        ('subnet = "ten"\n' + SMALL, "subnet is not a network: 'ten'"),
        ("subnet = 10\n" + SMALL, "subnet is not a network: 10"),
        ('hosts_file = ["rates"]\n' + SMALL, "hosts_file must be a list of some of"),
        ("faults = 1\n" + SMALL, "write each fault as its own [[faults]] table"),
        (SMALL + "[[faults]]", "fault 1 is none that netlab knows"),
        (SMALL + '[[faults]]\nhost = "a"', "fault 1 is none that netlab knows"),
        (SMALL + '[[faults]]\nhost = "a"\nuplink = "1gbit"', "fault 1 is none that netlab knows"),
        (SMALL + '[[faults]]\nhost = "a"\nslow = true', "unknown key 'slow' in fault 1"),
        (SMALL + '[[faults]]\nhost = "z"\ndown = true', "no host is called 'z'"),
        (SMALL + '[[faults]]\nhost = "a"\ndown = false', "write down = true"),
        (SMALL + '[[faults]]\nhost = "a"\nto = "a"\nsend = "1mbit"', "two different hosts"),
        (SMALL + '[[faults]]\nhost = "a"\nto = "b"\nreceive = "1mbit"', "none that netlab knows"),
        (SMALL + '[[faults]]\nhost = "a"\nrail = 1\nsend = "1mbit"', "there is no rail 1"),
        (SMALL + '[[faults]]\nleaf = "x"\nuplink = "1mbit"', "no leaf is called 'x'"),
        (SMALL + '[[faults]]\nhost = "a"\nsend = "1bit"', "fault 1: send is not a rate"),
        (SMALL + '[[faults]]\nhost = ["a"]\ndown = true', "no host is called ['a']"),
    ],
)
def test_a_wrong_lab_is_refused_in_one_line(text: str, says: str) -> None:
    assert says in refusal(text)


def test_the_file_gives_the_name_and_the_place_of_roots(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL.replace('name = "demo"', "") + '[hosts.a]\nroot = "fake/a"\n')
    tables = load(file)
    assert parse(tables).name == "small"
    assert tables["hosts"]["a"]["root"] == str(tmp_path / "fake/a")


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe", b"name = 'a\x00'"])
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad.toml"
    file.write_bytes(content)
    with pytest.raises(NetlabError, match="not valid TOML"):
        load(file)


def test_the_slowest_of_several_faults_counts_and_none_makes_a_host_faster() -> None:
    faults = """
        [[faults]]
        rail = 0
        send = "200mbit"
        [[faults]]
        host = "a"
        send = "100mbit"
        [[faults]]
        host = "c"
        receive = "900mbit"
    """
    lines = plan.shaping(lab(SMALL + faults), SUBNET)
    assert "tbf rate 100000000bit" in lines[plan.Interface("demo-a", "eth0")][0]
    assert "tbf rate 200000000bit" in lines[plan.Interface("demo-b", "eth0")][0]
    assert "tbf rate 500000000bit" in lines[plan.Interface("demo-fabric", "c-eth0")][0]


def test_a_slow_pair_never_adds_to_the_hosts_own_rate() -> None:
    fault = '[[faults]]\nhost = "a"\nto = "c"\nsend = "400mbit"\n'
    lines = plan.shaping(lab(SMALL + fault), SUBNET)[plan.Interface("demo-a", "eth0")]
    classes = [line.split() for line in lines if line.startswith("class")]
    rates = {
        words[words.index("classid") + 1]: [
            int(words[words.index(key) + 1].removesuffix("bit")) for key in ("rate", "ceil")
        ]
        for words in classes
    }
    assert {name: ceiling for name, (_, ceiling) in rates.items()} == {
        "1:1": 500_000_000,
        "1:2": 500_000_000,
        "1:10": 400_000_000,
    }
    assert rates["1:2"][0] + rates["1:10"][0] <= 500_000_000
    assert "match ip dst 10.77.0.3/32 flowid 1:10" in lines[-1]


def test_uplinks_are_shaped_at_both_ends_or_not_at_all() -> None:
    fabric = "demo-fabric"
    plain = plan.shaping(lab(SMALL), SUBNET)
    tapered = plan.shaping(lab('uplink = "1gbit"\n' + SMALL), SUBNET)
    slow = plan.shaping(lab(SMALL + '[[faults]]\nleaf = "leaf2"\nuplink = "100mbit"\n'), SUBNET)
    ends = {device: plan.Interface(fabric, device) for device in ("leaf2-up0", "leaf2-dn0")}
    assert not ends.keys() & {interface.device for interface in plain}
    assert all("rate 1000000000bit" in tapered[end][0] for end in ends.values())
    assert all("rate 100000000bit" in slow[end][0] for end in ends.values())
    assert plan.Interface(fabric, "leaf1-up0") not in slow


def test_every_interface_name_fits_into_fifteen_characters() -> None:
    text = f'name="{"n" * 12}"\nrate="1gbit"\nnics=2\n[leaves]\n{"l" * 10}=["{"h" * 10}","b"]'
    cables, plugs = plan.links(lab(text))
    words = [line.split() for line in cables + plugs]
    names = {line[2] for line in words} | {
        line[line.index("name") + 1] for line in words if "name" in line
    }
    assert max(map(len, names)) == 15


def test_the_hosts_file_hides_the_faults_and_says_what_was_chosen() -> None:
    fault = '[[faults]]\nhost = "a"\nsend = "50mbit"\n'
    full, bare = lab(SMALL + fault), lab('hosts_file = ["leaf"]\n' + SMALL + fault)
    first = "a address=10.77.0.1 leaf=leaf1"
    assert hosts_file(full, SUBNET).splitlines()[0] == f"{first} nic=eth0 rate=500mbit"
    assert hosts_file(bare, SUBNET).splitlines()[0] == first


@pytest.mark.parametrize("text", ["500mbit", "1gbit", "2500mbit", "640kbit"])
def test_a_rate_comes_back_as_it_was_written(text: str) -> None:
    assert format_rate(parse_rate_bit_per_s(text, "rate")) == text


@pytest.mark.parametrize("file", sorted((ROOT / "netlab" / "examples").glob("*.toml")), ids=str)
def test_every_example_is_a_lab_named_like_its_file(file: Path) -> None:
    assert parse(load(file)).name == file.stem


def test_the_manual_explains_every_key_and_command() -> None:
    manual = (ROOT / "docs" / "netlab.md").read_text()
    keys = "name subnet rate uplink nics hosts_file leaves hosts.NAME.root"
    keys += " host to leaf rail send receive down sshd"
    commands = "up down status break slow heal kill exec"
    missing = [key for key in keys.split() if f"`{key}" not in manual]
    missing += [command for command in commands.split() if f"netlab {command}" not in manual]
    assert missing == []
