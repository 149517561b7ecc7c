"""Recorded runs over time: as text, JSON, CSV and a picture."""
