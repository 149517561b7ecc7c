"""Conclusions from the records of logs: what failed first, why, and whom to isolate."""
