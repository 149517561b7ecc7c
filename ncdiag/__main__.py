"""Lets ``python -m ncdiag`` do what ``ncdiag`` does."""

from ncdiag.cli.main import main

main()
