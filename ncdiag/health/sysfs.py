"""Small files in which Linux tells of devices."""

from pathlib import Path


def read_text(path: Path) -> str | None:
    """What stands in the file, without blanks around it; ``None`` if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except (OSError, ValueError):
        return None
