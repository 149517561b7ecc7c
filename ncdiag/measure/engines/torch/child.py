"""The measuring process: ``python -m ncdiag.measure.engines.torch.child BACKEND [SETTING ...]``.

One JSON request a line on stdin, one JSON answer a line on stdout. It lives as long as nothing
goes wrong, and is killed from outside when a request takes too long.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import BinaryIO

import msgspec

from ncdiag.measure.bench.messages import Request as RankRequest
from ncdiag.measure.engines.torch.messages import (
    Backend,
    MeasurePair,
    OpenStore,
    Ready,
    Request,
)

# Settings of a job that happened to stand in the environment would change what is measured.
_FOREIGN_PREFIXES = ("GLOO_", "NCCL_", "TORCH_NCCL_", "TORCH_DISTRIBUTED_", "OMP_", "MKL_")
_NO_TORCH = "torch is not installed there: pip install 'ncdiag[torch]'"


def main(backend: Backend, settings: Sequence[str] = ()) -> None:
    """Serve requests until stdin ends."""
    replies = _take_stdout()
    set_environment(settings)
    # Importing torch makes hundreds of thousands of objects and no garbage: looking for some costs
    # a tenth of the start, and would go on to interrupt what is measured.
    gc.disable()
    try:
        from ncdiag.measure.engines.torch.measuring import Measurer
    except ImportError as error:
        answer = _NO_TORCH if error.name == "torch" else f"torch cannot be imported: {error}"
        _reply(replies, Ready(error=answer))
        sys.stdin.read()
        return
    measurer = Measurer(backend)
    gc.freeze()
    gc.enable()
    _reply(replies, measurer.ready)
    decoder = msgspec.json.Decoder(Request | RankRequest)
    rank = None
    for line in sys.stdin.buffer:
        request = decoder.decode(line)
        if isinstance(request, OpenStore | MeasurePair):
            _reply(replies, measurer.answer(request))
            measurer.clean_up()
            continue
        if rank is None:
            from ncdiag.measure.burn_in.rank import BurnInRank

            rank = BurnInRank(backend, measurer.stores)
        _reply(replies, rank.answer(request))


def _take_stdout() -> BinaryIO:
    """Keep the way for answers; what else is printed, also by C++ code, goes to stderr."""
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return replies


def set_environment(settings: Sequence[str]) -> None:
    """Let ``settings`` be all that is set of the libraries that measure.

    A name alone keeps the value that it has in the environment.
    """
    pairs = [setting.partition("=") for setting in settings]
    kept = {name: os.environ[name] for name, equals, _ in pairs if not equals}
    for name in [name for name in os.environ if name.startswith(_FOREIGN_PREFIXES)]:
        del os.environ[name]
    # More threads than the one that measures would take the processor from it.
    os.environ["OMP_NUM_THREADS"] = "1"
    # Warnings of its sockets say nothing that an error does not.
    os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
    os.environ.update(kept)
    os.environ.update({name: value for name, equals, value in pairs if equals})


def _reply(replies: BinaryIO, answer: msgspec.Struct) -> None:
    replies.write(msgspec.json.encode(answer) + b"\n")


if __name__ == "__main__":
    main(Backend(sys.argv[1]), sys.argv[2:])
