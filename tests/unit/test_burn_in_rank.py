"""What a measuring process does for a burn-in on a CPU, in this very process."""

import platform
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'ncdiag[torch]'")

import torch

from ncdiag.measure.burn_in import local
from ncdiag.measure.burn_in.messages import (
    LocalFigure,
    LocalFigures,
    LocalTest,
    StepTimes,
    TrainSteps,
)
from ncdiag.measure.burn_in.rank import BurnInRank
from ncdiag.measure.engines.torch.messages import Backend

STEPS = TrainSteps(steps=4, matrix=32, multiplications=2, size_bytes=4096, alone=True)


def test_a_cpu_has_figures_of_arithmetic_and_memory() -> None:
    found = BurnInRank(Backend.GLOO).answer(LocalTest(seconds=0.01))
    assert isinstance(found, LocalFigures)
    assert found.wrong == 0
    assert [one.name for one in found.figures] == ["gemm_tflop_per_s", "memory_gb_per_s"]
    assert all(one.value > 0 for one in found.figures)


def test_a_cpu_says_what_it_is(tmp_path: Path) -> None:
    cpu = torch.device("cpu")
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Fast CPU 9000\nprocessor\t: 1\n")
    assert local._model(cpu, info) == "Fast CPU 9000"
    assert local._model(cpu, tmp_path / "none") == platform.machine()


def test_all_peers_of_a_gpu_take_the_time_of_one_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str | None, float]] = []

    def copy(
        name: str, _from: object, _to: object, seconds: float, component: str | None
    ) -> tuple[LocalFigure, int]:
        asked.append((component, seconds))
        return LocalFigure(name, 1.0, component), 0

    monkeypatch.setattr(local, "_copy", copy)
    monkeypatch.setattr(local, "_multiply", lambda *_: (LocalFigure("gemm", 1.0, "gpu2"), 0))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "can_device_access_peer", lambda *_: True)
    assert len(list(local._measure(torch.device("cuda", 2), 1.0))) == 11
    peers = [seconds for component, seconds in asked if component and "->" in component]
    assert sum(peers) == pytest.approx(1.0)
    assert [one for one, _ in asked[3:5]] == ["gpu2->gpu0", "gpu2->gpu1"]


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
