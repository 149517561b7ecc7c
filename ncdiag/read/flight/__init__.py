"""PyTorch's flight recorder: a dump per rank, as pickle or JSON."""

from ncdiag.read.flight.document import FlightDocument

__all__ = ["FlightDocument"]
