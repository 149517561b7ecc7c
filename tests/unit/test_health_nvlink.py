"""NVLinks: which are accused, and which are down by design."""

from typing import Any

from gpu_hosts import (
    earlier,
    gpu,
    gpu_host,
    with_gpu,
)
from health_weighing import FAULT, WARNING, severity

from ncdiag.model.gpu_parts import NvlinkFacts
from ncdiag.model.health import HealthFacts


def links(active: set[int], number: int = 12, **errors: int) -> tuple[NvlinkFacts, ...]:
    """Links of which some are up."""
    return tuple(
        NvlinkFacts(link=link, active=link in active, errors=errors) for link in range(number)
    )


def cards(*active: set[int], **changes: Any) -> HealthFacts:
    """A host with PCIe cards and no switch."""
    gpus = tuple(
        gpu(index, name="NVIDIA A100-PCIE-40GB", nvlinks=links(up), fabric_state=None)
        for index, up in enumerate(active)
    )
    return gpu_host(gpus=gpus, pci_devices=(), **changes)


def test_cards_without_nvlink_or_without_a_bridge_are_not_accused() -> None:
    every = set(range(12))
    assert severity("nvlink_down", cards(set(), set(), set(), set())) is None
    assert severity("nvlink_down", cards(every, every, set(), set())) is None
    assert severity("nvlink_down", cards(*[every] * 6, set(), set())) is None
    assert severity("nvlink_down", gpu_host(gpus=(gpu(nvlinks=()),))) is None


def test_links_that_are_unused_on_every_gpu_are_not_accused() -> None:
    assert severity("nvlink_down", cards(*[{0, 1, 2, 3}] * 4)) is None


def test_one_link_down_among_peers_is_a_fault() -> None:
    every = set(range(12))
    assert severity("nvlink_down", cards(*[every] * 7, every - {4})) is FAULT


def test_a_link_that_was_up_before_is_a_fault_also_without_peers() -> None:
    before = earlier(cards({0, 1, 2}))
    assert severity("nvlink_down", cards({0, 1}), before=before) is FAULT


def test_all_links_down_on_a_board_with_switches_are_a_fault_and_after_a_boot_a_warning() -> None:
    gpus = tuple(gpu(index, nvlinks=links(set())) for index in range(8))
    assert severity("nvlink_down", gpu_host(gpus=gpus)) is FAULT
    assert severity("nvlink_down", gpu_host(gpus=gpus, uptime_s=60.0)) is WARNING


def test_split_gpus_have_no_nvlinks_by_design() -> None:
    gpus = tuple(gpu(index, nvlinks=links(set()), mig_mode=True) for index in range(8))
    assert severity("nvlink_down", gpu_host(gpus=gpus)) is None


def test_nvlink_errors_warn_when_old_and_are_a_fault_when_they_rise() -> None:
    facts = with_gpu(nvlinks=links({0}, replay=7))
    assert severity("nvlink_errors", facts) is WARNING
    assert severity("nvlink_errors", facts, before=earlier(facts)) is WARNING
    before = earlier(with_gpu(nvlinks=links({0}, replay=6)))
    assert severity("nvlink_errors", facts, before=before) is FAULT
