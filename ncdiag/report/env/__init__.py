"""Environment profiles, lint findings and audits, as text and JSON."""
