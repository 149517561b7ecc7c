"""Numbers for names and texts, each of which stands in a store once."""

import sqlite3
from typing import Final, Literal

from ncdiag.store.redact import redacted_text

# Errors that name their link differ on every link; what is said a thousand times is enough.
_MAX_READ_CHARS: Final = 4096
_MAX_CHARS: Final = 300
_MAX_TEXTS: Final = 1000
_MORE: Final = "one of many different texts; the report has them all"

_FIND: Final = {
    "names": "SELECT id FROM names WHERE name = ?",
    "texts": "SELECT id FROM texts WHERE text = ?",
}
_ADD: Final = {
    "names": "INSERT INTO names (name) VALUES (?)",
    "texts": "INSERT INTO texts (text) VALUES (?)",
}


class Numbering:
    """Finds the number of a name or a text, or gives it one, within a caller's transaction."""

    def __init__(
        self,
        database: sqlite3.Connection,
        table: Literal["names", "texts"],
        *,
        most: int = _MAX_TEXTS,
    ) -> None:
        self._database = database
        self._table = table
        self._most = most
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        """The number of ``text``, from 1; 0 for none. Of texts only the beginning is kept."""
        if not text:
            return 0 if self._table == "texts" else self._stored("")
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = self._stored(self._kept(text))
        return number

    def _kept(self, text: str) -> str:
        if self._table == "names":
            return storable(text)
        if len(self._numbers) >= self._most:
            return _MORE
        return storable(redacted_text(text[:_MAX_READ_CHARS])[:_MAX_CHARS])

    def _stored(self, text: str) -> int:
        found = self._database.execute(_FIND[self._table], (text,)).fetchone()
        if found is not None:
            return int(found[0])
        added = self._database.execute(_ADD[self._table], (text,)).lastrowid
        return int(added or 0)


def storable(text: str) -> str:
    """``text`` with half surrogate pairs, which no database can hold, written as escapes."""
    return text.encode(errors="backslashreplace").decode()
