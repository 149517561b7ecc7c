"""``ncdiag health``: the steps behind its options, one module each."""
