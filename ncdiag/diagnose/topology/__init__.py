"""What is wrong with a topology dump, and which hosts of a fleet differ from the others."""
