"""From measurements and logs to causes; pure functions, thresholds in one place."""
