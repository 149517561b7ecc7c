"""The process of a rank: ``python -m ncdiag.measure.bench.torch_child BACKEND [VARIABLE ...]``.

One JSON request a line on stdin, one JSON answer a line on stdout, the first of which says that it
is ready. It is killed from outside when a request takes too long.
"""

import gc
import os
import sys
from collections.abc import Sequence

import msgspec

from ncdiag.measure.bench.messages import Answer, Request
from ncdiag.measure.engines.torch.child import set_environment
from ncdiag.measure.engines.torch.messages import Backend


def main(backend: Backend, settings: Sequence[str] = ()) -> None:
    """Serve requests until stdin ends."""
    # Kept apart from what else is printed, also by C++ code.
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    set_environment(settings)
    gc.disable()  # importing torch makes no garbage
    try:
        from ncdiag.measure.burn_in.rank import BurnInRank
    except ImportError as error:
        why = f"torch cannot be imported: {error}"
        replies.write(msgspec.json.encode(Answer(error=why)) + b"\n")
        sys.stdin.read()
        return
    rank = BurnInRank(backend)
    gc.freeze()
    gc.enable()
    replies.write(msgspec.json.encode(Answer()) + b"\n")
    decoder = msgspec.json.Decoder(Request)
    for line in sys.stdin.buffer:
        replies.write(msgspec.json.encode(rank.answer(decoder.decode(line))) + b"\n")


if __name__ == "__main__":
    main(Backend(sys.argv[1]), sys.argv[2:])
