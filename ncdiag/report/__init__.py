"""Records in, one output format a module."""
