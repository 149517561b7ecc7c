"""The health of a host or a fleet, for people, for programs and for monitoring."""
