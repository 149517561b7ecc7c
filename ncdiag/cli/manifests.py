"""``ncdiag manifests``: Kubernetes manifests that run ncdiag."""

from enum import StrEnum
from typing import Annotated

import typer

from ncdiag.cli import console
from ncdiag.cli.options.parsing import as_parameter, parse_duration_above_zero_s
from ncdiag.model.errors import ExitCode, UsageError

_PODS = "The pods"
_SWEEP = "The sweep"


class Kind(StrEnum):
    """What a manifest is of."""

    JOB = "job"
    MPIJOB = "mpijob"
    VOLCANO = "volcano"
    DAEMONSET = "daemonset"


def manifests(
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND",
            show_default=False,
            help="An indexed Job, an MPIJob (Kubeflow), a Job of Volcano, each of which measures "
            "once; or a DaemonSet of idle pods, for sweeps from outside by --selector.",
        ),
    ],
    sweep_arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- SWEEP OPTIONS]",
            show_default=False,
            help="Passed on to ncdiag sweep, such as -- --engine nccl-tests.",
        ),
    ] = None,
    *,
    image: Annotated[
        str,
        typer.Option("--image", metavar="IMAGE", rich_help_panel=_PODS, help="It has ncdiag."),
    ],
    name: Annotated[
        str,
        typer.Option(
            "--name", metavar="NAME", rich_help_panel=_PODS, help="Of all that is made, and label."
        ),
    ] = "ncdiag",
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", metavar="NAME", rich_help_panel=_PODS, help="Where it is made."
        ),
    ] = None,
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes",
            metavar="N",
            min=2,
            max=10_000,
            rich_help_panel=_PODS,
            help="How many are measured; a DaemonSet is on all that --node-selector leaves.",
        ),
    ] = 2,
    gpus_per_node: Annotated[
        int,
        typer.Option(
            "--gpus-per-node",
            metavar="N",
            min=0,
            max=64,
            rich_help_panel=_PODS,
            help="All of a node's, so that nothing else runs there; 0 asks for none.",
        ),
    ] = 8,
    rdma_resource: Annotated[
        list[str],
        typer.Option(
            "--rdma-resource",
            metavar="NAME[=N]",
            rich_help_panel=_PODS,
            help="RDMA devices as the node names them: rdma/hca_shared_devices_a. Repeatable.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    node_selector: Annotated[
        list[str],
        typer.Option(
            "--node-selector",
            metavar="KEY=VALUE",
            rich_help_panel=_PODS,
            help="A label that nodes must have. Repeatable.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    shm_size: Annotated[
        str,
        typer.Option(
            "--shm-size", metavar="SIZE", rich_help_panel=_PODS, help="Of /dev/shm: 512Mi, 16Gi."
        ),
    ] = "16Gi",
    host_network: Annotated[
        bool,
        typer.Option(
            "--host-network", rich_help_panel=_PODS, help="Use the node's own network interfaces."
        ),
    ] = False,
    results_claim: Annotated[
        str | None,
        typer.Option(
            "--results-claim",
            metavar="NAME",
            rich_help_panel=_SWEEP,
            help="A PersistentVolumeClaim to keep the report in; else only the log is left.",
        ),
    ] = None,
    deadline: Annotated[
        float,
        typer.Option(
            "--deadline",
            metavar="DURATION",
            parser=as_parameter(parse_duration_above_zero_s),
            show_default=False,
            rich_help_panel=_SWEEP,
            help="When Kubernetes ends a job or mpijob (default: 1h).",
        ),
    ] = 3600.0,
) -> ExitCode:
    """Print a Kubernetes manifest that runs ncdiag, ready for kubectl apply -f -.

    One pod a node, with its GPUs and RDMA devices, memory for NCCL in /dev/shm, and the right to
    lock memory. Nothing is applied.
    """
    from ncdiag.report.manifests import Wishes, render

    if kind is Kind.DAEMONSET and (sweep_arguments or results_claim):
        raise UsageError(
            "a daemonset only idles: give --results-claim and options of the sweep to job, mpijob "
            "or volcano"
        )
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
    console.write(render(kind.value, wishes).encode())
    return ExitCode.DONE
