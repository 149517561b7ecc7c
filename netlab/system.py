"""The programs and kernel interfaces a lab is built with."""

import fcntl
import ipaddress
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from netlab.errors import COULD_NOT, NetlabError

RUN_DIRECTORY = Path("/run/netlab")
_NAMESPACES = Path("/run/netns")

# Program -> the Debian package that brings it.
_PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
}
_KILL_DEADLINE_S = 5.0


def add_sbin_to_path() -> None:
    """Find tc and sshd also where the caller's PATH leaves the administrator's folders out."""
    os.environ["PATH"] = (
        os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
    )


def unavailable() -> str | None:
    """Why no lab can be run here, with the cure, or ``None``."""
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        packages = " ".join(dict.fromkeys(_PROGRAMS[program] for program in missing))
        return f"not installed: {', '.join(missing)} (apt-get install {packages})"
    if os.geteuid() != 0:
        return "network namespaces need root (sudo bin/netlab ...)"
    probe = ["unshare", "--net", "--uts", "--mount", "true"]
    if subprocess.run(probe, check=False, capture_output=True).returncode:
        return "this root may not make network namespaces (in a container: run it privileged)"
    return None


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold the one lock under which labs change.

    Every program started meanwhile inherits it, so that after a ``kill -9`` the next command waits
    until what was under way has ended, and then sees all of it.
    """
    descriptor = _locked_run_directory()
    os.set_inheritable(descriptor, True)  # noqa: FBT003 - takes it by position only
    try:
        yield
    finally:
        if not any(RUN_DIRECTORY.iterdir()):
            RUN_DIRECTORY.rmdir()
        os.close(descriptor)


def _locked_run_directory() -> int:
    while True:
        RUN_DIRECTORY.mkdir(mode=0o755, parents=True, exist_ok=True)
        descriptor = os.open(RUN_DIRECTORY, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Whoever held the lock before may have removed the directory as its last act.
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def run(argv: Sequence[str], *, text: str = "") -> str:
    """Run a program to its end and return its stdout; raises :class:`NetlabError`."""
    done = subprocess.run(
        argv, input=text, capture_output=True, text=True, close_fds=False, check=False, cwd="/"
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        raise NetlabError(f"{argv[0]} failed: {lines[0]}{_culprit_line(lines, text)}", COULD_NOT)
    return done.stdout


def _culprit_line(stderr: Sequence[str], batch: str) -> str:
    """The batch line that ``ip`` or ``tc`` stopped at (it says "Command failed -:7")."""
    number = next((line.rpartition(":")[2] for line in stderr if "Command failed" in line), "")
    return f" (at: {batch.splitlines()[int(number) - 1]})" if number.isdigit() else ""


def run_all(commands: Iterable[Sequence[str]]) -> None:
    """Run programs side by side; raises :class:`NetlabError` for the first that fails."""
    started = [
        (
            argv,
            subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                close_fds=False,
                cwd="/",
            ),
        )
        for argv in commands
    ]
    failures = [
        f"{argv[0]} failed: {error.strip().splitlines()[-1] if error.strip() else 'no message'}"
        for argv, process in started
        if (error := process.communicate()[1]) is not None and process.returncode
    ]
    if failures:
        raise NetlabError(failures[0], COULD_NOT)


def batch(program: str, lines: Sequence[str], *, namespace: str | None = None) -> None:
    """Run lines through ``ip`` or ``tc`` in one go, in a namespace."""
    where = ["-n", namespace] if namespace else []
    if lines:
        run([program, *where, "-batch", "-"], text="\n".join(lines) + "\n")


def existing_namespaces() -> set[str]:
    """The named network namespaces of this machine."""
    return {path.name for path in _NAMESPACES.iterdir()} if _NAMESPACES.is_dir() else set()


def device_exists(device: str) -> bool:
    """Whether the root namespace has such an interface."""
    return Path("/sys/class/net", device).exists()


def namespace_path(namespace: str) -> Path:
    """The file that stands for a named network namespace."""
    return _NAMESPACES / namespace


def routed_networks() -> list[ipaddress.IPv4Network]:
    """Every IPv4 network this machine has a route to, but for the default route."""
    routes = json.loads(run(["ip", "-j", "-4", "route", "show", "table", "all"]))
    return [ipaddress.IPv4Network(r["dst"]) for r in routes if r["dst"] != "default"]


def processes(namespaces: Iterable[str]) -> dict[int, str]:
    """Processes that run in these network namespaces: number -> namespace."""
    known = {}
    for name in namespaces:
        try:
            status = namespace_path(name).stat()
        except FileNotFoundError:
            continue
        known[status.st_dev, status.st_ino] = name
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "ns/net").stat()
        except OSError:  # it has ended
            continue
        if (status.st_dev, status.st_ino) in known:
            found[int(entry.name)] = known[status.st_dev, status.st_ino]
    return found


def kill_all(namespaces: Sequence[str], *, spare: int | None = None) -> int:
    """Kill what runs in these namespaces until nothing does; returns how many there were."""
    deadline = time.monotonic() + _KILL_DEADLINE_S
    killed: set[int] = set()
    while victims := processes(namespaces).keys() - {spare}:
        if time.monotonic() > deadline:
            raise NetlabError(f"these processes do not end: {sorted(victims)}", COULD_NOT)
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        killed |= victims
        time.sleep(0.01)
    return len(killed)
