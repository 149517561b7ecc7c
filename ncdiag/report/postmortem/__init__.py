"""A post-mortem as JSON, as text for a terminal, and as a page."""
