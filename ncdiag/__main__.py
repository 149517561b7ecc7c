"""Starts ncdiag, as the command ``ncdiag`` and as ``python -m ncdiag``.

Everything else is imported once Ctrl-C ends the command without a traceback.
"""

from ncdiag.cli import interrupts


def main() -> None:
    """Run the command that stands on the command line, and exit."""
    interrupts.leave_at_once()
    from ncdiag.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
