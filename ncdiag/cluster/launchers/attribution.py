"""Which of a launch's hosts a line is about: one command may speak for all of them.

A line of a host carries the launch's label; a line of the launcher itself (srun) may name hosts.
"""

import re
from collections.abc import Iterable, Sequence

from ncdiag.cluster.launch import Launch
from ncdiag.cluster.names import expand
from ncdiag.model.errors import UsageError

# Names and node sets as they stand in a sentence: h3, h[1-2], gpu001.site.
_NAMES = re.compile(r"[A-Za-z0-9_](?:[\w.-]|\[[\d,-]+\])*", re.ASCII)
# Slurm ends a step on all its nodes, and names the one it says so from.
_ABOUT_ALL = re.compile(r"\*\*\* (?:STEP|JOB) ")


def lines_about(launch: Launch, host: str, lines: Iterable[str]) -> list[str]:
    """The lines that concern ``host``, without labels: its own, and those of nobody else."""
    if len(launch.hosts) == 1 and launch.label is None:
        return list(lines)
    found = []
    for line in lines:
        hosts, text = attribute(launch, line)
        if host in hosts:
            found.append(text)
    return found


def attribute(launch: Launch, line: str) -> tuple[Sequence[str], str]:
    """The hosts that a line is about, all of them where it names none, and its text."""
    if launch.label and (label := re.match(launch.label, line)):
        index = int(label["index"])
        hosts = launch.hosts[index : index + 1] or launch.hosts
        return hosts, line[label.end() :]
    if _ABOUT_ALL.search(line):
        return launch.hosts, line
    return named_hosts(launch, line) or launch.hosts, line


def named_hosts(launch: Launch, line: str) -> tuple[str, ...]:
    """The hosts of the launch that the launcher names in a line of its own."""
    known = set(launch.hosts)
    found: dict[str, None] = {}
    for word in _NAMES.findall(line):
        text = word.rstrip(".-")
        if text in known:
            found[text] = None
        elif "[" in text:
            try:
                names = expand(text)
            except UsageError:
                continue
            found.update((name, None) for name in names if name in known)
    return tuple(found)
