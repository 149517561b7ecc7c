import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.environment import LintFinding, LintSeverity, Setting
from ncdiag.profiles.catalogue import variables
from ncdiag.profiles.context import HostDevices, LintContext
from ncdiag.profiles.lint import lint
from ncdiag.profiles.rules.table import RULES

GUIDE = Path(__file__).parents[2] / "docs" / "env-lint.md"
ERROR, WARNING, INFO = LintSeverity.ERROR, LintSeverity.WARNING, LintSeverity.INFO

SEED = """NCCL_DEBUG=INFO
NCCL_DEBUG_SUBSYS=ALL
NCCL_TIMEOUT=1800
NCCL_ASYNC_ERROR_HANDLING=1
TORCH_NCCL_BLOCKING_WAIT=0
NCCL_IB_HCA==mlx5
NCCL_SOCKET_IFNAME=eth0
NCCL_TOPO_DUMP_FILE=/tmp/topo.xml"""

DGX = HostDevices(
    "dgx001",
    hcas=tuple(f"mlx5_{number}" for number in range(12)),
    interfaces=("lo", "eth0", "eth1", "eth10", "ib0"),
    nvlink=True,
    gpus=8,
)


def settings(text: str, file: str = "job.sh") -> tuple[Setting, ...]:
    lines = [line.partition("=") for line in text.split("\n")]
    return tuple(
        Setting(name, value, f"{file}:{number}")
        for number, (name, _, value) in enumerate(lines, start=1)
    )


def rules(text: str, context: LintContext | None = None) -> list[str]:
    return [finding.rule for finding in lint(settings(text), context or LintContext())]


def only(text: str, context: LintContext | None = None) -> LintFinding:
    (finding,) = lint(settings(text), context or LintContext())
    return finding


def test_a_block_found_in_the_wild_has_two_errors_and_two_warnings() -> None:
    found = lint(settings(SEED), LintContext())
    assert [(finding.severity, finding.variable, finding.place) for finding in found] == [
        (ERROR, "NCCL_TIMEOUT", "job.sh:3"),
        (ERROR, "NCCL_IB_HCA", "job.sh:6"),
        (WARNING, "NCCL_DEBUG_SUBSYS", "job.sh:2"),
        (WARNING, "NCCL_ASYNC_ERROR_HANDLING", "job.sh:4"),
    ]
    assert "neither NCCL nor PyTorch" in found[0].message
    assert "init_process_group" in found[0].fix
    assert "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC" in found[0].fix
    assert "=mlx5 selects no device" in found[1].message
    assert "flood" in found[2].message
    assert "alias of TORCH_NCCL_ASYNC_ERROR_HANDLING" in found[3].message


@pytest.mark.parametrize(
    "context",
    [
        LintContext(ranks=10_000),
        LintContext(nccl=(2, 21, 5), pytorch=(2, 6)),
        LintContext(hosts=(DGX,)),
    ],
)
def test_more_knowledge_adds_nothing_to_that_block(context: LintContext) -> None:
    assert len(lint(settings(SEED), context)) == 4


def examples() -> list[tuple[str, str, str]]:
    """Rule, what trips it, and what does not, of each row of the guide's tables."""
    rows = re.findall(
        r"^\| `(\w+)` \| \w+ \| [^|]* \| ([^|]*) \| ([^|]*) \|$", GUIDE.read_text(), re.MULTILINE
    )
    return [(rule, trips, does_not) for rule, trips, does_not in rows]


def findings_of_example(cell: str) -> Sequence[LintFinding]:
    missing = frozenset(re.findall(r"=([^`]*)` where it is missing", cell))
    context = LintContext(
        nccl=tuple(map(int, found[1].split(".")))
        if (found := re.search(r"with NCCL ([\d.]+)", cell))
        else None,
        hosts=tuple(
            HostDevices(
                host,
                hcas=tuple(name for name in has.split() if name.startswith("mlx5")) or None,
                interfaces=tuple(name for name in has.split() if name.startswith("e")) or None,
                nvlink="NVLink" in has,
            )
            for host, has in re.findall(r"(gpu\d+) has ([^;|]+)", cell)
        ),
    )
    context = replace(context, missing_files=missing)
    made = [
        Setting(name, value.replace("\\r", "\r"), f"{file or 'job.sh'}:{number}")
        for number, (name, value, file) in enumerate(
            re.findall(r"`([\w ]+)=([^`]*)`(?: in `([^`]*)`)?", cell), start=1
        )
    ]
    assert made
    return lint(made, context)


