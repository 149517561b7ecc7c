"""Files that are not what they should be: no source hangs, crashes, or takes memory for them."""

import os
import random
import tracemalloc
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from host_trees import HostTree, healthy_gpu

from ncdiag.health.sources import kernel_log
from ncdiag.health.sources.found import Found
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.table import SOURCES
from ncdiag.health.topology import programs
from ncdiag.model.health import Source, SourceState
from ncdiag.model.json_text import encode

_MOST_MEMORY_BYTES = 64 << 20


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(str(path)).randbytes(3000))


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(5 << 30)


def one_long_line(path: Path) -> None:
    path.write_bytes(b"9" * 300_000)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def circle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def device(path: Path) -> None:
    """Endless zeros, were it read."""
    path.unlink()
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


SPOILERS = (garbage, huge, one_long_line, empty, fifo, circle, device, folder)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostRoot:
    """A host with one of each thing; little of what is endless is read."""
    monkeypatch.setattr(kernel_log, "_READING_S", 0.05)
    monkeypatch.setattr(programs, "MAX_BYTES", 1 << 20)
    tree = HostTree(tmp_path)
    tree.host("gpu001")
    tree.pci("18", "0x030200", "0x10de")
    tree.hca("mlx5_0", "19")
    tree.gpus([healthy_gpu(0)])
    return HostRoot(tmp_path)


def ask(source: Source, root: HostRoot) -> Found:
    module, _, function = SOURCES[source].collect.partition(":")
    collect: Callable[[HostRoot], Found] = getattr(import_module(module), function)
    return collect(root)


@pytest.mark.parametrize("spoil", SPOILERS, ids=lambda spoil: spoil.__name__)
def test_no_source_is_harmed_by_what_stands_in_its_files(
    host: HostRoot, spoil: Callable[[Path], None]
) -> None:
    for path in [one for one in host.root.rglob("*") if one.is_file() and not one.is_symlink()]:
        spoil(path)
    tracemalloc.start()
    found = {source: ask(source, host) for source in SOURCES}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < _MOST_MEMORY_BYTES
    for source, one in found.items():
        assert one.state in SourceState, source
        if one.state is not SourceState.READ:
            assert one.reason, source
            assert one.reason.isprintable(), source
        assert len(encode(one.facts)) < 1 << 20, source


@pytest.mark.parametrize("source", SOURCES)
def test_folders_full_of_odd_names_harm_no_source(source: Source, tmp_path: Path) -> None:
    odd = ["\x1b[31m", "a b", "-x", "..x", "é" * 80, "0" * 200, "\u0661", "x\ny"]
    for folder_ in (
        "sys/class/infiniband",
        "sys/class/infiniband/mlx5_0/ports",
        "sys/class/net",
        "sys/bus/pci/devices",
        "sys/kernel/iommu_groups",
        "sys/devices/system/cpu/cpufreq",
        "proc",
    ):
        for name in odd:
            (tmp_path / folder_ / name).mkdir(parents=True, exist_ok=True)
        Path(os.fsdecode(os.fsencode(tmp_path / folder_) + b"/\xff\xfe")).mkdir()
    found = ask(source, HostRoot(tmp_path))
    assert found.state in {SourceState.ABSENT, SourceState.READ, SourceState.FAILED}
    encode(found.facts)
