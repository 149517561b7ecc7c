import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.logs.ras_live import address
from ncdiag.model.errors import UsageError
from ncdiag.read.ras import client
from ncdiag.read.ras.client import RasClient, RasError


class Server:
    """Answers as the protocol says; one that knows no JSON refuses it."""

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self.heard: list[str] = []

    def answer(self, data: bytes) -> bytes:
        out = b""
        for line in data.decode().splitlines():
            self.heard.append(line)
            command = line.lower()
            if command.startswith("client protocol"):
                out += b"SERVER PROTOCOL 2\n"
            elif command.startswith("timeout "):
                out += b"OK\r\n"
            elif command == "set format json":
                out += b"OK\n" if self.json else b"ERROR: Unknown command SET FORMAT json\n"
            elif command == "verbose status":
                out += b"NCCL version 2\nErrors\n"
            else:
                out += b'{"nccl_version": "2"}\n'
        return out


def talk(server: Server, piece: int, *, json: bool = True) -> bytes:
    asking = RasClient(wait_s=5, json=json)
    coming = server.answer(asking.start())
    while coming:
        now, coming = coming[:piece], coming[piece:]
        coming += server.answer(asking.feed(now))
    return asking.end()


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_json_is_asked_for_first(piece: int) -> None:
    server = Server(json=True)
    assert talk(server, piece) == b'{"nccl_version": "2"}\n'
    assert server.heard == ["CLIENT PROTOCOL 2", "TIMEOUT 5", "SET FORMAT json", "STATUS"]


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_an_older_server_is_asked_for_text(piece: int) -> None:
    server = Server(json=False)
    assert talk(server, piece) == b"NCCL version 2\nErrors\n"
    assert server.heard[-1] == "VERBOSE STATUS"


def test_text_can_be_asked_for() -> None:
    server = Server(json=True)
    assert talk(server, 100, json=False) == b"NCCL version 2\nErrors\n"
    assert len(server.heard) == 3


def test_what_is_no_such_service_is_told() -> None:
    for said in (b"HTTP/1.1 400 Bad Request\r\n", b"SSH-2.0-x\n", b"x" * 10_000):
        with pytest.raises(RasError, match="no RAS service"):
            RasClient(wait_s=5).feed(said)


def test_a_connection_that_closes_early_is_told() -> None:
    asking = RasClient(wait_s=5)
    for said in (b"", b"SERVER PROTOCOL 2\n", b"OK\n", b"OK\n", b" \n"):
        asking.feed(said)
        with pytest.raises(RasError, match="without a report"):
            asking.end()
    asking.feed(b"ERROR: busy\n")
    asking._buffer = bytearray(b"ERROR: busy\nmore")
    with pytest.raises(RasError, match="refused: ERROR: busy"):
        asking.end()


def test_a_report_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_REPORT_BYTES", 1 << 20)
    asking = RasClient(wait_s=5)
    asking.feed(b"SERVER PROTOCOL 2\nOK\nOK\n")
    with pytest.raises(RasError, match="larger than 1 MiB"):
        asking.feed(b"x" * ((1 << 20) + 1))


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_any_answers_end_in_a_report_or_one_error(answers: list[bytes]) -> None:
    asking = RasClient(wait_s=5)
    try:
        for answer in answers:
            asking.feed(answer)
        asking.end()
    except RasError as error:
        assert "\n" not in str(error)  # noqa: PT017  # either way is right


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gpu1", ("gpu1", 28028)),
        ("gpu1:99", ("gpu1", 99)),
        ("10.0.0.1:65535", ("10.0.0.1", 65535)),
        ("fd00::1", ("fd00::1", 28028)),
        ("[fd00::1]", ("fd00::1", 28028)),
        ("[fd00::1]:7", ("fd00::1", 7)),
    ],
)
def test_addresses(text: str, told: tuple[str, int]) -> None:
    assert address(text) == told


@pytest.mark.parametrize(
    "text", ["", ":1", "a:", "a:x", "a:0", "a:65536", "[a", "[]:1", "[a]1", "a:\u0661"]
)
def test_wrong_addresses(text: str) -> None:
    with pytest.raises(UsageError, match="give HOST"):
        address(text)
