"""Options that say which hosts, and how they are reached."""

from typing import Annotated

import typer

_HOSTS = "Hosts and how to reach them"
_SLURM = "Slurm"
_KUBERNETES = "Kubernetes"

Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE|SET",
        rich_help_panel=_HOSTS,
        help="The hosts: a hosts file, else a node set such as gpu[001-128,130]; "
        "- is standard input. Inside a Slurm allocation it may be left out.",
    ),
]
Fabric = Annotated[
    str | None,
    typer.Option(
        "--fabric",
        metavar="FILE",
        rich_help_panel=_HOSTS,
        help="Where leaves and uplinks are read: ibnetdiscover, iblinkinfo, Slurm's topology.conf "
        "or topology.yaml. What the hosts file says of a host stands.",
    ),
]
Launcher = Annotated[
    str,
    typer.Option(
        "--launcher",
        metavar="NAME",
        rich_help_panel=_HOSTS,
        help="How workers are started: ssh, local (loopback addresses only), slurm, hydra, "
        "openmpi, kubernetes, or auto.",
    ),
]
SshOption = Annotated[
    list[str],
    typer.Option(
        "--ssh-option",
        metavar="OPTION",
        rich_help_panel=_HOSTS,
        help="Passed to ssh as one argument, such as -oPort=2222. Repeatable.",
    ),
]
RemotePython = Annotated[
    str | None,
    typer.Option(
        "--remote-python",
        metavar="PATH",
        rich_help_panel=_HOSTS,
        help="The Python that has ncdiag on each host (default: the path of this one).",
    ),
]
RemoteSetup = Annotated[
    str | None,
    typer.Option(
        "--remote-setup",
        metavar="FILE",
        rich_help_panel=_HOSTS,
        help="A shell file on each host, sourced before Python starts.",
    ),
]
DriverAddress = Annotated[
    str | None,
    typer.Option(
        "--driver-address",
        metavar="ADDRESS",
        rich_help_panel=_HOSTS,
        help="This machine's address as the hosts reach it (default: found by itself).",
    ),
]
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition",
        metavar="NAME",
        rich_help_panel=_SLURM,
        help="Slurm: the partition of an allocation of our own.",
    ),
]
Account = Annotated[
    str | None,
    typer.Option(
        "--account",
        metavar="NAME",
        rich_help_panel=_SLURM,
        help="Slurm: whom an allocation of our own is charged to.",
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="TIME",
        rich_help_panel=_SLURM,
        help="Slurm: the time limit of an allocation of our own, as 30 (minutes) or 1:00:00.",
    ),
]
SrunArgument = Annotated[
    list[str],
    typer.Option(
        "--srun-arg",
        metavar="ARG",
        rich_help_panel=_SLURM,
        help="Slurm: passed to srun, and to salloc where it knows it, as one argument; repeatable.",
    ),
]
ContainerImage = Annotated[
    str | None,
    typer.Option(
        "--container-image",
        metavar="IMAGE",
        rich_help_panel=_SLURM,
        help="Slurm with pyxis: the image that hosts are measured in.",
    ),
]
Selector = Annotated[
    str | None,
    typer.Option(
        "--selector",
        metavar="LABELS",
        rich_help_panel=_KUBERNETES,
        help="Kubernetes: the label selector of the pods that stand for hosts, one a node.",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        rich_help_panel=_KUBERNETES,
        help="Kubernetes: the namespace of the pods.",
    ),
]
KubeContext = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        rich_help_panel=_KUBERNETES,
        help="Kubernetes: the context of kubectl's configuration.",
    ),
]
Container = Annotated[
    str | None,
    typer.Option(
        "--container",
        metavar="NAME",
        rich_help_panel=_KUBERNETES,
        help="Kubernetes: the container within each pod.",
    ),
]
