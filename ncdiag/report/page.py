"""What every page shares: its templates, its style, and a policy that lets it ask for nothing."""

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Path(__file__).parent / "templates"


def sha256(text: str) -> str:
    """How a content security policy names a style or a script that stands in the page."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def read(name: str) -> str:
    """A file that goes into a page as it is."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@cache
def environment() -> Environment:
    """The templates; everything put into them is escaped, and nothing may be missing."""
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
