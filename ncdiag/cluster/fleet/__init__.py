"""The fleet: one worker on each host, and the driver that gives them work."""
