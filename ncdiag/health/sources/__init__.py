"""Where the health facts of a host come from: one module a source."""
