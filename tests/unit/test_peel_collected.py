"""What the JSON records of log stores prove of the lines in them."""

import json

import pytest

from ncdiag.read.line import Line
from ncdiag.read.peel import Peeler

KERNEL = "kernel: NVRM: Xid (PCI:0000:4b:00): 31, pid=77, name=demo"


def peel(*raws: str) -> list[Line]:
    peeler = Peeler("a.log")
    lines = [
        line for number, raw in enumerate(raws, 1) for line in peeler.feed(raw.encode(), number)
    ]
    return [*lines, *peeler.finish()]


def spoken(record: object) -> tuple[str | None, str | None]:
    (line,) = peel(json.dumps(record))
    assert line.text == KERNEL.removeprefix("kernel: ")
    return line.speaker.host, line.speaker.address


@pytest.mark.parametrize(
    "record",
    [
        {"labels": {"host": "vq-07", "app": "demo"}, "line": KERNEL},
        {"labels": {"nodename": "vq-07"}, "line": KERNEL},
        {"labels": {"node": "vq-07"}, "line": KERNEL},
        {"labels": {"instance": "vq-07"}, "line": KERNEL},
        {"labels": {"instance": "vq-07:9100"}, "line": KERNEL},
        {"host.name": "vq-07", "message": KERNEL},
        {"kubernetes.node.name": "vq-07", "message": KERNEL},
        {"_index": "logs-1", "_source": {"host": {"name": "vq-07"}, "message": KERNEL}},
        {"_index": "logs-1", "_source": {"host.name": "vq-07", "message": KERNEL}},
        {"hits": {"hits": [{"_source": {"host": {"name": "vq-07"}, "message": KERNEL}}]}},
        {"preview": False, "result": {"host": "vq-07", "_raw": KERNEL}},
        {"stream": {"host": "vq-07"}, "values": [["1780275723000000000", KERNEL]]},
    ],
)
def test_a_store_names_the_host_beside_the_line(record: object) -> None:
    assert spoken(record) == ("vq-07", None)


@pytest.mark.parametrize(
    "labels",
    [
        {"instance": "monitoring"},
        {"instance": "demo/worker-1:main"},
        {"node": "0"},
        {"node": "worker"},
        {"host": "a b"},
        {"app": "vq-07"},
    ],
)
def test_labels_that_may_be_no_hosts_name_none(labels: dict[str, str]) -> None:
    assert spoken({"labels": labels, "line": KERNEL}) == (None, None)


def test_an_address_with_a_port_is_an_address() -> None:
    assert spoken({"labels": {"instance": "10.4.0.7:9100"}, "line": KERNEL}) == (None, "10.4.0.7")


def test_each_value_of_a_stream_has_its_own_time() -> None:
    values = [["1780275723000000000", "one"], ["1780275724500000000", "two"], ["bad"], 5]
    streams = [{"stream": {"host": "vq-07"}, "values": values}]
    for record in (streams[0], {"data": {"resultType": "streams", "result": streams}}):
        lines = peel(json.dumps(record))
        times = [line.place.time.seconds for line in lines if line.place.time]
        assert [line.text for line in lines] == ["one", "two"]
        assert times == [1780275723.0, 1780275724.5]
        assert {line.speaker.host for line in lines} == {"vq-07"}


def test_objects_without_a_line_stay_as_they_are() -> None:
    for record in ({"result": {"loss": 1.5}}, {"events": [{"n": 1}]}, {"hits": {"hits": []}}):
        raw = json.dumps(record)
        assert [line.text for line in peel(raw)] == [raw]
