"""What a measuring process is asked for by a burn-in, besides pairs and collectives."""

import msgspec


class LocalTest(msgspec.Struct, frozen=True, tag="local-test"):
    """Measure what needs no network, each figure for ``seconds``; ``gpu`` is ``None`` on CPUs."""

    seconds: float
    gpu: int | None = None


class LocalFigure(msgspec.Struct, frozen=True):
    """One figure: its name with unit, and what it is of (``gpu0``, ``gpu0->gpu1``)."""

    name: str
    value: float
    component: str | None = None


class LocalFigures(msgspec.Struct, frozen=True):
    """What came of a test; ``wrong`` counts numbers that are not what they must be.

    ``device`` is the model of the GPU or CPU: only figures of one model compare with each other.
    """

    error: str | None = None
    figures: tuple[LocalFigure, ...] = ()
    wrong: int = 0
    device: str = ""


class TrainSteps(msgspec.Struct, frozen=True, tag="train-steps"):
    """Compute and reduce in turns, ``steps`` times after ``warmup``; ``alone`` without others.

    A step multiplies square matrices of ``matrix`` rows so many times, then reduces ``size_bytes``.
    """

    steps: int
    matrix: int
    multiplications: int
    size_bytes: int
    warmup: int = 1
    alone: bool = False


class StepTimes(msgspec.Struct, frozen=True):
    """The seconds of each step, computing and reducing; ``wrong`` as in :class:`LocalFigures`."""

    error: str | None = None
    compute_s: tuple[float, ...] = ()
    reduce_s: tuple[float, ...] = ()
    wrong: int = 0
