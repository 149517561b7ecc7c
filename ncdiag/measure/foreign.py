"""Settings of some job that stand in the environment: they would change what is measured."""

from collections.abc import Mapping
from typing import Final

_PREFIXES: Final = ("NCCL_", "CUDA_VISIBLE", "CUDA_DEVICE_ORDER")


def without_foreign(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without them, for a program of nccl-tests."""
    return {name: value for name, value in environment.items() if not name.startswith(_PREFIXES)}
