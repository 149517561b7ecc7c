"""``ncdiag manifests``: Kubernetes manifests that run ncdiag."""

from collections.abc import Sequence
from typing import Annotated, cast

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException
from typer.main import get_command

from ncdiag.cli import console
from ncdiag.cli.commands import MARKUP
from ncdiag.cli.options.measuring import is_given
from ncdiag.cli.options.parsing import as_parameter, parse_duration_above_zero_s
from ncdiag.model.errors import ExitCode, UsageError
from ncdiag.model.text import visible
from ncdiag.report.manifests import Kind, Wishes, render

_PODS = "The pods"
_SWEEP = "The sweep"
# Parameters that say something of pods which measure once and end.
_NOT_OF_IDLE_PODS = ("sweep_arguments", "nodes", "results_claim", "deadline")


KindArgument = Annotated[
    Kind,
    typer.Argument(
        metavar="KIND",
        show_default=False,
        help="job (an indexed Job), mpijob (of Kubeflow) or volcano (a Job of Volcano), each of "
        "which measures once; or daemonset: idle pods, for sweeps from outside by --selector.",
    ),
]
SweepArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- SWEEP OPTIONS]",
        show_default=False,
        help="Passed on to ncdiag sweep, such as -- --mode quick.",
    ),
]
Image = Annotated[
    str, typer.Option("--image", metavar="IMAGE", rich_help_panel=_PODS, help="It has ncdiag.")
]
Name = Annotated[
    str,
    typer.Option(
        "--name", metavar="NAME", rich_help_panel=_PODS, help="Of all that is made, and label."
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", rich_help_panel=_PODS, help="Where it is made."),
]
NodeCount = Annotated[
    int,
    typer.Option(
        "--nodes",
        metavar="N",
        min=2,
        max=10_000,
        rich_help_panel=_PODS,
        help="How many are measured; a daemonset is on all that --node-selector leaves.",
    ),
]
GpusPerNode = Annotated[
    int,
    typer.Option(
        "--gpus-per-node",
        metavar="N",
        min=0,
        max=64,
        rich_help_panel=_PODS,
        help="All of a node's, so that nothing else runs there; 0 asks for none.",
    ),
]
RdmaResource = Annotated[
    list[str],
    typer.Option(
        "--rdma-resource",
        metavar="NAME[=N]",
        rich_help_panel=_PODS,
        help="RDMA devices as the node names them: rdma/hca_shared_devices_a. Repeatable.",
    ),
]
NodeSelector = Annotated[
    list[str],
    typer.Option(
        "--node-selector",
        metavar="KEY=VALUE",
        rich_help_panel=_PODS,
        help="A label that nodes must have. Repeatable.",
    ),
]
ShmSize = Annotated[
    str,
    typer.Option(
        "--shm-size", metavar="SIZE", rich_help_panel=_PODS, help="Of /dev/shm: 512Mi, 16Gi."
    ),
]
HostNetwork = Annotated[
    bool,
    typer.Option(
        "--host-network", rich_help_panel=_PODS, help="Use the node's own network interfaces."
    ),
]
ResultsClaim = Annotated[
    str | None,
    typer.Option(
        "--results-claim",
        metavar="NAME",
        rich_help_panel=_SWEEP,
        help="A PersistentVolumeClaim to keep the report in; else only the log is left.",
    ),
]
Deadline = Annotated[
    float,
    typer.Option(
        "--deadline",
        metavar="DURATION",
        parser=as_parameter(parse_duration_above_zero_s),
        show_default=False,
        rich_help_panel=_SWEEP,
        help="When Kubernetes ends a job or mpijob (default: 1h).",
    ),
]


class _Manifests(TyperCommand):
    """Says where an option of the sweep belongs."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            option = getattr(error, "option_name", None)
            known = {name for one in _sweep().params for name in one.opts}
            if option not in known:
                raise
            raise UsageError(
                f"{option} is an option of the sweep, and those stand behind --: "
                f"ncdiag manifests ... -- {option} ..."
            ) from None


app = typer.Typer(add_completion=False, rich_markup_mode=MARKUP)


@app.command("manifests", cls=_Manifests)
def manifests(
    context: typer.Context,
    kind: KindArgument,
    sweep_arguments: SweepArguments = None,
    *,
    image: Image,
    name: Name = "ncdiag",
    namespace: Namespace = None,
    nodes: NodeCount = 2,
    gpus_per_node: GpusPerNode = 8,
    rdma_resource: RdmaResource = [],  # noqa: B006 - typer copies it
    node_selector: NodeSelector = [],  # noqa: B006 - typer copies it
    shm_size: ShmSize = "16Gi",
    host_network: HostNetwork = False,
    results_claim: ResultsClaim = None,
    deadline: Deadline = 3600.0,
) -> ExitCode:
    """Print a Kubernetes manifest that runs ncdiag, ready for kubectl apply -f -.

    One pod a node, with its GPUs and RDMA devices, memory for NCCL in /dev/shm, and the right to
    lock memory. Nothing is applied.
    """
    if kind is Kind.DAEMONSET:
        _refuse_what_measures(context)
    if kind is Kind.VOLCANO and is_given(context, "deadline"):
        raise UsageError("--deadline is for a job or mpijob; a job of Volcano has none")
    wishes = Wishes(
        image=image,
        name=name,
        namespace=namespace,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        rdma_resources=tuple(rdma_resource),
        node_selector=tuple(node_selector),
        shm_size=shm_size,
        host_network=host_network,
        results_claim=results_claim,
        deadline_s=max(1, round(deadline)),
        sweep_arguments=tuple(sweep_arguments or ()),
    )
    _check_sweep(wishes.sweep_arguments)
    console.write(render(kind, wishes).encode())
    return ExitCode.DONE


def _refuse_what_measures(context: typer.Context) -> None:
    given = [
        "what stands behind --" if one.name == "sweep_arguments" else one.opts[0]
        for one in context.command.params
        if one.name in _NOT_OF_IDLE_PODS and is_given(context, one.name)
    ]
    if given:
        raise UsageError(
            f"a daemonset only idles, on every node that --node-selector leaves: "
            f"leave out {', '.join(given)}, or print a job, mpijob or volcano"
        )


def _sweep() -> TyperCommand:
    from ncdiag.cli.sweep import sweep

    one = typer.Typer(add_completion=False)
    one.command("sweep")(sweep)
    return cast("TyperCommand", get_command(one))


def _check_sweep(arguments: Sequence[str]) -> None:
    """Refuse what ``ncdiag sweep`` would refuse, there in a pod; raises :class:`UsageError`."""
    from ncdiag.measure.engines import check_engine

    try:
        with _sweep().make_context("ncdiag sweep", list(arguments)) as context:
            check_engine(context.params["engine"])
    except TyperException as error:
        message = error.format_message().strip().removesuffix(".")
        message = f"{message[:1].lower()}{message[1:]}"
        raise UsageError(f"behind --, for the sweep: {visible(message)}") from None
