"""Two sweeps side by side, for people and for programs."""
