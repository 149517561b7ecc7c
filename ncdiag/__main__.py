"""Starts ncdiag, as the command ``ncdiag`` and as ``python -m ncdiag``."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command that stands on the command line, and exit."""
    try:
        # Takes a moment, in which Ctrl-C must not end in a traceback.
        from ncdiag.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
