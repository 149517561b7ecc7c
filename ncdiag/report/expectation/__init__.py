"""Expected bandwidths as text, JSON and a picture."""
