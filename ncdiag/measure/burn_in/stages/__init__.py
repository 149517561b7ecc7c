"""The stages of a burn-in, one module each: what they measure, and what that says of hosts."""
