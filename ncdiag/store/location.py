"""Where the store is when nobody says."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FILE_NAME: Final = "results.sqlite"


def default_store(environment: Mapping[str, str] = os.environ) -> Path:
    """The store in the user's data directory, as the XDG base directory specification names it."""
    data = environment.get("XDG_DATA_HOME", "")
    # What is not absolute is to be ignored, says the specification.
    folder = Path(data) if data.startswith("/") else Path("~/.local/share").expanduser()
    return folder / "ncdiag" / FILE_NAME
