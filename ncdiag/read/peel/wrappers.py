"""What launchers, collectors, terminals and loggers put before a line: one row a form.

A row's named groups say what the wrapper proves: ``host``, ``pid``, ``rank``, ``label``,
``address``, ``location``, ``time``, ``uptime`` (seconds) and ``uptime_us``.
"""

import re
from enum import IntEnum
from functools import cache
from typing import NamedTuple


class Proof(IntEnum):
    """How much a form proves of itself, and how much it needs after it to be believed."""

    NOTHING = 0
    TIME = 1
    SURE = 2
    AGAIN = 3  # what is sure, after words that other lines begin with as well; a whole header


class Wrapper(NamedTuple):
    """One form of one wrapper.

    ``opening`` are the characters it may begin with: ``0`` any digit, ``a`` any letter.
    ``needs`` is the proof that must follow, unless the form (or its host) was proved before;
    ``proves`` is what it proves for those before it. ``quoted`` is kept in ``Line.shown``.
    """

    name: str
    opening: str
    form: str
    origin: str | None = None
    needs: Proof = Proof.NOTHING
    proves: Proof = Proof.SURE
    quoted: bool = False

    def match(self, text: str, start: int) -> re.Match[str] | None:
        """This wrapper at ``start``."""
        return _compiled(self.form).match(text, start)


@cache
def _compiled(form: str) -> re.Pattern[str]:
    """Compiled when it is first needed: of all forms a log needs a few."""
    return re.compile(form, re.ASCII)


_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_ISO = rf"\d{{4}}-\d\d-\d\d[T _]{_CLOCK}{_ZONE}"
_ISO_OFFSET = rf"\d{{4}}-\d\d-\d\dT{_CLOCK}[+-]\d\d:?\d\d"
_BSD = rf"{_MONTH} {{1,2}}\d{{1,2}} {_CLOCK}"
_CTIME = rf"{_DAY} {_MONTH} {{1,2}}\d{{1,2}} {_CLOCK}(?: [A-Z]{{3,4}})? \d{{4}}"
_HOST = r"[A-Za-z0-9][\w.-]{0,252}"
# What comes before a colon: a host that is one of a list has a digit.
_LISTED_HOST = (
    r"(?=[^\s:]*\d)(?!(?:\w*(?:Error|Exception|Warning)|python[\d.]*|mlx\d|libmlx\d|exit\d*"
    rf"|rank_?\d+|[A-Z]+\d*): )(?P<host>{_HOST})"
)
_WRITERS = r"(?P<kernel>kernel)|(?P<slurm>slurm(?:d|stepd|ctld|dbd))|(?P<fabric>nv-fabricmanager)"
_WRITER = (
    rf"(?P<host>{_HOST}) (?:{_WRITERS}|[^\s:\[\]]{{1,64}})(?:\[(?P<pid>\d{{1,10}})\])?:(?: |$)"
)
# Where other text looks alike, a program that is not known must give its process.
_SURE_WRITER = (
    rf"(?P<host>{_HOST}) (?:(?:{_WRITERS})(?:\[\d{{1,10}}\])?"
    r"|[^\s:\[\]]{1,64}\[(?P<pid>\d{1,10})\]):(?: |$)"
)
# "kern.err", as some daemons write before the program.
_FACILITY = (
    r"(?:kern|user|mail|daemon|auth|authpriv|syslog|cron|local[0-7])\."
    r"(?:emerg|alert|crit|err|error|warning|warn|notice|info|debug)"
)
_UPTIME = r"\[ *(?P<uptime>\d{1,9}\.\d{3,9})(?: <[ \d.]{1,20}>)?\](?:\[ *[TC]\d{1,10}\])? ?"
_KIND = r"(?:\[(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\]|DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)"
# Pairs before that of a message, of which one may be a time.
_PAIRS = (
    rf"(?:(?:ts|time|timestamp)=\"?(?P<time>{_ISO})\"? "
    r"|(?!(?:ts|time|timestamp)=\"?\d{4}-)[A-Za-z_][\w.]{0,32}="
    r"(?:\"[^\"]{0,200}\"|[^\s\"]{1,200}) ){1,8}"
)


def _row(
    name: str,
    opening: str,
    pattern: str,
    origin: str | None = None,
    *,
    needs: Proof = Proof.NOTHING,
    proves: Proof = Proof.SURE,
    quoted: bool = False,
) -> Wrapper:
    return Wrapper(name, opening, pattern, origin, needs, proves, quoted)


def _weak(name: str, opening: str, pattern: str, needs: Proof = Proof.TIME) -> Wrapper:
    return _row(name, opening, pattern, needs=needs, proves=Proof.NOTHING)


