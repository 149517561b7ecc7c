"""What the guide says about one class of finding."""

from typing import NamedTuple


class Guide(NamedTuple):
    """How to act on a finding at three in the morning.

    ``meaning`` says what it is, what usually causes it and how to tell; ``actions`` are steps in
    the order in which to try them; ``next`` is the one command to run first. ``HOST``, ``PEER``,
    ``NIC``, ``GPU``, ``JOB``, ``PID`` and ``FILE`` stand for what the log or the reader knows.
    """

    meaning: str
    actions: tuple[str, ...]
    next: str
