"""The engine that measures with perftest: ib_write_bw and its like, over RDMA alone."""
