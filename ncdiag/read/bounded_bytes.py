"""Bytes that arrive in pieces and are needed whole, up to a limit of size."""


class BoundedBytes:
    """Keeps what it is given until there is more than ``limit`` bytes; then it keeps nothing."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._pieces: list[bytes] = []
        self.too_large = False

    def add(self, piece: bytes) -> None:
        """Keep a copy of ``piece``."""
        self._size += len(piece)
        if self._size > self._limit:
            self.too_large = True
            self._pieces.clear()
        elif piece:
            self._pieces.append(bytes(piece))

    def whole(self) -> bytes:
        """Everything, in one piece."""
        return b"".join(self._pieces)
