"""``--profile`` of the commands that measure: what a profile puts into their environment."""

from collections.abc import Collection

from rich.console import Console

from ncdiag.measure.engines import ENGINES
from ncdiag.model.errors import UsageError
from ncdiag.model.text import visible
from ncdiag.profiles import placeholders, profile_files


def variables_for(profile: str | None, engine: str, messages: Console) -> dict[str, str]:
    """The variables of ``profile`` for what measures with ``engine``; none without a profile.

    What the engine decides itself, such as the NIC, is left out and told. Raises UsageError for a
    profile that cannot be loaded, or whose values differ from host to host beyond that.
    """
    if profile is None:
        return {}
    return variables_besides(ENGINES[engine].own_variables(), profile, engine, messages)


def variables_besides(
    own: Collection[str], profile: str, engine: str, messages: Console
) -> dict[str, str]:
    """The same where ``own`` are the variables that the engine sets itself."""
    loaded = profile_files.load(profile)
    placeholders.check(loaded)
    kept = [one for one in loaded.settings if one.name not in own and one.value is not None]
    for one in kept:
        if placeholders.placeholders_in(one.value):
            raise UsageError(
                f"profile {visible(loaded.name)}: {visible(one.name)} differs from host to host, "
                "and one value is needed for all that are measured; leave it out in a profile of "
                "your own"
            )
    left_out = [one.name for one in loaded.settings if one.name in own]
    if left_out:
        messages.print(
            f"profile {visible(loaded.name)}: left out, as the engine {engine} sets them itself: "
            f"{', '.join(left_out)}",
            soft_wrap=True,
        )
    return {one.name: one.value for one in kept if one.value is not None}


def check_unchanged(profile: str | None, variables: dict[str, str], engine: str) -> None:
    """Refuse to resume a sweep whose profile says something else by now.

    Raises :class:`UsageError`. So nothing of a journal gets into an environment that does not
    stand in a profile.
    """
    if variables_for(profile, engine, Console(quiet=True)) != variables:
        raise UsageError(
            f"the profile {visible(profile or 'none')} has changed since the sweep began; "
            "start a new sweep, or put the profile back"
        )
