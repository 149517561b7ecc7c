"""Which of several places that set a variable wins, and what no job script shows."""

from collections.abc import Iterator

from ncdiag.model.environment import LintFinding, Setting
from ncdiag.profiles.rules.look import (
    Layer,
    Look,
    conf_file_of,
    file_of,
    is_user_file,
    layer_of,
    short,
)
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
        if conf_file is not None and is_user_file(setting) and file_of(setting.place) != conf_file:
            message = f"NCCL_CONF_FILE={short(conf_file)} is read in place of this file"
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


def _shadowed(setting: Setting, winner: Setting) -> LintFinding:
    return found(
        "shadowed_by",
        setting,
        f"{setting.name}={short(setting.value or '')} has no effect: "
        f"{short(winner.place)} sets {short(winner.value or '')}, and wins",
    )


def _twice(look: Look, conf_file: str | None) -> Iterator[LintFinding]:
    """Different values in one file; of a script the last counts, of a file of NCCL's the first."""
    counts: dict[tuple[str, str], Setting] = {}
    for setting in look.settings:
        key = (file_of(setting.place), setting.name)
        before = counts.get(key)
        process = layer_of(setting, conf_file) is Layer.PROCESS
        if setting.value is not None and before is not None and before.value != setting.value:
            message = (
                f"{short(before.place)} sets {short(before.value or '')} and this "
                f"{short(setting.value)}; the {'last' if process else 'first'} counts"
            )
            yield found("set_twice", setting, message)
        if setting.value is None:
            counts.pop(key, None)
        elif process or before is None:
            counts[key] = setting