def _stamp(name: str, opening: str, pattern: str, origin: str | None = None) -> Wrapper:
    return _row(name, opening, pattern, origin, proves=Proof.TIME, quoted=True)


def _header(name: str, opening: str, pattern: str) -> Wrapper:
    """A time, a host and a program: what stands before them is no part of the message."""
    return _row(name, opening, pattern, "syslog", proves=Proof.AGAIN, quoted=True)


_TIGHT = _weak("n:text", "0", r"(?P<number>\d{1,9})[:|]", needs=Proof.SURE)
# In order: of the rows that match at a place, the first counts.
WRAPPERS: tuple[Wrapper, ...] = (
    # torch
    _row(
        "rank",
        "[",
        r"\[rank(?:(?:: ?|=)(?=\d+\] )|(?=\d+\]:))(?P<rank>\d{1,7})\](?::? ?\|\| ?|:? ?)",
        "torch",
        quoted=True,
    ),
    _row(
        "c10",
        "[",
        rf"\[[EWIF](?P<time>\d{{3,4}} {_CLOCK})? (?P<location>[\w./-]{{1,200}}\.\w{{1,4}}:\d+)\] ?",
        "torch",
        quoted=True,
    ),
    _row(
        "glog",
        "a",
        rf"[IWEFV](?P<time>(?:20\d\d)?\d{{4}} {_CLOCK}) +(?P<thread>\d{{1,20}}) "
        r"(?P<location>[^\s\]]{1,400}:\d+)\] ?",
        quoted=True,
    ),
    # MPI
    _row(
        "mpirun",
        "[",
        r"\[(?P<label>\d{1,9}(?:,(?:mpirank:)?\d{1,9})?)(?:,(?P<host>algo-\d+))?\]"
        r"<(?:stdout|stderr|stddiag)>:",
        "mpi",
    ),
    _row(
        "prterun",
        "[",
        r"\[[\w.-]{1,255}@(?P<label>\d{1,9}(?:,\d{1,9})?)\]<(?:stdout|stderr|stddiag)>: ?",
        "mpi",
    ),
    # Ray; the first names are processes of vLLM, which labels its lines alike
    _row(
        "worker",
        "(",
        r"\((?:VllmWorker\w*|EngineCore\w*|APIServer\w*|ApiServer\w*|Worker(?:_\w+)?)"
        r" pid=(?P<pid>\d{1,10})\) ?",
    ),
    _row(
        "ray",
        "(",
        r"\((?:[^()\s]{1,200} ?(?:\([^()]{0,100}\))? ?)?pid=(?P<pid>\d{1,10})"
        r"(?:, ip=(?P<address>[^\s()]{1,64}))?\) ?",
        "ray",
    ),
    _row(
        "skypilot",
        "(",
        r"\((?P<label>head|worker\d+), rank=\d+, pid=\d+(?:, ip=(?P<address>[^\s()]{1,64}))?\) ?",
    ),
    _row("raylet", "(", r"\((?:raylet|gcs_server|autoscaler)[^()]{0,100}\) ", "ray"),
    # containers
    _row("cri", "0", rf"(?P<time>{_ISO}) (?P<stream>stdout|stderr) (?P<part>[PF])(?::\S*)?(?: |$)"),
    _row(
        "aws logs",
        "0",
        rf"(?P<time>{_ISO}) (?P<label>[\w.-]{{1,128}}(?:/[\w.-]{{1,128}}){{0,3}}/"
        r"(?:(?P<host>algo-\d{1,5})-1[5-9]\d{8}|[0-9a-f]{32}))(?: |$)",
    ),
    _row("kubectl", "[", r"\[(?P<label>pod/[^\s\]/]{1,253}/[^\s\]]{1,253})\] ?"),
    _row("compose", "a0", r"(?P<label>[A-Za-z0-9][\w.-]{0,128}[_-]\d{1,5}) {1,64}\|(?: |$)"),
    _row(
        "swarm",
        "a0",
        rf"(?P<label>[A-Za-z0-9][\w-]{{0,128}}\.\d{{1,5}}\.\w{{1,64}})@(?P<host>{_HOST})"
        r" {1,64}\|(?: |$)",
    ),
    _row("service", "a", r"(?P<label>[A-Za-z][\w.-]{0,128}) {1,64}\| ", needs=Proof.SURE),
    # kernel and system logs
    _row("dmesg -x", "a", r"[a-z]+\d? *:[a-z]+ *: ", "kernel", needs=Proof.TIME, quoted=True),
    _header(
        "syslog 5424",
        "<",
        rf"<\d{{1,3}}>1 (?P<time>{_ISO}|-) (?:-|(?P<host>{_HOST})) "
        rf"(?:{_WRITERS}|\S{{1,64}}) "
        r"(?:(?P<pid>\d{1,10})|\S{1,128}) \S{1,64} (?:-|(?:\[[^\]]*\])+) ?\ufeff?",
    ),
    _header(
        "syslog facility",
        "a0",
        rf"(?P<time>{_BSD}|{_ISO}) (?P<host>{_HOST}) {_FACILITY} (?:{_WRITERS}|[^\s:\[\]]{{1,64}})"
        r"(?:\[(?P<pid>\d{1,10})\])?:(?: |$)",
    ),
    _header(
        "syslog",
        "<a0",
        rf"(?:<\d{{1,3}}>)?(?P<time>{_BSD}|{_ISO_OFFSET}) {_WRITER}",
    ),
    _header(
        "syslog utc",
        "0",
        rf"(?P<time>{_ISO}) {_SURE_WRITER}",
    ),
    _header(
        "journal",
        "a",
        rf"(?P<time>{_DAY} \d{{4}}-\d\d-\d\d {_CLOCK} [A-Z+-][\w:+-]{{1,5}}) {_WRITER}",
    ),
    _header(
        "journal uptime",
        "[",
        rf"{_UPTIME}{_SURE_WRITER}",
    ),
    _header(
        "journal epoch",
        "0",
        rf"(?P<time>1\d{{9}}\.\d{{6}}) {_SURE_WRITER}",
    ),
    _row("kernel:", "<a", r"(?:<\d{1,3}>)?kernel: ", "kernel", quoted=True),
    _row(
        "host kernel:",
        "a0",
        rf"(?P<host>{_HOST}) kernel: ",
        "kernel",
        needs=Proof.SURE,
        quoted=True,
    ),
    _row("dmesg", "<[", rf"(?:<\d{{1,3}}>)?{_UPTIME}", "kernel", quoted=True, proves=Proof.TIME),
    _row(
        "dmesg -T", "[", rf"\[(?P<time>{_CTIME})\](?: |$)", "kernel", quoted=True, proves=Proof.TIME
    ),
    _row(
        "dmesg -e",
        "[",
        rf"\[(?:(?P<time>{_MONTH}\d\d \d\d:\d\d)| +\+\d+\.\d+)\] ?",
        "kernel",
        quoted=True,
        proves=Proof.TIME,
    ),
    _row(
        "dmesg iso",
        "0",
        r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d) ",
        "kernel",
        quoted=True,
        proves=Proof.TIME,
    ),
    _row(
        "kmsg", "0", r"\d{1,5},\d{1,20},(?P<uptime_us>\d{1,17}),[^;]{1,64};", "kernel", quoted=True
    ),
    _row(
        "fabric manager",
        "[",
        rf"\[(?P<time>{_MONTH} {{1,2}}\d{{1,2}} \d{{4}} {_CLOCK})\] \[[A-Z]+\] \[tid \d+\] ?",
        "fabric-manager",
        quoted=True,
    ),
    # time stamps
    _stamp("iso", "0", rf"(?P<time>{_ISO})(?:: |[ \t]|$|(?=\[))"),
    _stamp("[iso]", "[", rf"\[(?P<time>{_ISO})\]:? ?"),
    _stamp(
        "slashed",
        "[0",
        rf"\[?(?P<time>\d{{1,4}}/\d\d/\d{{2,4}},? {_CLOCK}(?: [AP]M)?)\]?(?:: | |$)",
    ),
    _stamp("ctime", "[a", rf"\[?(?P<time>{_CTIME})\]?(?:: | |$|(?=\[))"),
    _stamp("bsd", "[a", rf"\[?(?P<time>{_BSD})\]?(?: |$)"),
    _stamp("epoch", "[0", r"\[?(?P<time>1[5-9]\d{8}(?:\.\d{1,9})?)\]?(?: |$)"),
    _stamp("clock", "0", rf"(?P<time>{_CLOCK})(?: |$)"),
    _stamp("[clock]", "[", rf"\[(?P<time>{_CLOCK})\](?: |$)"),
    _stamp("nemo", "[", rf"\[NeMo [A-Z] (?P<time>{_ISO}) [\w.-]+:\d+\] ?"),
    # loggers that put a whole program's output under their own names
    _row("logfmt", "a_", rf"{_PAIRS}(?:msg|message|log|line|text)=\"", quoted=True),
    _row(
        "log4j",
        "a[",
        rf"(?:{_KIND} {{1,4}}\[[^\]\s]{{1,100}}\]|\[[^\]\s]{{1,100}}\] {_KIND}) {{1,4}}"
        r"[A-Za-z_][\w.$]{0,200} {1,4}-(?: |$)",
        quoted=True,
    ),
    # the level and name of Python's logging
    _row(
        "logging",
        "-|a[_",
        rf"(?:{_KIND}:[\w.]{{1,200}}:|(?:[-|] )?(?:[\w.]{{1,100}} [-|] )?{_KIND} *(?:[-:|] ?)*"
        r"(?:[\w.:<>]{1,200}(?: -|:) )?)",
        needs=Proof.SURE,
        proves=Proof.NOTHING,
        quoted=True,
    ),
    # launchers' labels, and numbers of lines: no rank
    _row("torchrun", "[", r"\[(?P<label>(?!rank)[A-Za-z_][\w.-]{0,64}?\d{1,7})\]: ?"),
    _weak("[n]", "[", r"\[(?P<label>\d{1,9})\](?: |$)"),
    _weak("n:", " 0", r" *(?P<label>\d{1,9}):(?: |$)"),
    _weak("n tab", " 0", r" *(?P<number>\d{1,9})(?:\t| ?\u2192)"),
    _weak("n|", " 0", r" *(?P<number>\d{1,9}) ?[|\u2502] ?", needs=Proof.SURE),
    _weak("n", " 0", r" *(?P<number>\d{1,7})(?: |$)", needs=Proof.SURE),
    _TIGHT,
    _weak("file:", "a0./_-", r"[\w./-]{1,255}\.(?:log|out|err|txt)[\w.]{0,16}[:-](?:\d{1,9}[:-])?"),
    _row("host:", "a0", rf"{_LISTED_HOST}: ", "pdsh", needs=Proof.SURE, proves=Proof.NOTHING),
    # pods and hosts as some launchers and collectors name them, without a mark of their own
    _row(
        "stern",
        "a0",
        r"(?P<label>[a-z0-9]+(?:-[a-z0-9]+){0,20}-(?:\d{1,5}|[b-df-hj-np-tv-xz2-9]{5})) "
        r"[a-z][a-z0-9-]{1,62} ",
        needs=Proof.AGAIN,
        proves=Proof.NOTHING,
    ),
    _row(
        "[host]",
        "[",
        r"\[(?P<label>(?!rank)(?=[a-z.-]*\d)[a-z][a-z0-9]*(?:[-.][a-z0-9]+){1,20})\] ",
        needs=Proof.AGAIN,
        proves=Proof.NOTHING,
    ),
    # quotes
    _row("quote", ">", r">(?!>>)(?:[> ]*> ?| |$)", proves=Proof.NOTHING),
    _weak("quote'", ">", r">+", needs=Proof.SURE),
    _weak("fence", "`~|", r"(?:`{1,8}|~{3,8}|\|) *", needs=Proof.SURE),
    _weak("blanks", " \t", r"[ \t]{1,400}(?=\S)", needs=Proof.SURE),
)


