"""What a fleet is told when it starts, and what it tells meanwhile."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """How long a host may take to come up, counted from its own start; where it finds us.

    ``log_path`` receives what Dask and the hosts say beside the point; it is dropped without.
    """

    ready_s: float = 30.0
    driver_address: str | None = None
    log_path: Path | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Something happened to a host; ``None`` as host says that every host is up or has failed."""

    host: str | None
    text: str = ""
    error: BaseException | None = None
