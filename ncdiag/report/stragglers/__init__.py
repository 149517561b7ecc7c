"""Slow ranks, shown."""
