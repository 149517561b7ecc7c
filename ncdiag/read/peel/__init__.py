"""From raw lines of a log to records: wrappers off, glued records apart, cut ones together."""

from ncdiag.read.peel.peeler import Peeler

__all__ = ["Peeler"]
