"""When lines that only state facts are worth reading."""

# A host that comes up during a look prolongs it by this part of its lines.
_HOST_PART = 500
# A look is over after a stretch that taught too little.
_STRETCH_LINES = 4_000
_WORTHWHILE = 0.1


class FactsBudget:
    """Decides from what was learned lately whether to go on looking for facts.

    Jobs state the facts of a process where it starts and repeat them with every communicator:
    reading them all would cost more than everything else together. A look is over after ``lines``,
    and one that a communicator's start begins after ``again``.
    """

    def __init__(self, lines: int, again: int) -> None:
        self._left = lines
        self._lines_a_host = lines // _HOST_PART
        self._again = again
        self._lines = 0
        self._learned = 0
        self._hosts = 0

    @property
    def wanted(self) -> bool:
        """Whether facts are to be looked for."""
        return self._left > 0

    def spend(self, lines: int, learned: int, hosts: int) -> None:
        """Note that ``lines`` were read since the last time, and how much new they told.

        ``hosts`` is the number of hosts that are known by now.
        """
        self._left += self._lines_a_host * (hosts - self._hosts) - lines
        self._hosts = hosts
        self._lines += lines
        self._learned += learned
        if self._lines >= _STRETCH_LINES:
            if self._learned < self._lines * _WORTHWHILE:
                self._left = 0
            self._lines = self._learned = 0

    def renew(self) -> None:
        """Look again: a communicator started."""
        if self._left <= 0:
            self._left = self._again
