"""Whole sweeps over real hosts: what is planted is found, and nobody else is accused."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from deciding import decided

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]

NCDIAG = (sys.executable, "-m", "ncdiag")
BringUp = Callable[[str], Any]

FAULTS = """
rate = "200mbit"
hosts_file = ["leaf", "nic", "rate"]

[leaves]
leaf1 = ["h[1-3]"]
leaf2 = ["h[4-7]"]

[[faults]]
host = "h3"
send = "40mbit"

[[faults]]
host = "h4"
to = "h5"
send = "20mbit"

[[faults]]
host = "h7"
down = true
"""


@dataclass(frozen=True)
class Outcome:
    """What a sweep ended with."""

    code: int
    directory: Path
    stdout: str
    stderr: str

    @property
    def report(self) -> Any:
        return json.loads((self.directory / "report.json").read_text())

    @property
    def culprits(self) -> list[tuple[str, str, str]]:
        return sorted(
            (one["kind"], one["name"], one["direction"]) for one in self.report["culprits"]
        )

    @property
    def named(self) -> list[tuple[str, str]]:
        return [(kind, name) for kind, name, _ in self.culprits]

    @property
    def hosts(self) -> dict[str, str]:
        return {host["name"]: host["status"] for host in self.report["hosts"]}

    def lines(self, name: str) -> list[str]:
        return (self.directory / name).read_text().splitlines()


@pytest.fixture
def sweep(lab: BringUp, tmp_path: Path) -> Callable[..., Outcome]:
    """Bring a lab up and sweep it."""

    def run(toml: str, *options: str) -> Outcome:
        return sweep_lab(lab(toml), tmp_path / "report", *options)

    return run


def sweep_lab(lab: Any, directory: Path, *options: str) -> Outcome:
    def run(output: Path) -> Outcome:
        argv = [*NCDIAG, "sweep", *lab.sweep_options, "--output", str(output), *options]
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=200
        )
        assert "Traceback" not in done.stderr + done.stdout, done.stderr
        return Outcome(done.returncode, output, done.stdout, done.stderr)

    return decided(run, directory)[0]


def leaves(*counts: int) -> str:
    """The table of leaves with so many hosts each: h1, h2 ..."""
    first, lines = 1, ["[leaves]"]
    for number, count in enumerate(counts, start=1):
        lines.append(f'leaf{number} = ["h[{first}-{first + count - 1}]"]')
        first += count
    return "\n".join(lines) + "\n"


def fault(**keys: str | int) -> str:
    lines = [
        f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
        for key, value in keys.items()
    ]
    return "\n".join(["[[faults]]", *lines, ""])


def test_a_slow_sender_and_a_slow_pair_are_told_apart(sweep: Callable[..., Outcome]) -> None:
    outcome = sweep(FAULTS)

    assert outcome.code == 1, outcome.stderr
    assert outcome.named == [("host", "h3"), ("link", "h4->h5")]
    assert outcome.culprits[0] == ("host", "h3", "send")
    assert outcome.hosts["h7"] == "unreachable"
    assert outcome.lines("hosts.isolate.txt") == ["h3"]
    assert outcome.lines("hosts.good.txt") == ["h1", "h2", "h4", "h5", "h6"]


def test_quick_names_the_slow_sender_with_a_few_pairs(sweep: Callable[..., Outcome]) -> None:
    outcome = sweep(FAULTS, "--mode", "quick")

    assert ("host", "h3", "send") in outcome.culprits
    assert outcome.code == 1
    assert outcome.lines("hosts.isolate.txt") == ["h3"]
    met = {
        frozenset((one["source"], one["target"])) for one in outcome.report["links"] if one["tests"]
    }
    assert len(met) < 6 * 5 / 2, "fewer pairs than a full sweep"


def test_a_slow_uplink_between_two_leaves_is_the_switch(sweep: Callable[..., Outcome]) -> None:
    uplink = fault(leaf="leaf1", uplink="40mbit")

    outcome = sweep('rate = "200mbit"\n' + leaves(2, 2) + uplink)

    assert outcome.named == [("switch", "leaf1|leaf2")]
    assert outcome.lines("hosts.isolate.txt") == []
    assert outcome.code == 1


def test_of_three_leaves_the_one_with_the_slow_uplink_is_named(
    sweep: Callable[..., Outcome],
) -> None:
    uplink = fault(leaf="leaf2", uplink="40mbit")

    outcome = sweep('rate = "200mbit"\n' + leaves(2, 2, 2) + uplink)

    assert outcome.named == [("switch", "leaf2")]
    assert outcome.lines("hosts.isolate.txt") == []


def test_a_tapered_uplink_is_contention_and_healthy(sweep: Callable[..., Outcome]) -> None:
    outcome = sweep('rate = "200mbit"\nuplink = "200mbit"\n' + leaves(3, 3))

    assert outcome.code == 0, outcome.stdout
    assert outcome.report["verdict"] == "healthy"
    assert [one["name"] for one in outcome.report["contention"]] == ["leaf1|leaf2"]
    assert outcome.lines("hosts.isolate.txt") == []


def test_a_fleet_that_is_slow_alike_isolates_nobody(sweep: Callable[..., Outcome]) -> None:
    slow = fault(rail=0, send="60mbit", receive="60mbit")

    outcome = sweep('rate = "200mbit"\n' + leaves(2, 2) + slow)

    assert [kind for kind, _ in outcome.named] == ["fleet"]
    assert outcome.code == 1
    assert outcome.lines("hosts.isolate.txt") == []
    assert set(outcome.hosts.values()) == {"degraded"}
    assert len(outcome.lines("hosts.good.txt")) == 4


def test_a_slow_second_rail_of_one_host_is_that_nic(sweep: Callable[..., Outcome]) -> None:
    slow = fault(host="h2", rail=1, send="40mbit", receive="40mbit")

    outcome = sweep('rate = "200mbit"\nnics = 2\n' + leaves(2, 2) + slow)

    assert outcome.culprits == [("nic", "h2:eth1", "both")]
    assert {link["rail"] for link in outcome.report["links"]} == {0, 1}


def test_two_bad_hosts_that_meet_in_one_pair_are_both_named_where_no_rate_is_known(
    sweep: Callable[..., Outcome],
) -> None:
    slow = fault(host="h1", send="40mbit") + fault(host="h5", receive="40mbit")

    outcome = sweep('rate = "200mbit"\nhosts_file = ["leaf"]\n' + leaves(3, 2) + slow)

    assert {one["expected_gbit_per_s"] for one in outcome.report["links"]} == {None}
    assert outcome.culprits == [("host", "h1", "send"), ("host", "h5", "receive")]
    assert outcome.lines("hosts.isolate.txt") == ["h1", "h5"]


def test_seventy_per_cent_is_faulty_and_eighty_eight_is_not(sweep: Callable[..., Outcome]) -> None:
    slow = fault(host="h2", send="140mbit") + fault(host="h4", send="176mbit")

    outcome = sweep('rate = "200mbit"\n' + leaves(3, 2) + slow)

    assert ("host", "h2", "send") in outcome.culprits
    assert outcome.hosts["h2"] == "faulty"
    assert outcome.hosts["h4"] in {"healthy", "degraded"}
    assert outcome.lines("hosts.isolate.txt") == ["h2"]


def test_of_two_hosts_nobody_is_isolated_and_why_is_said(sweep: Callable[..., Outcome]) -> None:
    outcome = sweep('rate = "200mbit"\n' + leaves(1, 1) + fault(host="h1", send="40mbit"))

    assert outcome.code == 1
    assert outcome.named == [("link", "h1->h2")]
    assert outcome.lines("hosts.isolate.txt") == []
    assert set(outcome.hosts.values()) == {"inconclusive"}
    assert "add a third host" in outcome.stdout


def test_a_healthy_fleet_is_healthy_and_its_figures_add_up(sweep: Callable[..., Outcome]) -> None:
    outcome = sweep('rate = "200mbit"\n' + leaves(3, 3))

    report = outcome.report
    assert outcome.code == 0, outcome.stdout
    assert report["verdict"] == "healthy"
    assert outcome.stderr.count("\n") < 10
    assert len(report["links"]) == 30
    typical = median(link["measured_gbit_per_s"] for link in report["links"])
    assert typical == pytest.approx(0.1913, rel=0.02)
    for link in report["links"]:
        assert link["measured_gbit_per_s"] == pytest.approx(0.1913, rel=0.1)
        assert link["expected_gbit_per_s"] == pytest.approx(0.1913, rel=0.01)
        assert link["bytes"] > 0.3 * 0.1913e9 / 8
    with (outcome.directory / "links.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 30
    journal = [json.loads(line) for line in outcome.lines("journal.jsonl")]
    ran = [(one["source"], one["target"]) for one in journal if one["kind"] == "direction"]
    assert set(ran) == {(a, b) for a in outcome.hosts for b in outcome.hosts if a != b}


def test_the_figure_is_that_of_iperf3(lab: BringUp, tmp_path: Path) -> None:
    three = lab('rate = "200mbit"\n' + leaves(2, 1) + '[hosts.h3]\nrate = "40mbit"\n')

    outcome = sweep_lab(three, tmp_path / "report", "--measure-time", "1s")

    assert outcome.code == 0, outcome.stdout
    figures = {
        (one["source"], one["target"]): one["measured_gbit_per_s"]
        for one in outcome.report["links"]
    }
    for source, target in (("h1", "h2"), ("h2", "h1"), ("h1", "h3"), ("h3", "h1")):
        figure = iperf3_gbit_per_s(three, source, target)
        assert figures[source, target] == pytest.approx(figure, rel=0.03)


def iperf3_gbit_per_s(lab: Any, source: str, target: str) -> float:
    """What iperf3 says the receiver got."""
    listen = lab.command(target, "iperf3", "--server", "--one-off", "--forceflush")
    with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        while "listening" not in (line := server.stdout.readline()):
            assert line, "iperf3 did not listen"
        options = ("--client", lab.address(target), "--time", "2", "--omit", "1", "--json")
        client = subprocess.run(
            lab.command(source, "iperf3", *options), capture_output=True, text=True, check=True
        )
        server.communicate(timeout=20)
    return float(json.loads(client.stdout)["end"]["sum_received"]["bits_per_second"]) / 1e9
