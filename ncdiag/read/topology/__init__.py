"""Readers of topology dumps: bytes in, one record of :mod:`ncdiag.model.topology` out."""
