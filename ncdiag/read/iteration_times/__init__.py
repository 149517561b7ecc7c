"""Times of ranks and iterations, from tables that people and tools write."""

from ncdiag.read.iteration_times.rank_map import Placed, read_rank_map
from ncdiag.read.iteration_times.reader import TimesReader

__all__ = ["Placed", "TimesReader", "read_rank_map"]
