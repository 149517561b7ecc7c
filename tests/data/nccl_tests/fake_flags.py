# Plain Python without types: started thousands of times, and the standard library is all it has.
# ruff: noqa: ANN001, ANN201, ANN202, ANN204, T201
"""The command line of nccl-tests, as each version knows it."""

import getopt
import sys

# Letter: long name, argument shown in the usage, default, since.
_FLAGS = {
    "t": ("nthreads", "num threads", 1, (2, 0)),
    "g": ("ngpus", "gpus per thread", 1, (2, 0)),
    "b": ("minbytes", "min size in bytes", 32 << 20, (2, 0)),
    "e": ("maxbytes", "max size in bytes", 32 << 20, (2, 0)),
    "i": ("stepbytes", "increment size", 1 << 20, (2, 0)),
    "f": ("stepfactor", "increment factor", 1, (2, 0)),
    "n": ("iters", "iteration count", 20, (2, 0)),
    "m": ("agg_iters", "aggregated iteration count", 1, (2, 0)),
    "w": ("warmup_iters", "warmup iteration count", None, (2, 0)),
    "N": ("run_cycles", "cycle count", 1, (2, 13, 10)),
    "p": ("parallel_init", "0/1", 0, (2, 0)),
    "c": ("check", "check iteration count", 1, (2, 0)),
    "o": ("op", "sum/prod/min/max/avg/mulsum/all", "sum", (2, 0)),
    "d": ("datatype", "nccltype/all", "float", (2, 0)),
    "r": ("root", "root", 0, (2, 0)),
    "z": ("blocking", "0/1", 0, (2, 0)),
    "y": ("stream_null", "0/1", 0, (2, 13, 4)),
    "T": ("timeout", "time in seconds", 0, (2, 13, 4)),
    "G": ("cudagraph", "num graph launches", 0, (2, 10)),
    "C": ("report_cputime", "0/1", 0, (2, 13, 4)),
    "S": ("report_timestamps", "0/1", 0, (2, 17, 6)),
    "J": ("output_file", "file", "", (2, 17, 3)),
    "a": ("average", "0/1/2/3", 1, (2, 10)),
    "R": ("local_register", "0/1/2", 0, (2, 13, 10)),
    "x": ("cta_policy", "0/1/2", -1, (2, 17, 0)),
    "D": ("device_implementation", "implementation number", 0, (2, 17, 0)),
    "V": ("device_cta_count", "number", 16, (2, 17, 0)),
    "M": ("memory", "0/1", 0, (2, 17, 7)),
    "u": ("unalign", "bytes", 0, (2, 18, 0)),
    "I": ("per_iter_timing", "0/1", 0, (2, 19, 2)),
    "K": ("per_iter_skip", "count", 0, (2, 19, 6)),
}
_RCCL = {
    "Y": ("memory_type", "coarse/fine/host/managed", "coarse"),
    "s": ("stress_cycles", "number of cycles", 1),
    "U": ("cumask", "d0,d1,d2,d3", ""),
    "O": ("out_of_place", "0/1", 0),
    "F": ("cache_flush", "0/1", 0),
    "E": ("rotating_tensor", "0/1", 0),
    "q": ("delay", "microseconds", 0),
}
_NOT_OF_RCCL = set("NxJDVSMuIK")
_TEXTS = set("odJUY")
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}
OPS = ("sum", "prod", "max", "min", "avg", "mulsum")
TYPES = {
    "int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "half": 2,
    "float": 4, "double": 8, "bfloat16": 2, "f8e4m3": 1, "f8e5m2": 1,
}  # fmt: skip


class End(Exception):  # noqa: N818 - it need not be an error
    """The program ends with ``code`` before it has begun."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class Flags:
    """The value of each option, by its letter."""


def known(version):
    """The options of a version: letter to long name, argument and default."""
    flags = {}
    for letter, (name, argument, default, since) in _FLAGS.items():
        if version.since(*since) and not (version.rccl and letter in _NOT_OF_RCCL):
            flags[letter] = (name, argument, default)
    if version.rccl:
        # The letters mean other things there.
        flags.update(_RCCL)
    return flags


def parse(program, arguments, version):
    """The options given; raises End where the program only says something and ends."""
    flags = known(version)
    try:
        given, _ = getopt.gnu_getopt(
            arguments,
            "h" + "".join(f"{letter}:" for letter in flags),
            ["help", *(f"{name}=" for name, _, _ in flags.values())],
        )
    except getopt.GetoptError as error:
        if "requires argument" in error.msg:
            sys.stderr.write(f"{program}: option requires an argument -- '{error.opt}'\n")
        elif len(error.opt) > 1:
            sys.stderr.write(f"{program}: unrecognized option '--{error.opt}'\n")
        else:
            sys.stderr.write(f"{program}: invalid option -- '{error.opt}'\n")
        print("invalid option '?'")
        usage(program, flags)
        raise End(0) from None
    if any(option in {"-h", "--help"} for option, _ in given):
        usage(program, flags)
        raise End(0)
    result = Flags()
    for letter, (_, _, default, *_) in {**_FLAGS, **_RCCL}.items():
        setattr(result, letter, default)
    result.w = version.warmup
    letters = {name: letter for letter, (name, _, _) in flags.items()}
    for option, text in given:
        letter = letters[option[2:]] if option.startswith("--") else option[1]
        setattr(result, letter, _value(letter, text, flags[letter][0]))
    if result.b > result.e:
        sys.stderr.write(f"invalid sizes for 'minbytes' and 'maxbytes': {result.b} > {result.e}\n")
        raise End(255)
    if result.J and not result.J.endswith(".json"):
        print("Only .json files are supported for output, ignoring", result.J)
        result.J = ""
    return result


def _value(letter, text, name):
    if letter in "bei":
        unit = _UNITS.get(text[-1:].upper(), 0)
        try:
            return int(float(text[:-1] if unit else text)) << unit
        except ValueError:
            sys.stderr.write(f"invalid size specified for '{name}'\n")
            raise End(255) from None
    if letter == "r" and text == "all":
        return -1
    if letter in _TEXTS:
        return text
    try:
        return int(text, 0)
    except ValueError:
        return 0  # as strtol has it


def usage(program, flags):
    """What -h prints."""
    lines = [f"[-{letter},--{name} <{argument}>]" for letter, (name, argument, _) in flags.items()]
    print(f"USAGE: {program} \n\t" + " \n\t".join([*lines, "[-h,--help]"]))
