"""From measurements to causes; pure functions, thresholds in one place."""
