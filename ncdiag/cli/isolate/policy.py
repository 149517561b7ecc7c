"""``ncdiag isolate policy``: what it takes to isolate a host."""

from ncdiag.cli import console, options
from ncdiag.cli.isolate.arguments import OutputFormat, PolicyFile


def policy(
    *,
    policy: PolicyFile = None,
    output_format: options.Format = OutputFormat.TEXT,
) -> None:
    """Print the policy in force: the one that is shipped, changed by --policy."""
    from ncdiag.isolate.policy import read_policy
    from ncdiag.isolate.policy_text import as_document, as_text

    found = read_policy(policy)
    if output_format is OutputFormat.JSON:
        from ncdiag.report.isolation import json_report

        console.write(json_report.render_document("policy", as_document(found)))
    else:
        console.write(as_text(found).encode())
