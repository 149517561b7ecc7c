"""Where decisions are carried out: one small module a place."""
