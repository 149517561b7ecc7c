"""One module a command: parse options, call, hand to a reporter, pick the exit code."""
