"""When lines that only state facts are worth reading."""

# A look is over after this many lines, and some more for each host that came up meanwhile, or in
# a stretch that taught too little.
_LOOK_LINES = 4_000
_LINES_A_HOST = 8
# A job begins where its log begins: a later piece has less to tell.
_LATER_LOOK_LINES = 500
_LATER_LINES_A_HOST = 1
_STRETCH_LINES = 4_000
_WORTHWHILE = 0.1
# After a communicator's start the reader looks again, for this many lines at first.
_AGAIN_LINES = 4_000


class FactsBudget:
    """Decides from what was learned lately whether to go on looking for facts.

    Jobs state the facts of a process where it starts and repeat them with every communicator:
    reading them all would cost more than everything else together.
    """

    def __init__(self, *, begins: bool = True) -> None:
        self._left = _LOOK_LINES if begins else _LATER_LOOK_LINES
        self._lines_a_host = _LINES_A_HOST if begins else _LATER_LINES_A_HOST
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
            self._left = _AGAIN_LINES
