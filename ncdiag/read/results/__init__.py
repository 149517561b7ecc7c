"""Results that other tools have written: one module a format."""
