"""Facts about a host, collected where they lie, and rules over them."""
