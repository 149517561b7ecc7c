"""Reports of NCCL's RAS subsystem: text, JSON, streams of events, and the client's protocol."""
