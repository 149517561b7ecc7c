"""How Dask is set, on the driver and on the workers: it is made for other work than ours."""

from typing import Any, Final

# A worker's functions wait for companions and files most of the time: one for each of 8 rails, and
# as many for whatever else is asked.
WORKER_THREADS: Final = 16

# Once a second down the standard input of every worker; one that hears nothing for the lease ends
# itself. Inside the 15 s in which nothing may be left of a killed driver, also behind a dead link,
# and long enough for a driver that waits for the CPU.
BEAT_S: Final = 1.0
LEASE_S: Final = 8.0

SETTINGS: Final[dict[str, Any]] = {
    # Below 11 s every connection fails an assertion (its ten keep-alive probes); this is also how
    # long a connection outlives its network.
    "distributed.comm.timeouts.tcp": "12s",
    # 5 s is too short while many processes start on few cores.
    "distributed.comm.timeouts.connect": "30s",
    # A connection that failed is not tried again behind our back: the deadline is ours.
    "distributed.comm.retry.count": 0,
    # A task belongs to its host: never moved, never tried again, failed at once with its worker.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    # A host is given up after max(this, ten heartbeats) without one; the default is 5 minutes.
    "distributed.scheduler.worker-ttl": "15s",
    # Sampling all threads every 10 ms would disturb what is measured.
    "distributed.worker.profile.enabled": False,
    # NVML would be started in every worker, where it can hang with the GPU it asks.
    "distributed.diagnostics.nvml": False,
    # A plain HTTP port is opened whatever one says, so it serves nothing, on loopback.
    "distributed.worker.http.routes": [],
    "distributed.scheduler.http.routes": [],
    # Nothing is kept on workers that would have to be moved.
    "distributed.scheduler.active-memory-manager.start": False,
    # Nobody looks at either, and many workers may share a machine that measures; the defaults are
    # twice and fifty times a second.
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "2s",
    # From here on a delay of the tick is worth a warning.
    "distributed.admin.tick.limit": "30s",
}

# Where the plain HTTP port is opened, since there is no way not to have one.
DASHBOARD_ADDRESS: Final = "127.0.0.1:0"
