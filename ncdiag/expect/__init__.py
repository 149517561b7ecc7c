"""What hardware should deliver, every number with its derivation."""
