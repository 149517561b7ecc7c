"""The engine that measures each pair of hosts with a program of nccl-tests over two ranks."""
