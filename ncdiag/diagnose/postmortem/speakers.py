"""Whether two lines come from one process."""

from ncdiag.model.log import Speaker


def same_process(one: Speaker, other: Speaker) -> bool | None:
    """Whether two speakers are one process; ``None`` where the lines do not tell.

    A launcher's label, a rank, or host and process id tell processes apart. Host or process id
    alone may differ by spelling or by a launcher in between, so that only both together prove.
    """
    if one.rank is not None and other.rank is not None:
        return one.rank == other.rank
    if one.label is not None and other.label is not None:
        return one.label == other.label
    if one.host and other.host and one.host != other.host:
        return False
    if one.pid and other.pid:
        if one.pid != other.pid:
            return False
        return True if one.host and other.host else None
    return None
