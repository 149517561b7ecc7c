"""Has NCCL write the topology of this host: run as a program of its own, on a host with GPUs.

One process brings up a communicator over all its GPUs, since a dump holds only what leads to GPUs
that take part. The file is the one that ``NCCL_TOPO_DUMP_FILE`` names.
"""

import os
import sys

from ncdiag.cluster.die_with_parent import be_killed_with_parent


def main() -> None:
    """Exits with a line on stderr where there is nothing to bring up."""
    parent = os.getppid()
    be_killed_with_parent()
    if os.getppid() != parent:
        sys.exit("the process that wanted the dump is gone")
    import torch

    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    devices = range(torch.cuda.device_count())
    from torch.cuda import nccl

    ones = [torch.ones(1, device=f"cuda:{device}") for device in devices]
    nccl.all_reduce(ones)  # type: ignore[no-untyped-call] # PyTorch leaves it out
    for device in devices:
        torch.cuda.synchronize(device)
    os._exit(0)  # NCCL's threads may hang at the end, and the dump is written


if __name__ == "__main__":
    main()
