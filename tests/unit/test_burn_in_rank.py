"""What a measuring process does for a burn-in on a CPU, in this very process."""

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'ncdiag[torch]'")

import torch

from ncdiag.measure.burn_in import local
from ncdiag.measure.burn_in.messages import LocalFigures, LocalTest, StepTimes, TrainSteps
from ncdiag.measure.burn_in.rank import BurnInRank
from ncdiag.measure.engines.torch.messages import Backend

STEPS = TrainSteps(steps=4, matrix=32, multiplications=2, size_bytes=4096, alone=True)


def test_a_cpu_has_figures_of_arithmetic_and_memory() -> None:
    found = BurnInRank(Backend.GLOO).answer(LocalTest(seconds=0.01))
    assert isinstance(found, LocalFigures)
    assert found.wrong == 0
    assert [one.name for one in found.figures] == ["gemm_tflop_per_s", "memory_gb_per_s"]
    assert all(one.value > 0 for one in found.figures)


def test_wrong_numbers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.mm
    calls = []

    def mm(left: torch.Tensor, other: torch.Tensor, **more: torch.Tensor) -> torch.Tensor:
        product = right(left, other, **more)
        calls.append(1)
        if len(calls) > 1:
            product[0, 0] += 1
        return product

    monkeypatch.setattr(local.torch, "mm", mm)
    found = local.test_here(LocalTest(seconds=0.0))
    assert found.wrong > 0


def test_steps_alone_are_timed_and_their_numbers_right() -> None:
    found = BurnInRank(Backend.GLOO).answer(STEPS)
    assert isinstance(found, StepTimes)
    assert (len(found.compute_s), len(found.reduce_s), found.wrong) == (4, 4, 0)


def test_what_a_request_fails_of_is_told() -> None:
    found = BurnInRank(Backend.GLOO).answer(LocalTest(seconds=0.01, gpu=99))
    assert getattr(found, "error", None)