@pytest.mark.parametrize(("rule", "trips", "does_not"), examples(), ids=lambda cell: cell[:24])
def test_rule_is_tripped_by_its_example_and_not_by_the_other(
    rule: str, trips: str, does_not: str
) -> None:
    found = findings_of_example(trips)
    assert RULES[rule].severity in [one.severity for one in found if one.rule == rule]
    assert rule not in {finding.rule for finding in findings_of_example(does_not)}
    for finding in found:
        assert finding.message
        assert finding.fix


def test_every_rule_has_an_example_with_its_severity() -> None:
    text = GUIDE.read_text()
    assert [rule for rule, _, _ in examples()] == list(RULES)
    for rule in RULES.values():
        assert f"| `{rule.id}` | {rule.severity} | {rule.what} |" in text


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("NCCL_IB_HCAS=mlx5_0", "NCCL_IB_HCA?"),
        ("NCLL_DEBUG=INFO", "NCCL_DEBUG?"),
        ("UCX_NET_DEVICE=mlx5_0:1", "UCX_NET_DEVICES?"),
        ("FI_PROVIDRE=efa", "FI_PROVIDER?"),
        ("SHARP_COLL_ENABLE_SATT=1", "SHARP_COLL_ENABLE_SAT?"),
        ("RCCL_MSCCL_ENAVLE=1", "RCCL_MSCCL_ENABLE?"),
        ("TORCH_NCCL_BLOCKING_WAITS=1", "TORCH_NCCL_BLOCKING_WAIT?"),
        ("NCCL_IB_RETRY_COUNT=7", "NCCL_IB_RETRY_CNT"),
        ("NCCL_IB_HCA==mlx5_0, mlx5_1", "NCCL_IB_HCA==mlx5_0,mlx5_1"),
        ("NCCL_IB_HCA==mlx5_0,=mlx5_1", "NCCL_IB_HCA==mlx5_0,mlx5_1"),
        ("NCCL_IB_HCA==^mlx5_0", "NCCL_IB_HCA=^=mlx5_0"),
        ("NCCL_IB_HCA=mlx5_1", "NCCL_IB_HCA==mlx5_1"),
        ("NCCL_IB_HCA=^mlx5_1", "NCCL_IB_HCA=^=mlx5_1"),
        ("NCCL_IB_HCA=MLX5_0", "NCCL_IB_HCA=mlx5_0"),
        ("NCCL_P2P_LEVEL=nvl", "NVL"),
        ("NCCL_DEBUG=INFOO", "INFO"),
        ("NCCL_NET=RoCE", "write the value IB"),
        ("NCCL_SHM_DISABLE=true", "write 1"),
    ],
)
def test_what_to_write_instead(text: str, fix: str) -> None:
    assert fix in only(text).fix


