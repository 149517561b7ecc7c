"""What ranks took of a profile, proved by logs of a program that prints like NCCL."""

import itertools
import re
import runpy
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.diagnose.env_audit import audit
from ncdiag.logs.read_logs import read_logs
from ncdiag.model.audit import EnvAudit, Outcome
from ncdiag.model.environment import Profile, Setting
from ncdiag.model.errors import ExitCode
from ncdiag.model.log import CommunicatorState, LogEvidence, NcclProcess
from ncdiag.model.place import Place
from ncdiag.profiles import profile_files

fake_nccl = runpy.run_path(str(Path(__file__).parents[1] / "data/env/fake_nccl.py"))


def profile(values: Mapping[str, str | None], nccl: str | None = None) -> Profile:
    each = tuple(Setting(name, value, "p:1", "why") for name, value in values.items())
    return Profile("p", "title", "source", each, nccl=nccl)


def log_of(
    folder: Path, environments: Iterable[Mapping[str, str]], *, version: str = "2.27.3"
) -> Path:
    """The log of a job whose ranks have these environments, two ranks a host."""
    each = [{"NCCL_DEBUG": "INFO", **one} for one in environments]
    path = folder / "job.log"
    path.write_text(
        "".join(
            fake_nccl["log"](one, rank, len(each), f"gpu{rank // 2 + 1}", version)
            for rank, one in enumerate(each)
        )
    )
    return path


def audited(wanted: Profile, path: Path) -> EnvAudit:
    return audit(wanted, read_logs([str(path)]))


def outcomes(result: EnvAudit) -> dict[str, dict[Outcome, int]]:
    return {one.variable: one.outcomes for one in result.settings if one.in_profile}


def messages(result: EnvAudit) -> list[str]:
    return [finding.message for finding in result.findings]


def test_what_all_ranks_took_is_proved(tmp_path: Path) -> None:
    wanted = {
        "NCCL_IB_TIMEOUT": "22",
        "NCCL_BUFFSIZE": "0x800000",
        "NCCL_P2P_LEVEL": "NVL",
        "NCCL_NSOCKS_PERTHREAD": "04",
        "NCCL_IB_TC": "106 ",
        "NCCL_SOCKET_IFNAME": "=eth0,eth1",
    }
    result = audited(profile(wanted), log_of(tmp_path, [wanted] * 4))
    assert outcomes(result) == {name: {Outcome.TAKEN: 4} for name in wanted}
    assert result.findings == ()
    assert (result.processes, result.telling, result.ranks) == (4, 4, 4)
    assert result.exit_code is ExitCode.DONE


