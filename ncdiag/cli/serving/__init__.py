"""``ncdiag serve``: read-only pages and metrics over HTTP."""