@pytest.mark.parametrize(
    "text",
    [
        "NCCL_SOCKET_IFNAME=eth0",
        "NCCL_SOCKET_IFNAME=^lo,docker0",
        "NCCL_SOCKET_IFNAME==compute",
        "NCCL_IB_HCA=mlx5_0,mlx5_10",
        "NCCL_IB_HCA=mlx5_1,mlx5_10,mlx5_11",
        "NCCL_IB_HCA==mlx5_1:1,mlx5_4:1",
        "NCCL_IB_HCA=^mlx5_bond_0",
        "NCCL_IB_HCA=$HCAS",
        "NCCL_SOCKET_IFNAME={nic.socket}",
        "NCCL_DEBUG={{ level }}",
        "NCCL_ALGO=allreduce:^tree;allgather:^ring,pat",
        "NCCL_DEBUG=warn",
        "NCCL_NET=AWS Libfabric",
        "NCCL_NETDEVS_POLICY=MAX:2",
        "NCCL_P2P_LEVEL=4",
        "NCCL_CTA_POLICY=DEFAULT|EFFICIENCY",
        "NCCL_MIN_NCHANNELS=-2",
        "NCCL_DEBUG_TIMESTAMP_FORMAT=",
        "NCCL_INSPECTOR_SOMETHING_NEW=1",
        "UCX_SOMETHING_NEW=1",
        "UCX_IB_SO=1",
        "FI_EFA_RX_SIZE=1",
        "NCCL_TESTS_HOME=/opt/nccl-tests",
        "OFI_NCCL_SOMETHING_NEW=1",
        "NCCL_HOME=/usr/local/nccl",
        "TORCH_NCCL_ENABLE_MONITORING=Yes",
        "PATH=/bin",
        "HCCL_DEBUG=x",
        "CUDA_VISIBLE_DEVICES=0",
        "NCCL_DEBUG=INFO\nNCCL_DEBUG_FILE=/tmp/nccl.%p.log",
        "NCCL_DEBUG=INFO\nNCCL_DEBUG_FILE=/dev/stderr",
        "NCCL_IB_DISABLE=1\nNCCL_SOCKET_IFNAME=eth0",
        "NCCL_CUMEM_ENABLE=0\nNCCL_NVLS_ENABLE=0",
        "NCCL_MIN_NCHANNELS=4\nNCCL_MAX_NCHANNELS=-2",
    ],
)
def test_nothing_is_wrong_with(text: str) -> None:
    assert rules(text) == []


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("NCCL_IB_HCA=mlx5_1", LintContext(hosts=(DGX,)), ["prefix_also_matches"]),
        ("NCCL_IB_HCA=mlx5_2", LintContext(hosts=(DGX,)), []),
        ("NCCL_IB_HCA==mlx5", LintContext(hosts=(DGX,)), ["matches_nothing"]),
        ("NCCL_SOCKET_IFNAME=eth1", LintContext(hosts=(DGX,)), ["prefix_also_matches"]),
        ("NCCL_SOCKET_IFNAME=bond0", LintContext(hosts=(DGX,)), ["matches_nothing"]),
        ("NCCL_SOCKET_IFNAME=^docker0,lo", LintContext(hosts=(DGX,)), []),
        (
            "NCCL_IB_HCA=mlx5",
            LintContext(hosts=(HostDevices("cpu1", hcas=()),)),
            ["matches_nothing"],
        ),
        ("NCCL_SOCKET_IFNAME=lo", LintContext(ranks=1), []),
        ("NCCL_DEBUG=INFO", LintContext(ranks=10_000), ["log_flood"]),
        ("NCCL_DEBUG=INFO", LintContext(ranks=8), []),
        ("NCCL_DEBUG=INFO\nNCCL_DEBUG_SUBSYS=^NET", LintContext(), ["log_flood"]),
        ("NCCL_DEBUG=INFO\nNCCL_DEBUG_FILE=/shared/%h", LintContext(), ["shared_log_file"]),
        ("NCCL_DEBUG=INFO\nNCCL_DEBUG_FILE=/shared/%h", LintContext(ranks=1), []),
        ("NCCL_IB_HCA=mlx5_0:1:0:1", LintContext(nccl=(2, 29, 7)), ["value_too_new"]),
        ("NCCL_ALGO=allreduce:^ring", LintContext(nccl=(2, 23, 4)), ["value_too_new"]),
        ("NCCL_MNNVL_ENABLE=1", LintContext(nccl=(2, 21)), []),
        ("NCCL_P2P_DISABLE=1", LintContext(hosts=(DGX,)), ["p2p_off"]),
        ("NCCL_CUMEM_ENABLE=0", LintContext(hosts=(DGX,)), ["cumem_off"]),
    ],
)
def test_what_is_known_of_the_job_counts(
    text: str, context: LintContext, expected: list[str]
) -> None:
    assert rules(text, context) == expected


@pytest.mark.parametrize(
    ("text", "nccl", "severity"),
    [
        ("NCCL_SHM_MEMCPY_MODE=1", None, WARNING),
        ("NCCL_SHM_MEMCPY_MODE=1", (2, 30, 7), ERROR),
        ("NCCL_TREE_THRESHOLD=0", None, ERROR),
        ("NCCL_CHECK_POINTERS=1", None, INFO),
        ("NCCL_CHECK_POINTERS=1", (2, 30, 3), WARNING),
        ("NCCL_SOMETHING_OF_TOMORROW=1", None, ERROR),
        ("NCCL_SOMETHING_OF_TOMORROW=1", (2, 31), WARNING),
        ("NCCL_LIBRARY=/opt/nccl/lib", None, INFO),
        ("NCCL_ARGS=-b 8", None, INFO),
        ("NCCL_DEBUG_LOG=/logs", None, ERROR),
        ("NCCL_IB_GID_INDEX=3", None, INFO),
        ("TORCH_NCCL_QUITE_NEW=3", None, WARNING),
        ("TORCH_NCCL_BLOCKING_WAITS=1", None, ERROR),
    ],
)
def test_what_is_not_certain_is_said_more_softly(
    text: str, nccl: tuple[int, ...] | None, severity: LintSeverity
) -> None:
    assert only(text, LintContext(nccl=nccl)).severity is severity


