import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from ncdiag.model.finding import (
    FindingClass,
    FirstSeen,
    Postmortem,
    PostmortemVerdict,
    Role,
    Suspect,
    SuspectKind,
)
from ncdiag.model.log import InputSummary, LogEvidence
from ncdiag.report.postmortem import describe, text

MakeCase = Callable[..., tuple[Postmortem, LogEvidence]]


def printed(
    case: tuple[Postmortem, LogEvidence],
    *,
    width: int = 80,
    verbose: bool = False,
    terminal: bool = False,
    no_color: bool = False,
) -> str:
    output = io.StringIO()
    console = Console(
        file=output,
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        force_terminal=terminal,
        no_color=no_color,
        color_system="standard" if terminal else None,
    )
    text.render(*case, console, verbose=verbose)
    return output.getvalue()


def test_the_first_lines_say_what_failed_where_and_what_to_do(make_case: MakeCase) -> None:
    lines = printed(make_case(2)).splitlines()
    assert lines[0] == "FINDINGS  ib_port_error: host gpu002, NIC mlx5_0 (90 % sure)"
    assert lines[1] == "isolate   gpu002"
    assert lines[2] == "next      ssh gpu002 ibstat"


def test_the_common_case_fits_a_screen(make_case: MakeCase) -> None:
    lines = printed(make_case(2)).splitlines()
    assert len(lines) <= 24
    assert [line for line in lines if cell_len(line) > 80] == []


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("verbose", [False, True])
def test_what_is_read_is_wrapped_and_what_is_copied_is_not(
    width: int, make_case: MakeCase, *, verbose: bool
) -> None:
    case = make_case(3, quote="x" * 500)
    lines = printed(case, width=width, verbose=verbose).splitlines()
    lines.remove("next      ssh gpu003 ibstat")
    assert [line for line in lines if cell_len(line) > max(width, 20)] == []


def test_who_is_isolated_for_another_reason_than_the_first_finding_is_told_why(
    make_case: MakeCase,
) -> None:
    postmortem, evidence = make_case(2)
    because = "because gpu002: ib_port_error on mlx5_0 (95 % sure)"
    words = " ".join(printed((postmortem, evidence)).split())
    assert "story gpu002 lost its port. The other hosts timed out against it." in words
    assert because not in words
    other = replace(postmortem, findings=postmortem.findings[2:])
    assert because in " ".join(printed((other, evidence)).split())


def test_the_story_does_not_repeat_what_stands_above_it(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2)
    told = "16 ranks on 2 hosts with NCCL 2.21.5+cuda12.4."
    new = "16 ranks on 2 hosts with NCCL 2.18.1."
    shown = printed((replace(postmortem, story=[told, new]), evidence))
    assert told not in shown
    assert new in shown
    assert told in printed((replace(postmortem, story=[told, new]), evidence), verbose=True)


def test_only_commands_get_names_put_into_them(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2)
    action = "The NIC of HOST or a GPU: ibstat NIC; nvidia-smi -i GPU"
    values = {"hca": "mlx5_9", "pci": "0000:1b:00"}
    first = replace(postmortem.findings[0], actions=[action], attributes=values)
    words = " ".join(printed((replace(postmortem, findings=[first]), evidence)).split())
    assert "The NIC of gpu002 or a GPU: ibstat mlx5_9; nvidia-smi -i 0000:1b:00" in words


def test_a_gpu_with_and_without_its_function_is_one(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2)
    first = postmortem.findings[0]
    gpus = [Suspect(kind=SuspectKind.GPU, name=name) for name in ("0000:1b:00.0", "0000:1b:00")]
    both = replace(first, suspects=[*gpus, *first.suspects])
    line = printed((replace(postmortem, findings=[both]), evidence)).splitlines()[0]
    assert line.endswith("host gpu002, GPU 0000:1b:00, NIC mlx5_0 (90 % sure)")


