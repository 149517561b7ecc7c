"""What ``ncdiag serve`` shows besides the reports themselves: joined metrics and an index."""
