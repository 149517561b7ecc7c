"""The table of health checks: each trips on what it is for, and on nothing else."""

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest
from ailing_hosts import AILMENTS, missing
from gpu_hosts import cloud_vm, earlier, gpu_host, other, readings

from ncdiag.health.checks import CHECKS, check_host, failed_host
from ncdiag.health.checks.check import Scope
from ncdiag.health.checks.document import document_checks
from ncdiag.health.checks.limits import Limits, limit_rows
from ncdiag.health.sources.table import SOURCES
from ncdiag.model.health import HealthFacts, HostFitness, HostHealth, Severity, Source, SourceState

_OF_ONE_HOST = [check.id for check in CHECKS.values() if check.scope is Scope.HOST]


def _judged(check: str, facts: HealthFacts) -> HostHealth:
    ailment = AILMENTS[check]
    return check_host("gpu001", facts, before=earlier(ailment.before), expected=ailment.expected)


def test_every_check_of_one_host_has_its_fixtures() -> None:
    assert list(AILMENTS) == _OF_ONE_HOST


@pytest.mark.parametrize("check", _OF_ONE_HOST)
def test_a_check_trips_on_what_it_is_for(check: str) -> None:
    host = _judged(check, AILMENTS[check].trips)
    [*findings] = [one for one in host.findings if one.check == check]
    assert findings
    assert {one.device for one in findings} == {AILMENTS[check].device} or not AILMENTS[
        check
    ].device
    assert check not in host.passed
    row = CHECKS[check]
    for finding in findings:
        assert finding.text
        assert finding.next == row.fix
        assert list(Severity).index(finding.severity) <= list(Severity).index(row.severity)
        assert finding.configuration is row.configuration


@pytest.mark.parametrize("check", _OF_ONE_HOST)
def test_a_check_does_not_trip_on_what_only_comes_near(check: str) -> None:
    host = _judged(check, AILMENTS[check].fine)
    assert check not in {one.check for one in host.findings}


@pytest.mark.parametrize("check", _OF_ONE_HOST)
def test_a_check_without_its_source_finds_nothing_and_is_not_known(check: str) -> None:
    host = _judged(check, missing(check))
    assert check not in {one.check for one in host.findings}
    assert check not in host.passed
    [reason] = [one.reason for one in host.not_known if one.check == check]
    assert reason


@pytest.mark.parametrize("check", [one for one in _OF_ONE_HOST if CHECKS[one].sources])
def test_a_check_whose_sources_may_not_be_read_says_so(check: str) -> None:
    facts = replace(missing(check), sources=readings(SourceState.DENIED))
    host = _judged(check, facts)
    assert {one.check for one in host.findings} == {"source_denied"}
    [reason] = [one.reason for one in host.not_known if one.check == check]
    assert "denied" in reason


def test_a_healthy_host_passes_every_check_and_has_no_finding() -> None:
    host = check_host("gpu001", gpu_host(), before=earlier(gpu_host()))
    assert host.findings == ()
    assert host.fitness is HostFitness.HEALTHY
    # The hosts file names no interface, and the kernel log tells more than DCGM.
    assert {one.check for one in host.not_known} == {"ethernet_port_down", "last_xid"}
    assert len(host.passed) + len(host.not_known) == len(_OF_ONE_HOST)


def test_a_virtual_machine_without_gpus_is_not_at_fault() -> None:
    host = check_host("vm", cloud_vm(), before=earlier(cloud_vm()))
    assert {one.check for one in host.findings} == {"clock_unsynchronized", "file_limit"}
    assert host.fitness is HostFitness.WARNING
    well = cloud_vm(clock=None, limits={})
    assert check_host("vm", well).fitness is HostFitness.HEALTHY


def test_nothing_read_is_unknown_and_never_healthy() -> None:
    for sources in ((), readings(SourceState.TIMED_OUT), readings(SourceState.ABSENT)):
        facts = HealthFacts(hostname="a", taken_s=0.0, sources=sources)
        assert check_host("a", facts).fitness is HostFitness.UNKNOWN
    assert failed_host("a", "no\x1b route").error == "no\\x1b route"
    assert failed_host("a", "no route").fitness is HostFitness.UNKNOWN


def test_findings_have_the_worst_first_and_make_the_fitness() -> None:
    facts = AILMENTS["gpu_missing"].trips
    facts = replace(facts, clock=None, limits={"nofile": 2000}, settings={"iommu": "on"})
    host = check_host("gpu001", facts)
    severities = [list(Severity).index(one.severity) for one in host.findings]
    assert severities == sorted(severities, reverse=True)
    assert host.fitness is HostFitness.FATAL


def test_only_notes_leave_a_host_healthy() -> None:
    host = check_host("gpu001", gpu_host(limits={"nofile": 2000}))
    assert [one.severity for one in host.findings] == [Severity.NOTE]
    assert host.fitness is HostFitness.HEALTHY


def test_one_source_that_hangs_does_not_hide_the_rest() -> None:
    facts = replace(
        AILMENTS["gpu_temperature"].trips, sources=other(Source.NVIDIA_SMI, SourceState.TIMED_OUT)
    )
    found = {one.check for one in check_host("gpu001", facts).findings}
    assert found == {"hung_program", "gpu_temperature"}


def test_a_source_that_was_cut_off_accuses_and_does_not_acquit() -> None:
    sources = other(Source.KERNEL_LOG, SourceState.TIMED_OUT)
    told = replace(AILMENTS["kernel_gsp_timeout"].trips, sources=sources)
    assert "kernel_gsp_timeout" in {one.check for one in check_host("a", told).findings}
    silent = check_host("a", replace(gpu_host(), sources=sources))
    assert "kernel_gsp_timeout" in {one.check for one in silent.not_known}


def test_ids_are_unique_and_words_fit_a_terminal() -> None:
    for name, check in CHECKS.items():
        assert name == check.id
        assert len(name) <= 32
        assert len(check.title) <= 40
        assert check.meaning.endswith(".")
        assert check.fix
        assert set(check.sources) | set(check.also) <= set(SOURCES)


def test_every_limit_has_a_unit_and_a_source() -> None:
    rows = limit_rows(Limits())
    assert [row.name for row in rows] == [one.name for one in dataclasses.fields(Limits)]
    assert all(row.unit and row.source and row.value > 0 for row in rows)


def test_every_limit_is_used() -> None:
    package = Path(__file__).parents[2] / "ncdiag" / "health" / "checks"
    rules = "".join(file.read_text() for file in package.glob("*.py") if file.stem != "limits")
    unused = [row.name for row in limit_rows(Limits()) if f".{row.name}" not in rules]
    assert unused == []


def test_the_manual_has_every_check() -> None:
    page = Path(__file__).parents[2] / "docs" / "health-checks.md"
    assert page.read_text() == document_checks()
