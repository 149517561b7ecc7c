"""``ncdiag env``: profiles of NCCL's environment variables, checked, written out, proved."""

from ncdiag.cli.commands import Lazy, lazy_app

app = lazy_app(
    "env",
    "Keep NCCL's environment variables under control: profiles, lint, audit.",
    {
        "list": Lazy("ncdiag.cli.env.show", "list_all"),
        "show": Lazy("ncdiag.cli.env.show", "show"),
        "diff": Lazy("ncdiag.cli.env.diff", "diff"),
        "lint": Lazy("ncdiag.cli.env.lint", "lint"),
        "export": Lazy("ncdiag.cli.env.export", "export"),
        "run": Lazy(
            "ncdiag.cli.env.run",
            "run",
            # What follows the profile is the command, with options of its own.
            {"allow_interspersed_args": False, "ignore_unknown_options": True},
        ),
        "audit": Lazy("ncdiag.cli.env.audit", "audit"),
    },
)

__all__ = ["app"]
