import sys
from collections.abc import Mapping, Sequence

import pytest

from ncdiag.cluster.answers import Answers
from ncdiag.cluster.launchers import Launch, LauncherOptions, RemoteJob, StartEnds, choose
from ncdiag.health.self_report import (
    MODULE,
    HostHint,
    Question,
    encode_question,
    self_report,
)
from ncdiag.measure.engines.probe import probe
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

HOSTS = [Host(name=f"127.0.0.{n}", address=f"127.0.0.{n}") for n in (2, 3, 4)]
OPTIONS = LauncherOptions(python=sys.executable)
NO_PODS = ("sh", "-c", "echo 'its pod p is not ready: ImagePullBackOff' >&2; exit 1")


class Mixed:
    """Starts some hosts as local does, and others by commands of the test's own."""

    name = "mixed"
    start_ends = StartEnds.READY
    starts_at_a_time = 2
    options = OPTIONS

    def __init__(self, instead: Mapping[str, tuple[str, ...]]) -> None:
        self._instead = instead

    def unavailable(self) -> str | None:
        return None

    def launches(self, hosts: Sequence[Host], job: RemoteJob) -> list[Launch]:
        local = choose("local", hosts, OPTIONS).launches(hosts, job)
        return [
            Launch(argv=self._instead.get(one.hosts[0], one.argv), hosts=one.hosts, stdin=one.stdin)
            for one in local
        ]


def test_hosts_tell_what_they_are() -> None:
    changes: list[tuple[str, str]] = []
    probed = probe(HOSTS, choose("local", HOSTS, OPTIONS), lambda *change: changes.append(change))
    assert list(probed.reports) == [host.name for host in HOSTS]
    assert dict(probed.unreachable) == {}
    assert sorted(changes) == [(host.name, "up") for host in HOSTS]
    report = probed.reports["127.0.0.3"]
    assert report.own_address == "127.0.0.3"
    assert report.facts.cpus >= 1
    assert report.facts.hostname


@pytest.mark.parametrize(
    ("instead", "reason"),
    [
        (NO_PODS, "its pod p is not ready: ImagePullBackOff"),
        (("/nowhere/python",), "no python there: /nowhere/python is not found"),
        (("sh", "-c", "cat >/dev/null"), "its start ended with exit code 0 and said nothing"),
        (("sh", "-c", "cat >/dev/null; echo ncdiag-host: '{'"), "exit code 0 and said nothing"),
        (("sh", "-c", "kill -9 $$"), "its start ended by signal 9 and said nothing"),
        (("sh", "-c", "printf '\\033[2Jx' >&2; exit 1"), r"\x1b[2Jx"),
    ],
)
def test_a_host_that_cannot_tell_costs_itself_alone(instead: tuple[str, ...], reason: str) -> None:
    probed = probe(HOSTS, Mixed({"127.0.0.3": instead}), lambda *_: None)
    assert list(probed.reports) == ["127.0.0.2", "127.0.0.4"]
    assert list(probed.unreachable) == ["127.0.0.3"]
    assert reason in probed.unreachable["127.0.0.3"]


def test_a_host_with_two_names_is_measured_under_the_first() -> None:
    hosts = [*HOSTS, Host(name="twin", address="127.0.0.3")]
    probed = probe(hosts, choose("local", hosts, OPTIONS), lambda *_: None)
    assert list(probed.reports) == [host.name for host in HOSTS]
    assert probed.unreachable == {"twin": "it is the same host as 127.0.0.3: list it once"}


def test_one_that_never_answers_is_given_up() -> None:
    hangs = (sys.executable, "-c", "import time; time.sleep(3600)")
    probed = probe(HOSTS[:1], Mixed({"127.0.0.2": hangs}), lambda *_: None, timeout_s=0.5)
    assert probed.unreachable == {"127.0.0.2": "timed out: it did not answer within 0.5 s"}


@pytest.mark.parametrize("name", ["127.0.0.4", "evil"])
def test_a_host_cannot_speak_for_another(name: str) -> None:
    other = Mixed({}).launches([HOSTS[2]], RemoteJob(module=MODULE))[0].argv[:-1]
    question = f'{{"hosts":{{"{name}":{{}}}}}}\n'.encode()
    code = (
        "import subprocess, sys; sys.stdin.readline(); "
        f"subprocess.run({[*other, name]!r}, input={question!r}, check=True)"
    )
    instead = {"127.0.0.2": (sys.executable, "-c", code), "127.0.0.4": NO_PODS}
    probed = probe(HOSTS, Mixed(instead), lambda *_: None)
    assert list(probed.reports) == ["127.0.0.3"]
    assert "said nothing" in probed.unreachable["127.0.0.2"]
    assert "ImagePullBackOff" in probed.unreachable["127.0.0.4"]


def test_a_launcher_that_cannot_start_a_host_says_so_before_any_is() -> None:
    with pytest.raises(UsageError, match="starts loopback addresses only"):
        probe(
            [*HOSTS, Host(name="gpu1", address="10.0.0.1")],
            choose("local", HOSTS, OPTIONS),
            lambda *_: None,
        )


def test_an_answer_is_found_behind_what_else_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    code = (
        "import os, sys; os.write(1, b'Welcome to gpu1\\n\\xff\\x00'); "
        "sys.argv = ['x', '--host', sys.argv[1]]; "
        "from ncdiag.health.self_report import main; main()"
    )
    instead = {"127.0.0.2": (sys.executable, "-c", code, "127.0.0.2")}
    probed = probe(HOSTS[:1], Mixed(instead), lambda *_: None)
    assert list(probed.reports) == ["127.0.0.2"]


@pytest.mark.parametrize(
    "line", [b"", b"x", b"ncdiag-host: ", b"ncdiag-host: {}", b"ncdiag-host: \xff", b"\x00"]
)
def test_a_line_that_is_no_answer_is_none(line: bytes) -> None:
    assert Answers().hear(line) is None


def test_the_address_towards_peers_is_that_of_the_ssh_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = Question(hosts={"gpu1": HostHint(address="gpu1")})
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.9 50000 10.0.0.1 22")
    assert self_report("gpu1", question).own_address == "10.0.0.1"
    monkeypatch.delenv("SSH_CONNECTION")
    assert self_report("gpu1", question).own_address is None


def test_the_question_is_one_line_whatever_is_in_it() -> None:
    question = Question(hosts={f"h{n}": HostHint(address="a\nb") for n in range(2000)})
    assert encode_question(question).count(b"\n") == 1
