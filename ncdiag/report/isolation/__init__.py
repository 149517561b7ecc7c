"""Decisions about hosts, plans, and what was carried out, as text, JSON and CSV."""
