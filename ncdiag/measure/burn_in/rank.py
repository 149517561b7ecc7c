"""One rank of a burn-in: what it measures by itself, and the load that it shares with others."""

import time

import msgspec
import torch

from ncdiag.expect.traffic import Collective
from ncdiag.measure.bench.collectives import OPERATIONS
from ncdiag.measure.bench.messages import Request
from ncdiag.measure.bench.rank import Rank
from ncdiag.measure.burn_in.local import numbers, test_here
from ncdiag.measure.burn_in.messages import LocalTest, StepTimes, TrainSteps


class BurnInRank(Rank):
    """A rank that also measures its own host or GPU, and trains."""

    def carry_out(self, request: Request) -> msgspec.Struct:
        """Do what is asked; raises whatever torch raises."""
        match request:
            case LocalTest():
                return test_here(request)
            case TrainSteps():
                return self._train(request)
        return super().carry_out(request)

    def _train(self, asked: TrainSteps) -> StepTimes:
        """A step multiplies matrices, then reduces, as training does with its gradients."""
        place = self._place
        ranks = 1 if asked.alone else place.ranks
        operation = OPERATIONS[Collective.ALL_REDUCE](
            self._group, 0 if asked.alone else place.rank, ranks, asked.size_bytes, self._device
        )
        left, right = (numbers(asked.matrix, self._device, seed) for seed in (1, 2))
        product = left @ right
        first = product.clone()
        compute_s, reduce_s, wrong = [], [], 0
        for step in range(asked.warmup + asked.steps):
            began_s = time.perf_counter()
            for _ in range(asked.multiplications):
                torch.mm(left, right, out=product)
            self.synchronize()
            computed_s = time.perf_counter()
            operation.fill()
            if not asked.alone:
                self._once(operation)
            reduced_s = time.perf_counter()
            wrong += operation.wrong() + int((product != first).sum().item())
            if step >= asked.warmup:
                compute_s.append(computed_s - began_s)
                reduce_s.append(reduced_s - computed_s)
        return StepTimes(compute_s=tuple(compute_s), reduce_s=tuple(reduce_s), wrong=wrong)
