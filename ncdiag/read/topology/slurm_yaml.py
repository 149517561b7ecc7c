"""Slurm's ``topology.yaml`` (25.05 and later): named topologies, each a tree, blocks or flat."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ncdiag.model.topology import (
    NotATopologyError,
    SlurmSwitch,
    SlurmTopology,
    TruncatedTopologyError,
)
from ncdiag.read.topology.plain_yaml import PlainValue, parse
from ncdiag.read.topology.slurm_end import refuse_cut_topology
from ncdiag.read.topology.slurm_names import Names
from ncdiag.read.topology.text import integer, quoted

_RECOGNISED = re.compile(
    r"^[ \t]*-[ \t]*[\"']?(?:topology|switch|block)[\"']?[ \t]*:", re.MULTILINE
)
_BODY = re.compile(r"^[ \t-]*[\"']?(?:tree|block|flat|switches|blocks)[\"']?[ \t]*:", re.MULTILINE)
_YES = {"true", "yes", "on"}
_NO = {"false", "no", "off"}


def recognises(text: str) -> bool:
    """Whether ``text`` lists topologies, switches or blocks as YAML."""
    return _RECOGNISED.search(text) is not None and _BODY.search(text) is not None


def read(text: str) -> SlurmTopology:
    """The cluster's default topology; of several, the first that has switches or blocks.

    Raises :class:`TruncatedTopologyError` for a text that ends too early, and
    :class:`NotATopologyError` for YAML that is none, has aliases, or is of something else.
    """
    document = parse(text)
    named = [one for one in _list(document) if isinstance(one, dict)]
    if isinstance(document, dict):
        named = [document]
    shaped = [one for one in named if _shape(one) is not None]
    if not shaped:
        if any(str(one.get("flat", "")).lower() in _YES for one in named):
            raise NotATopologyError("a flat topology, which has neither switches nor blocks")
        raise TruncatedTopologyError("cut short: no switch and no block")
    _refuse_cut(_list(document) or named, ended=text.endswith("\n"))
    default = (one for one in shaped if str(one.get("cluster_default", "")).lower() in _YES)
    shape = _shape(next(default, shaped[0]))
    assert shape is not None  # noqa: S101 - only such were kept
    return _topology(*shape)


def _refuse_cut(listed: list[Any], *, ended: bool) -> None:
    """Raise :class:`TruncatedTopologyError` where the last topology of a file is not whole."""
    last = listed[-1]
    shape = _shape(last) if isinstance(last, dict) else None
    if shape is not None:
        refuse_cut_topology(_topology(*shape), ended=ended)
    elif not isinstance(last, dict) or str(last.get("flat", "")).lower() not in _YES | _NO:
        raise TruncatedTopologyError(f"cut short: it ends with {quoted(str(last))}")


def _shape(topology: Mapping[str, PlainValue]) -> tuple[str, list[Any], tuple[int, ...]] | None:
    """Plugin, entries and block sizes of one topology; ``None`` where it has no entries."""
    for plugin, key in (("tree", "switches"), ("block", "blocks")):
        body = topology.get(plugin, topology)
        if isinstance(body, dict) and (entries := _list(body.get(key))):
            sizes = (integer(str(size), 10) for size in _list(body.get("block_sizes")))
            return plugin, entries, tuple(size for size in sizes if size is not None)
    return None


def _topology(plugin: str, entries: list[Any], sizes: tuple[int, ...]) -> SlurmTopology:
    names, found = Names(), []
    for place, entry in enumerate(entries, start=1):
        last = place == len(entries)
        error = TruncatedTopologyError if last else NotATopologyError
        try:
            switch = _switch(entry, "switch" if plugin == "tree" else "block", names)
        except TruncatedTopologyError as cut:
            raise error(f"{cut}") from None
        if switch is None or (last and not (switch.switches or switch.nodes)):
            raise error(f"a {plugin} whose entry {place} is not whole: {quoted(str(entry))}")
        found.append(switch)
    return SlurmTopology(plugin=plugin, switches=tuple(found), block_sizes=sizes)


def _switch(entry: PlainValue, key: str, names: Names) -> SlurmSwitch | None:
    """One switch or block; ``None`` where it has no name."""
    name = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        return None
    return SlurmSwitch(name, _names(names, entry, "children"), _names(names, entry, "nodes"))


def _names(names: Names, entry: Mapping[str, PlainValue], key: str) -> tuple[str, ...]:
    """The names below an entry: one list in Slurm's notation, or a list of such."""
    return tuple(name for text in _texts(entry.get(key)) for name in names.expand(text))


def _texts(value: PlainValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, str))


def _list(value: PlainValue) -> list[Any]:
    return value if isinstance(value, list) else []
