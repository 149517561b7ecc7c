"""Every number that a judgement hangs on, with the reason for it."""

from dataclasses import dataclass

# Listed in a report; how many there are beyond that is said as a number.
MAX_LISTED_UNTESTED = 10_000
MAX_LISTED_LINK_CULPRITS = 100
MAX_LISTED_CONTENTION = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The lines between healthy, degraded and faulty; shares are between 0 and 1.

    ``faulty_below``: share of its yardstick under which a link is faulty (``--faulty-below``).
    """

    faulty_below: float = 0.8
    # A link that reaches this much of its expectation is healthy whatever the others do: gloo and
    # iperf3 agree within 3 %, and MTU or rounding of a line rate account for another 2 %.
    reached: float = 0.95
    # Degraded: this far below the fleet at least, since paths of one fabric differ by some per
    # cent, and this many robust standard deviations, since some fabrics scatter more.
    outlier_by: float = 0.08
    outlier_sigmas: float = 5.0
    # Below this CPU idle share a host measures itself, not the link: medians of 39 to 600 were
    # seen for 956 Mbit/s links on cores 85 to 90 % busy.
    busy_below_idle: float = 0.15
    # Pairs of one suspected component that are measured again in quiet: all in a rack, a sample
    # in a hall, where a slow uplink touches tens of thousands of pairs.
    quiet_sample: int = 32
    # Times one pair is measured in quiet at most.
    quiet_tries: int = 2

    def halfway(self, line: float, top: float = 1.0) -> float:
        """Return the share from which a link clearly speaks for what it passes through."""
        return (line + (top if top > line else 1.0)) / 2