def test_a_finding_shows_its_line_and_what_is_known_of_it(make_case: MakeCase) -> None:
    words = " ".join(printed(make_case(2)).split())
    assert "ROOT ib_port_error host gpu002, NIC mlx5_0, fatal, 90 % sure, 8 times" in words
    assert "All ranks of gpu002 report it." in words
    assert "gpu002.log:400 gpu002:11:12 [0] NCCL WARN NET/IB : mlx5_0:1 Got async" in words
    assert "mlxlink -d mlx5_0" in words
    assert "CONSEQUENCE ib_completion_error (gpu001.log:500)" in words
    assert "WARNING host_config_warning: a setting of a host drew a warning (gpu001" in words


def test_a_folder_that_all_files_share_is_said_once(make_case: MakeCase) -> None:
    shown = printed(make_case(2))
    assert shown.count("logs") == 1
    assert "2 files in logs, 2,000 lines of nccl" in " ".join(shown.split())


def test_verbose_adds_tables_and_keeps_long_lines_whole(make_case: MakeCase) -> None:
    case = make_case(3, quote="x" * 300)
    shown = printed(case, verbose=True)
    words = " ".join(shown.split())
    for title in ("Hosts", "Environment that differs", "Benchmarks", "Read"):
        assert f"\n{title}\n" in shown
    assert "NCCL_IB_HCA mlx5 gpu[001-002] (2 processes)" in words
    assert "NCCL_IB_HCA mlx5_0 gpu003 (1 process)" in words
    assert shown.count("x") > 600
    assert printed(case).count("x") < 300


def test_many_findings_are_counted_not_shown(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2)
    root, echo, warning = postmortem.findings
    many = replace(postmortem, findings=[root] * 6 + [echo] * 5 + [warning] * 5)
    shown = printed((many, evidence))
    assert "and 3 more roots: see --verbose" in shown
    assert shown.split().count("CONSEQUENCES") == shown.split().count("WARNINGS") == 1
    assert " ".join(shown.split()).count("and 1 more: see --verbose") == 2
    assert "see --verbose" not in printed((many, evidence), verbose=True)


def test_nothing_from_a_log_is_markup_or_moves_the_cursor(make_case: MakeCase) -> None:
    shown = printed(make_case(2, quote="[red]\x1b[2J\x07\u202e:smile:"), verbose=True)
    assert r"[red]\x1b[2J\x07\u202e:smile:" in shown
    assert "\x1b" not in shown


def test_colours_are_for_terminals_only(make_case: MakeCase) -> None:
    case = make_case(2)
    assert "\x1b[" not in printed(case)
    assert "\x1b[1;31m" in printed(case, terminal=True)
    assert "\x1b[1;31m" not in printed(case, terminal=True, no_color=True)


def test_a_job_that_is_well_says_so_and_names_its_warnings(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2)
    warnings = [one for one in postmortem.findings if one.role is Role.WARNING]
    well = replace(
        postmortem, verdict=PostmortemVerdict.OK, findings=warnings, isolate=[], story=[]
    )
    lines = printed((well, evidence)).splitlines()
    assert lines[0] == "OK  nothing failed in what was read, 1 warning"
    assert not any(line.startswith("isolate") for line in lines)


def test_what_was_measured_is_told(make_case: MakeCase) -> None:
    words = " ".join(printed(make_case(2)).split())
    assert "measured all_reduce_perf on 16 ranks, average 12.35 GB/s, not finished" in words


@pytest.mark.parametrize(
    ("suspects", "words"),
    [
        ([("application", "the program"), ("rank", "5")], "rank 5, the application"),
        ([("application", "MemoryError")], "the application (MemoryError)"),
        ([("config", "NCCL_ALGO"), ("application", "NCCL_ALGO")],
         "setting NCCL_ALGO, the application"),
        ([("config", "GPU memory"), ("config", "gpu-4")], "GPU memory on gpu-4"),
        ([("config", "gpu-4")], "settings on gpu-4"),
        ([("config", "gpu-9"), ("config", "scheduler")], "host gpu-9, scheduler"),
        ([("config", "--shm-size")], "setting --shm-size"),
        ([("config", "the network between them")], "the network between them"),
        ([("host", f"n{number}") for number in (3, 1, 2)], "hosts n[1-3]"),
        ([("rank", f"{number}") for number in range(11)],
         "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 3 more"),
    ],
)  # fmt: skip
def test_suspects_are_named_in_words(suspects: list[tuple[str, str]], words: str) -> None:
    them = [Suspect(kind=SuspectKind(kind), name=name) for kind, name in suspects]
    assert describe.suspects(them, ["gpu-4"], ["gpu-9"]) == words


