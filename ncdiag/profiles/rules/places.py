"""Where settings stand: in the job, or in one of the files that NCCL reads itself."""

import re
from collections.abc import Sequence
from enum import IntEnum
from pathlib import PurePosixPath

from ncdiag.model.environment import Setting

_LINE = re.compile(r":[0-9]+\Z")


class Layer(IntEnum):
    """Where NCCL finds a value; the first that sets it wins.

    Source: NCCL 2.30.7, src/misc/param.cc.
    """

    PROCESS = 0
    USER_FILE = 1
    SYSTEM_FILE = 2


def layer_of(setting: Setting, conf_file: str | None = None) -> Layer:
    """The layer of ``setting`` by its place; ``conf_file`` is the value of NCCL_CONF_FILE."""
    path = file_of(setting.place)
    if conf_file is not None and path == conf_file:
        return Layer.USER_FILE
    name = PurePosixPath(path).name
    if name in (".nccl.conf", ".rccl.conf"):
        return Layer.USER_FILE
    return Layer.SYSTEM_FILE if name in ("nccl.conf", "rccl.conf") else Layer.PROCESS


def file_of(place: str) -> str:
    """The file of ``file:line``."""
    return _LINE.sub("", place)


def is_user_file(setting: Setting) -> bool:
    """Whether ``setting`` stands in the file that NCCL_CONF_FILE takes the place of."""
    return PurePosixPath(file_of(setting.place)).name in (".nccl.conf", ".rccl.conf")


def conf_file_of(settings: Sequence[Setting]) -> str | None:
    """The last value of NCCL_CONF_FILE outside of such files, if it is not empty."""
    found = None
    for setting in settings:
        if setting.name == "NCCL_CONF_FILE" and layer_of(setting) is Layer.PROCESS:
            found = setting.value
    return found or None


def is_unread(setting: Setting, conf_file: str | None) -> bool:
    """Whether NCCL_CONF_FILE has NCCL read another file than that of ``setting``."""
    other = conf_file is not None and file_of(setting.place) != conf_file
    return other and is_user_file(setting)