def test_a_rank_that_did_not_get_it_is_named(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22", "NCCL_IB_TC": "106"}
    result = audited(
        profile(wanted), log_of(tmp_path, [wanted, wanted, {"NCCL_IB_TC": "106"}, wanted])
    )
    assert outcomes(result)["NCCL_IB_TIMEOUT"] == {Outcome.TAKEN: 3, Outcome.NOT_TAKEN: 1}
    assert outcomes(result)["NCCL_IB_TC"] == {Outcome.TAKEN: 4}
    (finding,) = result.findings
    assert finding.outcome is Outcome.NOT_TAKEN
    assert "NCCL_IB_TIMEOUT=22 was not taken on rank 2 (gpu2)" in finding.message
    assert result.exit_code is ExitCode.WRONG


def test_a_rank_without_any_of_it_is_named_too(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22"}
    result = audited(profile(wanted), log_of(tmp_path, [wanted, wanted, wanted, {}]))
    assert messages(result) == [
        "NCCL_IB_TIMEOUT=22 was not taken on rank 3 (gpu2): others print it, these do not"
    ]


def without_channels(path: Path, ranks: Iterable[int]) -> Path:
    """The same log, whose ``ranks`` reach their peers by NVLink alone."""
    text = path.read_text()
    for rank in ranks:
        text = re.sub(rf"(: {rank}\[.*) \[send\] via NET/IB/0/GDRDMA", r"\1 via P2P/CUMEM", text)
    path.write_text(text)
    return path


def test_who_has_no_connection_by_infiniband_need_not_print_how_it_is_made(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22", "NCCL_IB_QPS_PER_CONNECTION": "2"}
    path = without_channels(log_of(tmp_path, [wanted, {"NCCL_IB_HCA": "mlx5"}]), [1])
    result = audited(profile(wanted), path)
    assert outcomes(result) == {name: {Outcome.TAKEN: 1, Outcome.UNSEEN: 1} for name in wanted}
    assert "where it needs it" in messages(result)[0]
    assert result.exit_code is ExitCode.UNDECIDED


def test_who_prints_one_setting_of_a_connection_would_print_the_others(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22"}
    path = without_channels(log_of(tmp_path, [wanted, {"NCCL_IB_TC": "106"}]), [1])
    assert outcomes(audited(profile(wanted), path))["NCCL_IB_TIMEOUT"] == {
        Outcome.TAKEN: 1,
        Outcome.NOT_TAKEN: 1,
    }


def test_with_pxn_another_process_may_have_connected(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22"}
    path = log_of(tmp_path, [wanted, {}])
    path.write_text(path.read_text().replace("NET/IB/0/", "NET/IB/0(1)/"))
    assert audited(profile(wanted), path).exit_code is ExitCode.UNDECIDED


@pytest.mark.parametrize(
    ("name", "other", "outcome"),
    [
        ("NCCL_SOCKET_IFNAME", {}, Outcome.NOT_TAKEN),
        ("NCCL_IB_HCA", {"NCCL_IB_PCI_RELAXED_ORDERING": "1"}, Outcome.NOT_TAKEN),
        ("NCCL_IB_HCA", {}, Outcome.UNSEEN),
        ("NCCL_P2P_LEVEL", {}, Outcome.NOT_TAKEN),
        ("NCCL_P2P_LEVEL", {"NCCL_P2P_DISABLE": "1"}, Outcome.UNSEEN),
        ("NCCL_SHM_DISABLE", {}, Outcome.UNSEEN),
        ("NCCL_SOCKET_NTHREADS", {}, Outcome.UNSEEN),
    ],
)
def test_only_who_came_to_read_a_variable_can_lack_it(
    tmp_path: Path, name: str, other: Mapping[str, str], outcome: Outcome
) -> None:
    path = without_channels(log_of(tmp_path, [{name: "1"}, other]), [0, 1])
    result = audited(profile({name: "1"}), path)
    assert outcomes(result)[name] == {Outcome.TAKEN: 1, outcome: 1}


@pytest.mark.parametrize(
    ("name", "asked", "printed", "outcome"),
    [
        ("NCCL_ALGO", "Ring", "RING", Outcome.TAKEN),
        ("NCCL_PROTO", "^ll128", "^LL128", Outcome.TAKEN),
        ("NCCL_NET", "IB", "ib", Outcome.TAKEN),
        ("NCCL_ALGO", "Ring", "tree", Outcome.OVERRIDDEN),
        ("NCCL_SOCKET_IFNAME", "eth0", "ETH0", Outcome.OVERRIDDEN),
    ],
)
def test_letter_case_counts_where_nccl_counts_it(
    tmp_path: Path, name: str, asked: str, printed: str, outcome: Outcome
) -> None:
    result = audited(profile({name: asked}), log_of(tmp_path, [{name: printed}]))
    assert outcomes(result)[name] == {outcome: 1}


def test_many_ranks_are_a_number(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22"}
    result = audited(profile(wanted), log_of(tmp_path, [wanted, {}] * 40))
    assert "NCCL_IB_TIMEOUT=22 was not taken on 40 ranks (gpu[1-40])" in messages(result)[0]
    assert [taker.rank for taker in result.findings[0].takers] == list(range(1, 80, 2))


def test_another_value_is_told_with_who_has_it(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22"}
    environments = [wanted, {"NCCL_IB_TIMEOUT": "14"}, {"NCCL_IB_TIMEOUT": "20"}, wanted]
    result = audited(profile(wanted), log_of(tmp_path, environments))
    assert messages(result) == [
        "NCCL_IB_TIMEOUT was to be 22, and is 14, 20 on ranks 1-2 (gpu[1-2])"
    ]
    assert outcomes(result)["NCCL_IB_TIMEOUT"] == {Outcome.TAKEN: 2, Outcome.OVERRIDDEN: 2}
    assert "env lint" in result.findings[0].next
    assert result.exit_code is ExitCode.WRONG


def test_what_was_to_be_unset_and_is_set_is_told(tmp_path: Path) -> None:
    wanted = profile({"NCCL_P2P_DISABLE": None, "NCCL_SHM_DISABLE": None})
    result = audited(wanted, log_of(tmp_path, [{"NCCL_P2P_DISABLE": "1"}] * 2))
    assert messages(result) == ["NCCL_P2P_DISABLE was to be unset, and is 1 on all ranks"]
    assert outcomes(result)["NCCL_SHM_DISABLE"] == {Outcome.TAKEN: 2}


def test_a_value_that_nccl_would_not_take_is_told_with_the_default(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "a lot"}
    result = audited(profile(wanted), log_of(tmp_path, [wanted] * 2))
    assert messages(result) == [
        "NCCL_IB_TIMEOUT: NCCL would not take a lot (it uses 20) on all ranks"
    ]
    assert outcomes(result)["NCCL_IB_TIMEOUT"] == {Outcome.DEFAULTED: 2}
    assert result.exit_code is ExitCode.WRONG


def test_ranks_that_must_agree_and_do_not_are_told(tmp_path: Path) -> None:
    environments = [{"NCCL_ALGO": "Ring"}, {"NCCL_ALGO": "Tree"}, {"NCCL_IB_TC": "106"}]
    result = audited(profile({}), log_of(tmp_path, environments))
    (finding,) = result.findings
    assert finding.outcome is Outcome.DIFFERS
    assert (
        "Ring on rank 0 (gpu1), Tree on rank 1 (gpu1), not set on rank 2 (gpu2)" in finding.message
    )
    assert [one.variable for one in result.settings if not one.in_profile] == [
        "NCCL_ALGO",
        "NCCL_IB_TC",
    ]


def test_interfaces_may_differ_between_hosts(tmp_path: Path) -> None:
    wanted = profile({"NCCL_SOCKET_IFNAME": "={nic.socket}"})
    each = [{"NCCL_SOCKET_IFNAME": "=eth0"}, {"NCCL_SOCKET_IFNAME": "=bond0"}]
    assert audited(wanted, log_of(tmp_path, each)).exit_code is ExitCode.DONE
    wrong = [{"NCCL_SOCKET_IFNAME": "=eth0"}, {"NCCL_SOCKET_IFNAME": "eth"}]
    result = audited(wanted, log_of(tmp_path, wrong))
    assert messages(result) == [
        "NCCL_SOCKET_IFNAME was to be ={nic.socket}, and is eth on rank 1 (gpu1)"
    ]


def test_a_variable_that_this_release_does_not_read_is_ignored(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_ROCE_VERSION_NUM": "2", "NCCL_IB_TIMEOUT": "22"}
    path = log_of(tmp_path, [{"NCCL_IB_TIMEOUT": "22"}] * 2, version="2.18.3")
    result = audited(profile(wanted), path)
    assert messages(result) == [
        "NCCL_IB_ROCE_VERSION_NUM is not read by the NCCL in use on all ranks"
    ]
    assert "2.21.5" in result.findings[0].next
    assert result.exit_code is ExitCode.WRONG


def test_a_variable_that_the_library_calls_unused_is_ignored(tmp_path: Path) -> None:
    path = log_of(tmp_path, [{}])
    line = "gpu1:4000:4000 [0] NCCL INFO Warning: ENV NCCL_SHM_MEMCPY_MODE is unused. Setting it"
    path.write_text(f"{path.read_text()}{line} has no effect.\n")
    result = audited(profile({"NCCL_SHM_MEMCPY_MODE": "1"}), path)
    assert outcomes(result)["NCCL_SHM_MEMCPY_MODE"] == {Outcome.IGNORED: 1}


def test_a_profile_for_another_release_is_told(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22"}
    path = log_of(tmp_path, [wanted], version="2.18.3")
    result = audited(profile(wanted, nccl=">=2.21"), path)
    assert messages(result) == ["the profile is meant for NCCL >=2.21, and 2.18.3+cuda12.4 ran"]
    assert audited(profile(wanted, nccl=">=2.18"), path).exit_code is ExitCode.DONE


def test_without_lines_of_the_environment_nothing_is_decided(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22"}
    result = audited(profile(wanted), log_of(tmp_path, [{"NCCL_DEBUG": "WARN", **wanted}] * 2))
    assert {finding.outcome for finding in result.findings} == {Outcome.UNSEEN}
    assert "NCCL_DEBUG=INFO" in result.findings[0].next
    assert result.exit_code is ExitCode.UNDECIDED


def test_a_variable_that_no_rank_prints_is_undecided(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22", "NCCL_GDR_FLUSH_DISABLE": "1"}
    result = audited(profile(wanted), log_of(tmp_path, [wanted] * 2))
    assert messages(result) == ["NCCL_GDR_FLUSH_DISABLE: no log says anything of it"]
    assert result.exit_code is ExitCode.UNDECIDED


def test_a_rank_whose_start_up_is_cut_off_is_undecided(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22"}
    path = log_of(tmp_path, [wanted, wanted])
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-4]))
    result = audited(profile(wanted), path)
    assert outcomes(result)["NCCL_IB_TIMEOUT"] == {Outcome.TAKEN: 1, Outcome.UNSEEN: 1}
    assert result.exit_code is ExitCode.UNDECIDED


def test_ranks_without_a_log_are_undecided(tmp_path: Path) -> None:
    wanted = {"NCCL_IB_TIMEOUT": "22"}
    path = log_of(tmp_path, [wanted] * 4)
    kept = [
        line for line in path.read_text().splitlines() if "[2]" not in line and "[3]" not in line
    ]
    path.write_text("\n".join(kept))
    result = audited(profile(wanted), path)
    assert messages(result) == ["2 of 4 ranks are in none of these logs: 2-3"]
    assert result.exit_code is ExitCode.UNDECIDED


def test_an_empty_log_is_undecided(tmp_path: Path) -> None:
    path = tmp_path / "empty.log"
    path.write_text("nothing to do with it\n")
    result = audited(profile({"NCCL_IB_TIMEOUT": "22"}), path)
    assert "no process of NCCL is in these logs" in messages(result)
    assert result.exit_code is ExitCode.UNDECIDED


@pytest.mark.parametrize(
    ("level", "outcome"), [("INFO", Outcome.TAKEN), ("WARN", Outcome.OVERRIDDEN)]
)
def test_lines_of_info_prove_their_level(tmp_path: Path, level: str, outcome: Outcome) -> None:
    path = log_of(tmp_path, [{"NCCL_IB_TC": "106"}] * 2)
    result = audited(profile({"NCCL_DEBUG": level}), path)
    assert outcomes(result)["NCCL_DEBUG"] == {outcome: 2}


def test_what_other_programs_read_is_beyond_the_log(tmp_path: Path) -> None:
    path = log_of(tmp_path, [{"NCCL_IB_TC": "106"}])
    beyond = {"TORCH_NCCL_NAN_CHECK": "1", "NCCL_DEBUG_FILE": "x", "HSA_NO_SCRATCH_RECLAIM": "1"}
    result = audited(profile(beyond), path)
    assert outcomes(result) == {name: {Outcome.BEYOND: 1} for name in beyond}
    assert messages(result) == ["NCCL prints nothing of what this profile sets"]
    assert result.exit_code is ExitCode.UNDECIDED
    result = audited(profile({**beyond, "NCCL_IB_TC": "106"}), path)
    assert result.exit_code is ExitCode.DONE


def test_only_one_rank_need_print_a_file_to_write(tmp_path: Path) -> None:
    path = log_of(tmp_path, [{"NCCL_IB_TC": "106"}] * 2)
    line = "gpu1:4000:4000 [0] NCCL INFO NCCL_TOPO_DUMP_FILE set by environment to /x/t.xml\n"
    text = path.read_text()
    path.write_text(text + line)
    result = audited(profile({"NCCL_TOPO_DUMP_FILE": "/x/t.xml"}), path)
    assert outcomes(result)["NCCL_TOPO_DUMP_FILE"] == {Outcome.TAKEN: 2}


@pytest.mark.parametrize("name", profile_files.names())
def test_each_shipped_profile_is_taken_whole_by_a_job_that_has_it(
    name: str, tmp_path: Path
) -> None:
    shipped = profile_files.load(name)
    here = {"{hca.compute}": "mlx5_0,mlx5_3", "{nic.socket}": "eth0"}
    environment = {}
    for one in shipped.settings:
        environment[one.name] = one.value or ""
        for placeholder, text in here.items():
            environment[one.name] = environment[one.name].replace(placeholder, text)
    environment["NCCL_DEBUG"] = "INFO"
    result = audited(shipped, log_of(tmp_path, [environment] * 2))
    quiet = {one.variable for one in result.findings}
    assert quiet <= ({"NCCL_DEBUG"} if name == "quiet" else set())
    found = set(itertools.chain.from_iterable(outcomes(result).values()))
    assert found <= {Outcome.TAKEN, Outcome.BEYOND, *([Outcome.OVERRIDDEN] * bool(quiet))}
    assert bool(quiet) is (name == "quiet")


names = st.sampled_from(["NCCL_ALGO", "NCCL_IB_TC", "NCCL_DEBUG", "NCCL_NOBODY", "TORCH_X", "A"])
tables = st.dictionaries(names, st.text(max_size=8), max_size=4)


@st.composite
def processes(draw: st.DrawFn) -> NcclProcess:
    size = draw(st.none() | st.integers(-1, 2**40))
    state = CommunicatorState(pointer="0x1", rank=draw(st.none() | st.integers(0, 9)), ranks=size)
    if draw(st.booleans()):
        state.started = state.completed = Place("p", 1)
    return NcclProcess(
        host=draw(st.text(max_size=5)),
        pid="1",
        versions=draw(st.lists(st.sampled_from(["2.18.3", "2.27.3+cuda", "x"]), max_size=2)),
        communicators=[state] * draw(st.integers(0, 1)),
        environment=draw(tables),
        defaulted=draw(st.dictionaries(names, st.tuples(st.text(max_size=4), st.just("1")))),
        unused=draw(st.lists(names, max_size=1)),
    )


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(names, st.none() | st.text(max_size=8)), st.lists(processes(), max_size=4))
def test_any_evidence_gets_an_answer_for_every_process(
    values: dict[str, str | None], some: list[NcclProcess]
) -> None:
    result = audit(profile(values, nccl=">=2.18"), LogEvidence(processes=some))
    assert set(outcomes(result)) == set(values)
    assert all(sum(each.values()) == len(some) for each in outcomes(result).values())
    assert all("\n" not in message for message in messages(result))
