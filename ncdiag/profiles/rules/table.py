"""The rules of the lint: id, severity, what is wrong, and how to put it right."""

from dataclasses import dataclass
from typing import Final

from ncdiag.model.environment import LintFinding, LintSeverity, Setting

_ERROR, _WARNING, _INFO = LintSeverity.ERROR, LintSeverity.WARNING, LintSeverity.INFO


@dataclass(frozen=True, slots=True)
class Rule:
    """``severity`` is the one a finding has unless less is known than the rule would like to."""

    id: str
    severity: LintSeverity
    what: str
    fix: str


def found(
    rule: str,
    setting: Setting,
    message: str,
    fix: str | None = None,
    severity: LintSeverity | None = None,
) -> LintFinding:
    """A finding of ``rule`` at ``setting``, with the rule's own fix and severity unless given."""
    row = RULES[rule]
    return LintFinding(
        rule=rule,
        severity=severity or row.severity,
        variable=setting.name,
        place=setting.place,
        message=message,
        fix=fix or row.fix,
    )


_NAMES = (
    Rule("unknown_name", _ERROR, "no program reads a variable of this name", "correct the name"),
    Rule(
        "near_known_name",
        _WARNING,
        "one letter from a name of this program that is known",
        "correct the name",
    ),
    Rule("read_by_nobody", _ERROR, "a name that is often written and that nobody reads", "drop it"),
    Rule("name_letter_case", _ERROR, "names are upper case", "write the name in upper case"),
    Rule("name_blanks", _ERROR, "a blank belongs to the name", "take the blanks away"),
    Rule(
        "renamed", _ERROR, "only older releases read this name", "write the name that is read now"
    ),
    Rule("removed", _ERROR, "only older releases read this name", "drop it"),
    Rule("too_new", _ERROR, "this NCCL is too old to read it", "use a newer NCCL, or drop it"),
    Rule("deprecated", _WARNING, "still read, and going away", "use what took its place"),
    Rule(
        "pytorch_alias",
        _WARNING,
        "an old name that only PyTorch reads",
        "write PyTorch's present name",
    ),
    Rule("undocumented", _INFO, "NCCL's own, and may change without notice", "drop it"),
)
_VALUES = (
    Rule("not_an_integer", _ERROR, "no number, so the default is used", "write a number"),
    Rule("trailing_text", _WARNING, "what follows the number is not read", "write the number only"),
    Rule("octal", _WARNING, "a number with a leading 0 is octal", "leave the leading 0 out"),
    Rule("out_of_range", _ERROR, "outside of what is allowed", "write a value that is allowed"),
    Rule("not_a_boolean", _WARNING, "neither 0 nor 1", "write 0 or 1"),
    Rule("letter_case", _ERROR, "the case of the letters matters here", "write it as listed"),
    Rule("unknown_choice", _ERROR, "not one of the values that are known", "choose a known value"),
    Rule("value_too_new", _ERROR, "this NCCL does not know the value", "use a newer NCCL"),
    Rule("not_an_address", _ERROR, "not host:port", "write host:port, or [IPv6]:port"),
    Rule("empty_value", _INFO, "set to nothing, which is as if it were not set", "unset it"),
    Rule("quotes_in_value", _ERROR, "the quotes belong to the value", "take the quotes away"),
    Rule("blanks_in_value", _ERROR, "the blanks belong to the value", "take the blanks away"),
    Rule("carriage_return", _ERROR, "a carriage return ends the value", "run dos2unix on the file"),
    Rule("ib_timeout_infinite", _WARNING, "a lost NIC is waited for for ever", "write 1 to 31"),
)
_DEVICES = (
    Rule("matches_nothing", _ERROR, "the list selects no device", "name devices that exist"),
    Rule(
        "missing_on_some_hosts",
        _ERROR,
        "the list selects no device on some of the hosts",
        "name what every host has, or set it for each host",
    ),
    Rule("no_such_device", _WARNING, "an entry of the list matches nothing", "drop the entry"),
    Rule(
        "prefix_also_matches",
        _WARNING,
        "names are prefixes, and this one matches more",
        "put = at the front of the list for exact names",
    ),
    Rule("list_blanks", _ERROR, "a blank belongs to the name in a list", "take the blanks away"),
    Rule("inner_caret", _ERROR, "^ counts at the front only", "put ^ at the front"),
    Rule("inner_equals", _ERROR, "= counts at the front only", "put = at the front, once"),
    Rule("sign_order", _ERROR, "^ must stand before =", "write ^="),
    Rule("bad_port", _ERROR, "no port has this number", "write a port from 1 on, or none"),
    Rule("list_too_long", _ERROR, "only the first 32 entries are read", "use prefixes"),
    Rule("excludes_all", _ERROR, "^ without names takes every device away", "name devices"),
    Rule("list_ignored", _WARNING, "one letter is too short and not read", "write a whole name"),
    Rule(
        "loopback", _WARNING, "this interface reaches no other host", "name the network's interface"
    ),
)
_CONFLICTS = (
    Rule("ib_off_but_tuned", _WARNING, "InfiniBand is off and yet tuned", "drop one of both"),
    Rule("ib_off_but_wanted", _ERROR, "InfiniBand is off and required", "drop one of both"),
    Rule("unknown_net", _ERROR, "no network calls itself so", "write IB or Socket"),
    Rule("p2p_off", _WARNING, "GPUs do not reach each other directly", "drop it"),
    Rule("shm_off", _WARNING, "processes of a host do without shared memory", "drop it"),
    Rule(
        "p2p_level_without_effect",
        _WARNING,
        "NCCL_P2P_DISABLE=1 wins over NCCL_P2P_LEVEL",
        "drop one of both",
    ),
    Rule("gpudirect_off", _WARNING, "NICs do not reach GPU memory", "drop it"),
    Rule("algorithm_forced", _WARNING, "one choice for every size and collective", "drop it"),
    Rule("ll128_forced", _WARNING, "LL128 corrupts data where it is not supported", "drop it"),
    Rule("gid_index_fixed", _WARNING, "the index shifts when addresses change", "drop it"),
    Rule("too_many_sockets", _WARNING, "more than 64 sockets a connection", "lower one of both"),
    Rule("min_over_max", _ERROR, "the least is more than the most", "swap the numbers"),
    Rule("cumem_off", _WARNING, "NVLS and multi-node NVLink need cuMem", "drop it"),
    Rule("hostid_constant", _WARNING, "one id makes all hosts look like one", "set it per host"),
    Rule("cross_nic_on_rails", _WARNING, "traffic leaves its rail", "write 0 or 2"),
    Rule(
        "file_of_another_machine",
        _WARNING,
        "one file describes hosts that differ",
        "make a file for each kind of host",
    ),
    Rule("both_names_set", _WARNING, "old and new name say different things", "drop the old one"),
    Rule(
        "blocking_wait_and_async",
        _WARNING,
        "blocking wait leaves asynchronous error handling without effect",
        "drop one of both",
    ),
    Rule("recorder_off", _WARNING, "a dump of an empty flight recorder", "give it a size"),
)
_DEBUGGING = (
    Rule(
        "log_flood",
        _WARNING,
        "a log that grows without end with a large job",
        "name the subsystems that are needed, such as INIT,NET,ENV",
    ),
    Rule(
        "shared_log_file",
        _WARNING,
        "processes write over each other's log",
        "put %h and %p into the name",
    ),
    Rule(
        "debug_without_effect", _WARNING, "the level is too low for it", "set NCCL_DEBUG=INFO too"
    ),
    Rule("slow_checks", _WARNING, "every collective is checked between ranks", "drop it"),
)
_LAYERS = (
    Rule("shadowed_by", _WARNING, "another place sets it, and wins", "keep one of both"),
    Rule("hidden_layer", _INFO, "a file sets it that the job does not show", "say it in the job"),
    Rule("conf_file_unread", _WARNING, "NCCL_CONF_FILE takes this file's place", "move it there"),
    Rule("conf_file_missing", _ERROR, "the file is not there", "write the file, or drop the name"),
    Rule("set_twice", _INFO, "two values in one place", "keep one of both"),
)

RULES: Final = {
    rule.id: rule for rule in (*_NAMES, *_VALUES, *_DEVICES, *_CONFLICTS, *_DEBUGGING, *_LAYERS)
}
"""Every rule by its id, in the order of the documentation."""
