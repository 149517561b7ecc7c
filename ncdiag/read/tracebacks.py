"""Programs that end by an exception of their own: Python's tracebacks and C++'s last words.

Exceptions that only carry an error of the communication library, of CUDA, of a store or of a
launcher are left to the signatures, which know them by their text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ncdiag.model.finding import FindingClass, Role
from ncdiag.model.log import Event, LogEvidence, Speaker
from ncdiag.model.place import Place
from ncdiag.read.events import EventLog
from ncdiag.read.line import Line
from ncdiag.read.signatures.cuda import STREAM_CALL
from ncdiag.read.signatures.xla import EXHAUSTED, OF_THE_GPU

_HEAD = re.compile(r"(?P<original>Original )?Traceback \(most recent call last\)")
_FRAME = re.compile(r'^(?P<indent>\s*)File "(?P<file>[^"\n]{1,1000})", line \d{1,8}')
_CHAIN = (
    "During handling of the above exception",
    "The above exception was the direct cause",
)
# What the interpreter prints of exceptions that end nothing.
_IGNORED = ("Exception ignored in", "--- Logging error ---")
_GROUP = re.compile(r"^(\s*)[|+] ?(?:[-+]{2,}[- \d.]*)?")
_NAMED = re.compile(
    r"^(?P<indent>\s*)(?P<name>(?:[A-Za-z_]\w{0,100}\.){0,12}"
    r"[A-Za-z_]\w{0,100}(?:Error|Exception|Failure|Timeout|Interrupt|Exit|Iteration|Warning|Expired)"
    r"|(?:[a-z_]\w{0,100}\.){1,12}[A-Z]\w{0,100})"
    r"(?P<inner>\([A-Za-z_][\w.]{0,200}\))?(?::(?=\s|$)\s?(?P<message>.*)|\s*)$"
)
# Exceptions of the language that end programs, without their common suffix.
_BUILTIN = (
    "Arithmetic|Assertion|Attribute|FileNotFound|FloatingPoint|Import|Index|Key|Memory|"
    "ModuleNotFound|Name|NotImplemented|OS|Overflow|Permission|Recursion|Runtime|Type|"
    "UnboundLocal|UnicodeDecode|Value|ZeroDivision"
)
_BARE = re.compile(rf"^(?:{_BUILTIN})Error(?:: \S|$)")
_THROWN = re.compile(
    r"terminate called after throwing an instance of '(?P<name>[^'\n]{1,400})'|"
    r"terminating (?:due to|with) uncaught exception of type (?P<type>[\w:]{1,300}?)(?::? |$)"
)
_WHAT = re.compile(r"^\s*what\(\): {0,4}(?P<message>.*)$")

# Names and texts that a signature, or another reader, knows better.
_OTHERS_NAMES = re.compile(
    r"(?:^|\.)(?:Dist(?:Backend|Network|Store)?Error|AcceleratorError|OutOfMemoryError|"
    r"Rendezvous\w*Error|ChildFailedError|SignalException|ProcessRaisedException|"
    r"ProcessExitedException|KeyboardInterrupt|HorovodInternalError|\w*ActorError|ActorDiedError|"
    r"WorkerCrashedError|ActorUnavailableError|BaseExceptionGroup|ExceptionGroup|\w*Warning)$"
)
_OTHERS_TEXTS = re.compile(
    r"NCCL|nccl|RCCL|CUDA (?:driver )?error|HIP error|error from cudaGetDeviceCount|"
    r"out of memory|Watchdog caught|"
    r"client socket|server socket|wait timeout after|waiting for clients|Socket Timeout|"
    r"connect\(\) timed out\. Original|"
    r"monitoredBarrier|mismatch between collectives|gloo/transport|Connection closed by peer \[|"
    r"No space left on device|Input/output error|[Ss]tale (?:NFS )?file handle|"
    r"Read-only file system|Too many open files|can't start new thread|"
    r"DataLoader worker \(pid|invalid device ordinal|connectFullMesh|collective operation timeout|"
    rf"{EXHAUSTED}|{OF_THE_GPU}|{STREAM_CALL}"
)
_CPP_OF_OTHERS = re.compile(r"^(?:c10|gloo|torch|at|caffe2)::")
# What a process hears when another goes, and no more.
_HEARD = frozenset(
    {"BrokenPipeError", "ConnectionResetError", "ConnectionRefusedError", "ConnectionError"}
    | {"ConnectionAbortedError", "EOFError"}
)
# What says itself that another process raised the cause.
_ECHO = re.compile(
    r"\bSee (?:root cause above|stack trace (?:\(above\) )?for the root cause)"
    r"|Horovod has been shut down\. This was caused by"
)
_ECHO_NAME = "EngineDeadError"
_EXHAUSTED = "ResourceExhaustedError"
_OF_THE_GPU = re.compile(OF_THE_GPU)
_PATIENCE = 200
_MESSAGE_LINES = 40
_STRANGE_LINES = 60
_WHAT_LINES = 4
_MOST_BLOCKS = 4096


@dataclass(slots=True)
class _Ending:
    name: str
    message: str
    line: Line


@dataclass(slots=True)
class _Block:
    """A traceback, or the last words of a C++ program, of one stream while it is read."""

    base: int = 0
    ignored: bool = False
    thrown: bool = False
    file: str | None = None
    ending: _Ending | None = None
    causes: list[_Ending] = field(default_factory=list)
    chained: bool = False
    others: bool = False
    strange: int = 0
    heard: int = 0


class TracebackReader:
    """Turns the end of each traceback into an event, one for a chain of exceptions."""

    needles = frozenset(
        {
            b"Traceback (most recent call last)",
            b'", line ',
            b"terminate called after throwing",
            b"uncaught exception of type",
            *(_.encode() for _ in _IGNORED),
            *(f"{name}Error: ".encode() for name in _BUILTIN.split("|")),
        }
    )
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self._blocks: dict[Speaker, _Block] = {}
        self._events = EventLog()
        self._raised: list[Place] = []
        self._lines = 0

    @property
    def open(self) -> bool:
        """Whether a traceback has not come to its end."""
        return bool(self._blocks)

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take a line that begins or belongs to a traceback."""
        del hits
        self._lines += 1
        if line.level is None:
            self._take(line)
        if self._blocks and self._lines % 16 == 0:
            self._forget()

    def finish(self, evidence: LogEvidence) -> None:
        """End what is open and hand over the events."""
        for speaker in list(self._blocks):
            self._close(speaker)
        evidence.events.extend(self._events.all())
        evidence.raised.extend(self._raised)

    def _take(self, line: Line) -> None:
        text = _GROUP.sub(r"\1", line.text) if line.text.lstrip()[:1] in {"|", "+"} else line.text
        block = self._blocks.get(line.speaker)
        if thrown := _THROWN.search(text):
            self._begin(line, _Block(thrown=True))
            self._end(line, thrown["name"] or thrown["type"], "")
        elif text.lstrip().startswith(_IGNORED):
            self._begin(line, _Block(ignored=True))
        elif head := _HEAD.search(text):
            self._headed(line, text, block, original=bool(head["original"]))
        elif frame := _FRAME.match(text):
            self._framed(line, block, frame)
        elif block is None:
            if _BARE.match(text) and (bare := _NAMED.match(text)):
                self._alone(line, bare)
        elif text.strip():
            block.heard = self._lines
            self._within(line, text, block)

    def _begin(self, line: Line, block: _Block) -> None:
        self._close(line.speaker)
        if len(self._blocks) < _MOST_BLOCKS:
            block.heard = self._lines
            self._blocks[line.speaker] = block

    def _headed(self, line: Line, text: str, block: _Block | None, *, original: bool) -> None:
        base = len(text) - len(text.lstrip())
        if block and (block.chained or original or (block.ignored and not block.file)):
            if block.ending:
                block.causes.append(block.ending)
                block.ending = None
            block.base, block.chained, block.heard = base, False, self._lines
            return
        self._begin(line, _Block(base=base))

    def _framed(self, line: Line, block: _Block | None, frame: re.Match[str]) -> None:
        base = max(0, len(frame["indent"]) - 2)
        if block is None or block.ending:
            if block and block.ending and "RayTaskError" in block.ending.name:
                block.causes.append(block.ending)
                block.ending = None
            else:
                self._begin(line, _Block(base=base))
            block = self._blocks.get(line.speaker)
        if block:
            block.file, block.heard, block.strange = frame["file"], self._lines, 0
            block.base = max(block.base, base)

    def _within(self, line: Line, text: str, block: _Block) -> None:
        if text.lstrip().startswith(_CHAIN):
            block.chained = True
            return
        if block.ending:
            self._after(line, text, block)
            return
        named = _NAMED.match(text)
        if named and len(named["indent"]) <= block.base + 1:
            self._end(line, named["name"] + (named["inner"] or ""), named["message"] or "")
            return
        block.strange += 1
        if block.strange > _STRANGE_LINES:
            self._close(line.speaker)

    def _after(self, line: Line, text: str, block: _Block) -> None:
        """Take what may be more of the message."""
        if what := _WHAT.match(text):
            block.others = block.others or bool(_OTHERS_TEXTS.search(what["message"]))
        elif block.ending and block.ending.name.endswith(_EXHAUSTED):
            # The allocator is named below "Graph execution error:".
            block.others = block.others or bool(_OF_THE_GPU.search(text))
        block.strange += 1
        if block.strange > (_WHAT_LINES if block.thrown else _MESSAGE_LINES):
            self._close(line.speaker)

    def _end(self, line: Line, name: str, message: str) -> None:
        block = self._blocks.get(line.speaker)
        if block:
            block.ending = _Ending(name, message[:400], line)
            block.strange = 0

    def _alone(self, line: Line, named: re.Match[str]) -> None:
        """Keep an exception whose traceback was not printed, or was cut away."""
        ending = _Ending(named["name"], named["message"] or "", line)
        if not _of_others(ending):
            self._keep(ending, _Block())

    def _forget(self) -> None:
        for speaker, block in list(self._blocks.items()):
            if self._lines - block.heard > _PATIENCE:
                self._close(speaker)

    def _close(self, speaker: Speaker) -> None:
        block = self._blocks.pop(speaker, None)
        if block is None or block.ignored:
            return
        chain = [*block.causes, *([block.ending] if block.ending else [])]
        if not chain:
            return
        if block.thrown and (block.others or _CPP_OF_OTHERS.match(chain[-1].name)):
            self._keep(chain[-1], block, FindingClass.COMM_ABORTED)
        elif not block.others and not any(_of_others(each) for each in chain):
            self._keep(chain[-1], block)
        elif len(self._raised) < _MOST_BLOCKS:
            self._raised += [each.line.place for each in chain]

    def _keep(
        self,
        ending: _Ending,
        block: _Block,
        class_: FindingClass = FindingClass.APPLICATION_EXCEPTION,
    ) -> None:
        name = _unwrapped(ending)
        details = {"file": block.file, "cause": block.causes[0].name if block.causes else None}
        if name.rpartition(".")[2] in _HEARD:
            details["echo"] = "connection"
        own = class_ is FindingClass.APPLICATION_EXCEPTION
        echo = _ECHO.search(ending.message) or name.endswith(_ECHO_NAME)
        self._events.add(
            Event(
                class_name=class_,
                form="terminate" if block.thrown else "traceback",
                place=ending.line.place,
                text=ending.line.shown or ending.line.text,
                speaker=ending.line.speaker,
                attributes={"exception": name} if own else {},
                details={key: value for key, value in details.items() if value},
                role=Role.CONSEQUENCE if echo else None,
                count=1 + ending.line.repeats,
            )
        )


def _of_others(ending: _Ending) -> bool:
    """Whether a signature knows the exception better."""
    return bool(_OTHERS_NAMES.search(ending.name) or _OTHERS_TEXTS.search(ending.message))


def _unwrapped(ending: _Ending) -> str:
    """The name of the exception inside a wrapper that names it."""
    if inner := re.search(r"RayTaskError\(([\w.]{1,200})\)$", ending.name):
        return inner[1]
    if caught := re.match(r"Caught ([A-Za-z_][\w.]{0,200}) in \w+", ending.message):
        return caught[1]
    return ending.name
