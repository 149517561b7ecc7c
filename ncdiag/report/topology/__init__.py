"""Reports of topology dumps: JSON, text for a terminal, and pictures."""