def test_a_reason_takes_the_suspicion_away() -> None:
    text = "NCCL_P2P_DISABLE=1\nNCCL_SHM_DISABLE=1\nNCCL_ALGO=Ring\nNCCL_NET_GDR_LEVEL=LOC"
    bare = settings(text)
    assert len(lint(bare, LintContext())) == 4
    reasoned = [Setting(one.name, one.value, "nic-only", "the NIC is measured") for one in bare]
    assert lint(reasoned, LintContext()) == ()


def test_hosts_that_lack_a_device_are_named_and_counted() -> None:
    fleet = tuple(HostDevices(f"gpu{number:03}", interfaces=("lo", "eth0")) for number in range(5))
    odd = HostDevices("gpu999", interfaces=("lo", "ens3"))
    found = only("NCCL_SOCKET_IFNAME=eth0", LintContext(hosts=(*fleet, odd)))
    assert found.rule == "missing_on_some_hosts"
    assert "gpu999 (1 of 6 hosts)" in found.message


def test_the_process_wins_over_files_and_the_first_line_in_a_file() -> None:
    job = settings("NCCL_DEBUG=WARN")
    user = settings("NCCL_DEBUG=INFO\nNCCL_IB_TC=1", "/home/me/.nccl.conf")
    system = settings("NCCL_IB_TC=2\nNCCL_IB_SL=3\nNCCL_IB_SL=4", "/etc/nccl.conf")
    found = lint([*job, *user, *system], LintContext())
    assert [(finding.rule, finding.place) for finding in found] == [
        ("shadowed_by", "/home/me/.nccl.conf:1"),
        ("shadowed_by", "/etc/nccl.conf:1"),
        ("hidden_layer", "/home/me/.nccl.conf:2"),
        ("hidden_layer", "/etc/nccl.conf:2"),
        ("set_twice", "/etc/nccl.conf:3"),
    ]
    assert "job.sh:1 sets WARN" in found[0].message
    assert "the first counts" in found[4].message


def test_a_file_that_is_not_read_has_no_effect_on_others() -> None:
    job = settings("NCCL_CONF_FILE=/opt/nccl.txt\nNCCL_IB_HCA=mlx5")
    user = settings("NCCL_IB_DISABLE=1", "/home/me/.nccl.conf")
    own = settings("NCCL_IB_TC=1", "/opt/nccl.txt")
    assert [one.rule for one in lint([*job, *user, *own], LintContext())] == [
        "conf_file_unread",
        "hidden_layer",
    ]


def test_errors_stand_in_the_order_of_the_lines() -> None:
    made = settings("NCCL_DEBUG = INFO\nNCCL_IB_TC=1\nNCCL_IB_HCA==mlx5", "/etc/nccl.conf")
    found = lint(made, LintContext())
    assert [one.place for one in found] == ["/etc/nccl.conf:1", "/etc/nccl.conf:3"]


def test_what_is_unset_again_contradicts_nothing() -> None:
    made = [*settings("NCCL_IB_DISABLE=1"), Setting("NCCL_IB_DISABLE", None, "job.sh:2")]
    assert lint([*made, *settings("NCCL_IB_HCA=mlx5")], LintContext()) == ()


def test_of_very_many_unknown_names_only_some_are_guessed() -> None:
    found = lint(settings("\n".join(f"NCCL_DEBUGS{n}=1" for n in range(5000))), LintContext())
    assert len(found) == 5000
    assert sum("NCCL_DEBUG?" in finding.fix for finding in found) == 100


def test_control_characters_are_not_passed_on() -> None:
    for text in ("NCCL_DEBUG=\x1b[31mINFO", "NCCL_IB_HCA=\x1b[0m,^\x1b", "NCCL_\x1b=1"):
        for finding in lint(settings(text), LintContext()):
            assert "\x1b" not in finding.message + finding.fix


NAMES = st.sampled_from([row.name for row in variables()] + ["NCCL_X", "nccl_debug", ""])
VALUES = st.one_of(
    st.none(),
    st.text(max_size=20),
    st.sampled_from(["0", "1", "=", "^", "^=", "mlx5_0", "=mlx5", "a,b", "0x", "-", "ALL", "$X"]),
)


@given(st.lists(st.builds(Setting, NAMES, VALUES, st.just("x:1")), max_size=6), st.integers(0, 3))
def test_any_settings_give_findings_of_known_rules(made: list[Setting], kind: int) -> None:
    context = (
        LintContext(),
        LintContext(nccl=(2, 18, 3), ranks=4096),
        LintContext(hosts=(DGX,)),
        LintContext(hosts=(DGX, HostDevices("other", hcas=(), interfaces=("lo",)))),
    )[kind]
    for finding in lint(made, context):
        assert finding.rule in RULES
        assert finding.variable in {one.name.strip() for one in made}
