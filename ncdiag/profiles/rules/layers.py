"""Which of several places that set a variable wins, and what no job script shows."""

from collections.abc import Iterator

from ncdiag.model.environment import LintFinding, Setting
from ncdiag.profiles.rules.look import Look, short
from ncdiag.profiles.rules.places import Layer, conf_file_of, file_of, is_unread, layer_of
from ncdiag.profiles.rules.scopes import replaced
from ncdiag.profiles.rules.table import found


def check(look: Look) -> Iterator[LintFinding]:
    """What layers of settings hide from each other."""
    conf_file = conf_file_of(look.settings)
    layers = [layer_of(setting, conf_file) for setting in look.settings]
    several = Layer.PROCESS in layers and any(layer is not Layer.PROCESS for layer in layers)
    for setting, layer in zip(look.settings, layers, strict=True):
        winner = look.effective.get(setting.name)
        if layer is Layer.PROCESS or setting.value is None:
            continue
        if is_unread(setting, conf_file):
            message = f"NCCL_CONF_FILE={short(conf_file or '')} is read in place of this file"
            yield found("conf_file_unread", setting, message)
        elif winner is setting:
            if several:
                message = (
                    f"{setting.name}={short(setting.value)} takes effect from "
                    f"{short(file_of(setting.place))}, and nothing in the job shows it"
                )
                yield found("hidden_layer", setting, message)
        elif (
            winner is not None
            and layer_of(winner, conf_file) is not layer
            and winner.value != setting.value
        ):
            yield _shadowed(setting, winner)
    yield from _twice(look, conf_file)
    yield from _missing(look)


def _shadowed(setting: Setting, winner: Setting) -> LintFinding:
    return found(
        "shadowed_by",
        setting,
        f"{setting.name}={short(setting.value or '')} has no effect: "
        f"{short(winner.place)} sets {short(winner.value or '')}, and wins",
    )


def _twice(look: Look, conf_file: str | None) -> Iterator[LintFinding]:
    """Different values in one scope; of a script the last counts, of a file of NCCL's the first."""
    for pair in replaced(look.settings, conf_file).items():
        before, setting = (look.settings[index] for index in sorted(pair))
        if before.value != setting.value:
            process = layer_of(setting, conf_file) is Layer.PROCESS
            message = (
                f"{short(before.place)} sets {short(before.value or '')} and this "
                f"{short(setting.value or '')}; the {'last' if process else 'first'} counts"
            )
            yield found("set_twice", setting, message)


def _missing(look: Look) -> Iterator[LintFinding]:
    """A file that is named and is not there, which NCCL passes over without a word."""
    setting = look.effective.get("NCCL_CONF_FILE")
    path = look.value("NCCL_CONF_FILE")
    if setting is not None and path in look.context.missing_files:
        message = f"there is no {short(path or '')}, and ~/.nccl.conf is not read either"
        yield found("conf_file_missing", setting, message)
