"""Options that only some launchers or engines mind, given with another."""

from collections.abc import Iterator, Mapping
from typing import Final

import typer
from rich.console import Console

from ncdiag.cli.options import is_given
from ncdiag.cluster.launchers import AUTO, LAUNCHERS
from ncdiag.model.errors import UsageError

_SLURM: Final = ("slurm",)
_KUBERNETES: Final = ("kubernetes",)
_LAUNCHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "ssh_option": ("ssh", "hydra", "openmpi"),
    "partition": _SLURM,
    "account": _SLURM,
    "time": _SLURM,
    "srun_arg": _SLURM,
    "container_image": _SLURM,
    "selector": _KUBERNETES,
    "namespace": _KUBERNETES,
    "kube_context": _KUBERNETES,
    "container": _KUBERNETES,
}
_ENGINES: Final[Mapping[str, tuple[str, ...]]] = {
    "nccl_tests_dir": ("nccl-tests",),
    "pair_test": ("nccl-tests",),
    "perftest": ("perftest",),
    "at_a_time": ("nccl-tests", "perftest"),
}
# Without these something else would be measured than what was meant.
_DECISIVE: Final = frozenset({"selector", "container_image", "pair_test", "perftest"})


def refuse(context: typer.Context, launcher: str, engine: str) -> None:
    """Refuse options that say what is measured, but to another launcher or engine.

    Names that are unknown, and ``auto``, are not minded. Raises :class:`UsageError`.
    """
    chosen = launcher if launcher in LAUNCHERS else AUTO
    for kind, name, ours in (("launcher", chosen, _LAUNCHERS), ("engine", engine, _ENGINES)):
        for parameter, option in _given(context, name, ours):
            if parameter in _DECISIVE and name != AUTO:
                needed = ours[parameter][0]
                raise UsageError(
                    f"{option} is for the {kind} {needed}, and this is {name}: "
                    f"give --{kind} {needed}, or leave {option} out"
                )


def tell(context: typer.Context, launcher: str, engine: str, messages: Console) -> None:
    """Say which options have no use; as :func:`refuse` for those that decide what is measured."""
    refuse(context, launcher, engine)
    for kind, name, ours in (("launcher", launcher, _LAUNCHERS), ("engine", engine, _ENGINES)):
        if unused := [option for _, option in _given(context, name, ours)]:
            messages.print(f"not used by the {kind} {name}: {', '.join(unused)}", soft_wrap=True)


def _given(
    context: typer.Context, name: str, ours: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, str]]:
    """The parameters, with their options, that were given and that ``name`` does not mind."""
    for parameter in context.command.params:
        called = parameter.name or ""
        if called in ours and name not in ours[called] and is_given(context, called):
            yield called, parameter.opts[0]