@pytest.mark.parametrize(
    ("class_", "attributes", "suspects", "command"),
    [
        # Whose settings are suspected is a host as well.
        (FindingClass.TOPOLOGY_ERROR, {}, [("config", "gpu-4")], "ssh gpu-4 nvidia-smi topo -m"),
        (FindingClass.GSP_TIMEOUT, {}, [("gpu", "0000:9b:00")], "ssh gpu-4 nvidia-smi"),
        (FindingClass.IB_COMPLETION_ERROR, {"status": "4"}, [("host", "gpu-4")], "ssh gpu-4 'dm"),
        (FindingClass.IB_COMPLETION_ERROR, {"status": "10"}, [("host", "n9")], "ssh n9 'dmesg"),
        (FindingClass.IB_COMPLETION_ERROR, {"status": "12"}, [("host", "n9")],
         "ncdiag sweep --nodes gpu-4,n9"),
    ],
)  # fmt: skip
def test_the_next_command_fits_the_case(
    make_case: MakeCase,
    class_: FindingClass,
    attributes: dict[str, str],
    suspects: list[tuple[str, str]],
    command: str,
) -> None:
    them = tuple(Suspect(kind=SuspectKind(kind), name=name) for kind, name in suspects)
    one = make_case(2)[0].findings[0]
    finding = replace(one, class_=class_, attributes=attributes, suspects=them, victims=())
    assert describe.next_command(finding, hosts=["gpu-4"]).startswith(command)


def test_a_percentage_is_never_parted_from_its_sign(make_case: MakeCase) -> None:
    for width in range(40, 100):
        lines = printed(make_case(2), width=width).splitlines()
        assert not any(line.lstrip().startswith("%") for line in lines)


def test_a_log_of_something_else_is_not_healthy() -> None:
    from ncdiag.diagnose.postmortem import diagnose

    evidence = LogEvidence(inputs=[InputSummary(path="web.log", bytes=10, lines=2)])
    nothing = replace(
        diagnose(evidence), verdict=PostmortemVerdict.INCONCLUSIVE, findings=[], story=[]
    )
    line = printed((nothing, evidence)).splitlines()[0]
    assert line.startswith("INCONCLUSIVE  nothing of NCCL")


def test_a_command_is_never_made_of_what_a_shell_would_run(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2)
    root = postmortem.findings[0]
    evil = replace(root.suspects[0], name="$(reboot)")
    shown = printed(
        (replace(postmortem, findings=[replace(root, suspects=[evil])]), evidence)
    ).splitlines()
    assert "next      ssh HOST ibstat" in shown


def test_who_is_isolated_is_nobodys_victim(make_case: MakeCase) -> None:
    postmortem, _ = make_case(2)
    finding = replace(postmortem.findings[1], victims=("gpu001", "gpu002"))
    assert [one.host for one in postmortem.isolate] == ["gpu002"]
    assert describe.victims(finding, postmortem) == ["gpu001"]


@pytest.mark.parametrize(
    ("printed_so", "shown"),
    [
        ("1018 04:12:20.830000", "04:12:20"),
        ("2024-09-03_11:47:02", "2024-09-03 11:47:02"),
        ("12.5", "12.5"),
    ],
)
def test_a_time_is_shown_without_what_is_odd_of_it(
    make_case: MakeCase, printed_so: str, shown: str
) -> None:
    seen = FirstSeen(path="a.log", line=1, time=printed_so)
    assert describe.first_time(replace(make_case(2)[0].findings[0], first_seen=seen)) == shown
