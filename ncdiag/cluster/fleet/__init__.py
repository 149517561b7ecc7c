"""The fleet: one Dask worker on each host, and the driver that gives them work."""

from ncdiag.cluster.fleet.calls import Call, CallError, CallFailed, CallTimeout, HostLost
from ncdiag.cluster.fleet.companion import CompanionFailed, CompanionSpec, companions
from ncdiag.cluster.fleet.fleet import Fleet
from ncdiag.cluster.fleet.options import FleetOptions

__all__ = [
    "Call",
    "CallError",
    "CallFailed",
    "CallTimeout",
    "CompanionFailed",
    "CompanionSpec",
    "Fleet",
    "FleetOptions",
    "HostLost",
    "companions",
]
