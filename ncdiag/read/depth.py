"""How much of large inputs is read beyond the lines that matter."""

from dataclasses import dataclass

# So many inputs are read as deeply as one; of more, each one less.
_FEW = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """What is read of one input.

    Both ends, ``edge_bytes`` each, are read whatever they contain. Calls of collectives are read
    where a job begins and where it ends, not the millions between. Of lines that state facts
    ``facts_lines`` are read, and ``later_facts_lines`` in a piece that does not begin the input,
    for a job begins where its log begins.
    """

    edge_bytes: int = 16 << 10
    first_calls_bytes: int = 2 << 20
    last_calls_bytes: int = 8 << 20
    facts_lines: int = 4_000
    later_facts_lines: int = 500


DEEPEST = Depth()


def depth(inputs: int) -> Depth:
    """How deeply each of so many inputs is read; a file a rank has less to tell than one of all."""
    if inputs <= _FEW:
        return DEEPEST
    return Depth(
        edge_bytes=_shared(DEEPEST.edge_bytes, inputs, least=2 << 10),
        first_calls_bytes=_shared(DEEPEST.first_calls_bytes, inputs, least=8 << 10),
        last_calls_bytes=_shared(DEEPEST.last_calls_bytes, inputs, least=32 << 10),
        facts_lines=_shared(DEEPEST.facts_lines, inputs, least=200),
        later_facts_lines=_shared(DEEPEST.later_facts_lines, inputs, least=50),
    )


def _shared(most: int, inputs: int, *, least: int) -> int:
    return max(most * _FEW // inputs, least)
