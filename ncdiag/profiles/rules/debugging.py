"""Settings for debugging that flood, collide, or do nothing."""

import re
from collections.abc import Iterator

from ncdiag.model.environment import LintFinding, LintSeverity
from ncdiag.profiles.rules.look import Look, short
from ncdiag.profiles.rules.table import found

# Levels at which subsystems speak. Source: NCCL 2.30.7, src/debug.cc.
_SPEAKING = {"INFO", "ABORT", "TRACE"}
_SILENT = {"VERSION", "WARN", "NONE"}
# Subsystems with a line for every collective, transfer or allocation, not for every communicator.
_ENDLESS = {"ALL", "COLL", "CALL", "P2P", "ALLOC", "ALLOC_HOST", "PROXY", "REG"}
# At INFO a rank writes some hundred lines when it starts: 1,024 ranks write a hundred thousand.
_MANY_RANKS = 1024
_OWN_TO_A_HOST = ("/tmp/", "/var/", "/dev/shm/", "/run/", "/scratch/local/")  # noqa: S108
_STREAMS = {"/dev/stdout", "/dev/stderr", "/dev/null", "stdout", "stderr"}
_PATTERN = re.compile(r"%(.)")


def check(look: Look) -> Iterator[LintFinding]:
    """What is wrong with the settings for debugging that take effect."""
    yield from _flood(look)
    yield from _without_effect(look)
    yield from _shared_file(look)
    yield from _slow_checks(look)


def _level(look: Look) -> str | None:
    value = look.value("NCCL_DEBUG")
    return None if value is None else value.upper()


def _flood(look: Look) -> Iterator[LintFinding]:
    level = _level(look)
    subsystems = look.value("NCCL_DEBUG_SUBSYS")
    if level not in _SPEAKING or look.context.ranks == 1:
        return
    ranks = f"{look.context.ranks:,} ranks" if look.context.ranks else "a large job"
    if subsystems:
        inverted = subsystems.startswith("^")
        names = {name.upper() for name in subsystems.removeprefix("^").split(",")}
        endless = sorted(_ENDLESS - names if inverted else _ENDLESS & names)
        if endless and not (inverted and "ALL" in names):
            setting = look.effective["NCCL_DEBUG_SUBSYS"]
            what = "all but a few subsystems" if inverted else ", ".join(endless)
            message = f"{what} at {level} logs every operation, which floods the log of {ranks}"
            yield found("log_flood", setting, message)
            return
    many = look.context.ranks is not None and look.context.ranks >= _MANY_RANKS
    if many or level == "TRACE":
        message = f"{level} on {ranks} floods the log"
        yield found("log_flood", look.effective["NCCL_DEBUG"], message, "write NCCL_DEBUG=WARN")


def _without_effect(look: Look) -> Iterator[LintFinding]:
    level = _level(look)
    if level in _SPEAKING or ("NCCL_DEBUG" in look.effective and level not in _SILENT):
        return
    quiet = f"NCCL_DEBUG={level}" if level else "NCCL_DEBUG is not set here, and without it"
    severity = None if level else LintSeverity.INFO
    if look.value("NCCL_DEBUG_SUBSYS"):
        setting = look.effective["NCCL_DEBUG_SUBSYS"]
        message = f"{quiet}: no subsystem writes anything"
        yield found("debug_without_effect", setting, message, None, severity)
    if look.value("NCCL_DEBUG_FILE") and level != "WARN":
        setting = look.effective["NCCL_DEBUG_FILE"]
        message = f"{quiet}: nothing is written to the file"
        yield found("debug_without_effect", setting, message, None, severity)


def _shared_file(look: Look) -> Iterator[LintFinding]:
    path = look.value("NCCL_DEBUG_FILE")
    if not path or path in _STREAMS or look.context.ranks == 1:
        return
    marks = set(_PATTERN.findall(path.replace("%%", "")))
    own = path.startswith(_OWN_TO_A_HOST) or look.multi_host() is False
    missing = [mark for mark in ("h", "p") if mark not in marks and not (mark == "h" and own)]
    if missing:
        names = " and ".join(f"%{mark}" for mark in missing)
        message = f"without {names} processes truncate and overwrite {short(path)}"
        fix = f"write {names} into the name"
        yield found("shared_log_file", look.effective["NCCL_DEBUG_FILE"], message, fix)


def _slow_checks(look: Look) -> Iterator[LintFinding]:
    for name, slow in (("TORCH_DISTRIBUTED_DEBUG", "DETAIL"), ("NCCL_CHECK_MODE", "DEBUG_GLOBAL")):
        setting = look.effective.get(name)
        if setting and (look.value(name) or "").upper() == slow and setting.reason is None:
            message = f"{slow} compares every collective between ranks, which is slow"
            yield found("slow_checks", setting, message, f"drop {name} in production")
