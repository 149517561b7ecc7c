"""The engine that measures with torch.distributed: NCCL between GPUs, gloo without them."""
