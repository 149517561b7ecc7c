"""A cluster on one machine: network namespaces as hosts, for trying and testing ncdiag."""
