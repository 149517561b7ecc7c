"""What a scanner finds in a block."""

from ncdiag.read.scan import Scanner


def found_lines(
    scanner: Scanner, block: bytearray, start: int = 0, stop: int | None = None
) -> list[tuple[bytes, tuple[bytes, ...]]]:
    """The lines of ``block[start:stop]`` that hold a needle, each with its needles."""
    lines = scanner.lines(block, start, len(block) if stop is None else stop)
    return [(bytes(block[begin:end]), names) for begin, end, names in scanner.named(block, lines)]
