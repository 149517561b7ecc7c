"""The one error that netlab raises on purpose."""

WRONG_USE = 2
COULD_NOT = 1


class NetlabError(Exception):
    """One clear line for the operator, and the exit code to end with."""

    def __init__(self, message: str, exit_code: int = WRONG_USE) -> None:
        super().__init__(message)
        self.exit_code = exit_code
