"""Measuring: which pairs in which round, with which engine, kept in a journal."""
