"""How much work large jobs make: calls are counted, not seconds."""

import sys
from types import FrameType
from typing import Any

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.model.log import InputSummary, LogEvidence

_FAULTS = {
    "gpu_memory_error": {"xid": "48", "pci": "0000:43:00"},
    "nic_link_down": {"device": "mlx5_0"},
    "ib_port_error": {"hca": "mlx5_1"},
    "thermal_power": {"pci": "0000:43:00"},
    "p2p_disabled": {"gpus": "0 1"},
    "pcie_error": {"device": "0000:43:00.0"},
}


def _evidence(bench: Any, hosts: int) -> LogEvidence:
    """A job with several faults on each host, and transfers that fail between neighbours."""
    events, processes = [], []
    for number in range(hosts):
        host = f"oak{number}"
        events += [bench.event(name, host, **said) for name, said in _FAULTS.items()]
        peer = f"oak{(number + 1) % hosts}"
        events.append(bench.event("ib_completion_error", host, pid="1", status="12", peer=peer))
        processes.append(
            bench.process(host, communicators=[bench.communicator(number, hosts, completed=True)])
        )
    return LogEvidence(
        inputs=[InputSummary(path="job.log", kinds=["nccl"])], events=events, processes=processes
    )


def _calls(evidence: LogEvidence) -> int:
    count = 0

    def tick(frame: FrameType, what: str, argument: object) -> None:
        nonlocal count
        del frame, argument
        count += what in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(tick)
    try:
        diagnose(evidence)
    finally:
        sys.setprofile(before)
    return count


def test_work_grows_with_the_hosts_and_not_with_their_pairs(bench: Any) -> None:
    few, many = (_evidence(bench, hosts) for hosts in (40, 160))
    _calls(few)  # fills caches that outlive a case
    assert _calls(many) < 5 * _calls(few)
