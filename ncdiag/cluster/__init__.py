"""Hosts as a cluster: who they are, how to reach them, and the fleet of workers on them."""