def _may_begin(row: Wrapper, character: str) -> bool:
    if character.isdigit():
        return "0" in row.opening
    return ("a" if character.isalpha() else character) in row.opening


class _Trial(NamedTuple):
    """All rows that may begin with one character, as one pattern: a group a row."""

    pattern: re.Pattern[str]
    rows: tuple[Wrapper, ...]


_NAMED = re.compile(r"\(\?P<\w+>")
_CHARACTERS = frozenset(map(chr, (9, *range(32, 127))))


@cache
def _trial(character: str) -> _Trial | None:
    rows = tuple(row for row in WRAPPERS if _may_begin(row, character))
    forms = (_NAMED.sub("(?:", row.form) for row in rows)
    return _Trial(_compiled("|".join(f"({form})" for form in forms)), rows) if rows else None


def match(text: str, start: int) -> tuple[Wrapper, re.Match[str]] | None:
    """The first row that matches at ``start``."""
    character = text[start : start + 1]
    trial = _trial(character) if character in _CHARACTERS else None
    tried = trial.pattern.match(text, start) if trial else None
    if not trial or not tried or not tried.lastindex:
        return None
    row = trial.rows[tried.lastindex - 1]
    found = row.match(text, start)
    return (row, found) if found else None


def tight(text: str, start: int) -> tuple[Wrapper, re.Match[str]] | None:
    """A line's number at ``start`` that no blank parts from the text."""
    found = _TIGHT.match(text, start)
    return (_TIGHT, found) if found else None
