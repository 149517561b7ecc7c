"""``ncdiag isolate``: which hosts should be out, why, and carrying that out."""

from ncdiag.cli.commands import Lazy, lazy_app

app = lazy_app(
    "isolate",
    "The isolation list: evidence against hosts, what a policy makes of it, and carrying that out.",
    {
        "show": Lazy("ncdiag.cli.isolate.show", "show"),
        "add": Lazy("ncdiag.cli.isolate.word", "add"),
        "remove": Lazy("ncdiag.cli.isolate.word", "remove"),
        "plan": Lazy("ncdiag.cli.isolate.carry_out", "plan"),
        "apply": Lazy("ncdiag.cli.isolate.carry_out", "apply"),
        "undo": Lazy("ncdiag.cli.isolate.undo", "undo"),
        "export": Lazy("ncdiag.cli.isolate.export", "export"),
        "policy": Lazy("ncdiag.cli.isolate.policy", "policy"),
        "audit": Lazy("ncdiag.cli.isolate.audit", "audit"),
    },
)
