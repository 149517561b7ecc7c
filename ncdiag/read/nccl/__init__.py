"""NCCL's and RCCL's own log lines: what each process says of itself."""
