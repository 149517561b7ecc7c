"""Stands in for a program that uses NCCL: prints what NCCL prints of what is in its environment.

fake_nccl.py [--rank N --ranks N --host NAME] [--version 2.21.5]; rank and size come from the
launcher (Hydra's PMI_*, Slurm's SLURM_*) where they are not given.
"""

import argparse
import os
import re
import sys
from collections.abc import Mapping

# What is read as text, and the form in which that is told.
TEXTS = {
    "NCCL_ALGO": "{} set by environment to {}",
    "NCCL_NET": "{} set by environment to {}",
    "NCCL_PROTO": "{} set by environment to {}",
    "NCCL_SOCKET_IFNAME": "{} set by environment to {}",
    "NCCL_P2P_LEVEL": "{} set by environment to {}",
    "NCCL_IB_HCA": "{} set to {}",
}
# What is read as a number, with the default that takes the place of what is none.
NUMBERS = {
    "NCCL_BUFFSIZE": -2, "NCCL_COLLNET_ENABLE": 0, "NCCL_CUMEM_ENABLE": -2,
    "NCCL_IB_ADAPTIVE_ROUTING": -2, "NCCL_IB_DISABLE": 0, "NCCL_IB_PCI_RELAXED_ORDERING": 2,
    "NCCL_IB_QPS_PER_CONNECTION": 1, "NCCL_IB_ROCE_VERSION_NUM": 2, "NCCL_IB_SPLIT_DATA_ON_QPS": 0,
    "NCCL_IB_TC": -1, "NCCL_IB_TIMEOUT": 20, "NCCL_MNNVL_ENABLE": 2, "NCCL_NET_GDR_C2C": 0,
    "NCCL_NSOCKS_PERTHREAD": -2, "NCCL_NVLS_ENABLE": 2, "NCCL_P2P_DISABLE": -2,
    "NCCL_P2P_NET_CHUNKSIZE": 131072, "NCCL_PXN_DISABLE": 0, "NCCL_SHM_DISABLE": 0,
    "NCCL_SOCKET_NTHREADS": -2,
}  # fmt: skip
NUMBER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")


def told(environment: Mapping[str, str]) -> list[str]:
    """The lines about variables, as the library would print them."""
    lines = [
        form.format(name, environment[name]) for name, form in TEXTS.items() if name in environment
    ]
    for name, default in NUMBERS.items():
        value = environment.get(name)
        if not value:
            continue
        found = NUMBER.match(value)
        number = int(found[2], 8 if re.fullmatch(r"0[0-7]+", found[2]) else 0) if found else None
        if number is None or number >= 2**63:
            lines.append(f"Invalid value {value} for {name}, using default {default}.")
        else:
            lines.append(f"{name} set by environment to {found[1].strip('+')}{number}.")
    return lines


def main() -> None:
    """Print the log of one rank."""
    parser = argparse.ArgumentParser()
    first = ("PMI_RANK", "SLURM_PROCID")
    size = ("PMI_SIZE", "SLURM_NTASKS")
    parser.add_argument("--rank", type=int, default=found(first, 0))
    parser.add_argument("--ranks", type=int, default=found(size, 1))
    parser.add_argument("--host", default="gpu1")
    parser.add_argument("--version", default="2.27.3")
    given = parser.parse_args()
    sys.stdout.write(log(os.environ, given.rank, given.ranks, given.host, given.version))


def log(environment: Mapping[str, str], rank: int, ranks: int, host: str, version: str) -> str:
    """What a rank with this environment prints."""
    level = environment.get("NCCL_DEBUG", "").upper()
    pid = 4000 + rank
    prefix = f"{host}:{pid}:{pid} [{rank}] NCCL INFO "
    lines = []
    if level in {"VERSION", "WARN", "INFO"} and rank == 0:
        lines.append(f"NCCL version {version}+cuda12.4")
    if level == "INFO":
        comm = f"comm 0x55d0aa{rank:04x} rank {rank} nranks {ranks} cudaDev 0"
        init = f"ncclCommInitRank {comm} nvmlDev 0 busId 1b000 commId 0xabc123"
        lines += [f"{prefix}{init} - Init START"]
        lines += [f"{prefix}{line}" for line in told(environment)]
        lines += [f"{prefix}{init} - Init COMPLETE"]
        following = (rank + 1) % ranks
        lines += [f"{prefix}Channel 00/0 : {rank}[0] -> {following}[0] [send] via NET/IB/0/GDRDMA"]
        lines += [f"{prefix}Connected all rings, use ring PXN 0 GDR 1"]
    return "".join(f"{line}\n" for line in lines)


def found(names: tuple[str, ...], default: int) -> int:
    """The number that a launcher gives under one of ``names``."""
    return next((int(os.environ[name]) for name in names if name in os.environ), default)


if __name__ == "__main__":
    main()
