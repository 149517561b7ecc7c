"""Readers, one for each format: bytes or text in, records of ``ncdiag.model.log`` out, no I/O."""
