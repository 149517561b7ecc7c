"""Sweeps, benchmarks and imports over time, in one SQLite file."""
