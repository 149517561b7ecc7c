"""The command line of netlab."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from netlab import lab, system
from netlab.config import lab_name, load, parse
from netlab.errors import NetlabError

_INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise NetlabError(f"{message} ({self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 could not be done, 2 used wrongly."""
    try:
        system.add_sbin_to_path()
        options = _parser().parse_args(argv)
        options.run(options)
    except NetlabError as error:
        message = str(error).encode("unicode_escape").decode("ascii")
        sys.stderr.write(f"netlab: {message}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("netlab: interrupted\n")
        return _INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="netlab", description="A cluster on one machine, for trying and testing.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], None], text: str
    ) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=text)
        one.set_defaults(run=run)
        return one

    one = command("up", _up, "Bring a lab up.")
    one.add_argument("file", type=Path, metavar="LAB.TOML")
    one = command("down", _down, "Remove labs, whole or half up.")
    one.add_argument("labs", nargs="*", metavar="LAB|LAB.TOML")
    one.add_argument("--all", action="store_true", help="every lab of this machine")
    one = command("status", _status, "Show labs, their faults, and how to sweep them.")
    one.add_argument("labs", nargs="*", metavar="LAB")
    one = command("break", _break, "Unplug a host while something runs.")
    one.add_argument("lab", metavar="LAB")
    one.add_argument("host", metavar="HOST")
    one.add_argument("--rail", type=int, help="this NIC only, from 0")
    one = command("slow", _slow, "Make a host, a pair or an uplink slow while something runs.")
    one.add_argument("lab", metavar="LAB")
    one.add_argument("place", metavar="HOST|LEAF")
    one.add_argument("--send", metavar="RATE", help="what the host sends")
    one.add_argument("--receive", metavar="RATE", help="what the host receives")
    one.add_argument("--to", metavar="HOST", help="only what is sent to this host")
    one.add_argument("--uplink", metavar="RATE", help="the leaf's uplink, both ways")
    one.add_argument("--rail", type=int, help="this rail only, from 0")
    one = command("heal", _heal, "Take away all faults of hosts or leaves, planted or made later.")
    one.add_argument("lab", metavar="LAB")
    one.add_argument("places", nargs="*", metavar="HOST|LEAF", help="default: everything")
    one = command("kill", _kill, "Kill all that runs on a host but its sshd.")
    one.add_argument("lab", metavar="LAB")
    one.add_argument("host", metavar="HOST")
    one = command("exec", _exec, "Run a program as if on a host.")
    one.add_argument("lab", metavar="LAB")
    one.add_argument("host", metavar="HOST")
    one.add_argument("argv", nargs=argparse.REMAINDER, metavar="PROGRAM ...")
    return parser


def _up(options: argparse.Namespace) -> None:
    tables = load(options.file)
    parse(tables)  # what is wrong with the file is said even where no lab can run
    _need_a_lab_machine()
    _print(lab.describe(lab.up(tables)))


def _down(options: argparse.Namespace) -> None:
    if not options.labs and not options.all:
        raise NetlabError("down needs a lab, its file, or --all (netlab status lists labs)")
    _need_a_lab_machine()
    for text in lab.lab_names() if options.all else options.labs:
        name = lab_name(load(Path(text))["name"]) if text.endswith(".toml") else text
        if not lab.down(name):
            sys.stderr.write(f"netlab: no lab called {name} is up\n")


def _status(options: argparse.Namespace) -> None:
    names = options.labs or lab.lab_names()
    if not names:
        sys.stdout.write("no lab is up\n")
    for name in names:
        _print(lab.describe(lab.Lab.find(name)))


def _break(options: argparse.Namespace) -> None:
    _need_a_lab_machine()
    lab.break_host(options.lab, options.host, options.rail)


def _slow(options: argparse.Namespace) -> None:
    keys = ("send", "receive", "to", "uplink", "rail")
    given = {key: value for key in keys if (value := getattr(options, key)) is not None}
    if not given.keys() & {"send", "receive", "uplink"}:
        raise NetlabError("slow needs --send, --receive or --uplink")
    _need_a_lab_machine()
    lab.slow(options.lab, {"leaf" if options.uplink else "host": options.place} | given)


def _heal(options: argparse.Namespace) -> None:
    _need_a_lab_machine()
    lab.heal(options.lab, options.places)


def _kill(options: argparse.Namespace) -> None:
    _need_a_lab_machine()
    sys.stdout.write(f"killed {lab.kill(options.lab, options.host)} processes\n")


def _exec(options: argparse.Namespace) -> None:
    if not options.argv:
        raise NetlabError("exec needs a program to run")
    _need_a_lab_machine()
    lab.execute(options.lab, options.host, options.argv)


def _need_a_lab_machine() -> None:
    if reason := system.unavailable():
        raise NetlabError(reason)


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
