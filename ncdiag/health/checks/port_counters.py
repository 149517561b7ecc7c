"""Error counters of network ports: what each means, and how much it weighs when it rises."""

from typing import NamedTuple

from ncdiag.model.health import Severity


class Counter(NamedTuple):
    """One counter; ``by_rate``: only a rate above that of the InfiniBand specification weighs."""

    severity: Severity
    meaning: str
    by_rate: bool = False


_FAULT, _WARNING, _NOTE = Severity.FAULT, Severity.WARNING, Severity.NOTE

# /sys/class/infiniband/*/ports/*/counters: InfiniBand Architecture, PortCounters.
IB_COUNTERS = {
    "symbol_error": Counter(_FAULT, "bits arrive damaged: cable or transceiver", by_rate=True),
    "port_rcv_errors": Counter(_FAULT, "packets arrive damaged", by_rate=True),
    "link_error_recovery": Counter(_FAULT, "the link had to train again"),
    "link_downed": Counter(_FAULT, "the link was lost"),
    "local_link_integrity_errors": Counter(_FAULT, "too many errors in a row on the wire"),
    "excessive_buffer_overrun_errors": Counter(_FAULT, "flow control failed again and again"),
    "port_rcv_remote_physical_errors": Counter(
        _WARNING, "packets were damaged further away, and passed on marked"
    ),
    "port_rcv_switch_relay_errors": Counter(_NOTE, "packets that could not be forwarded"),
    "port_rcv_constraint_errors": Counter(_WARNING, "packets of a partition not allowed here"),
    "port_xmit_constraint_errors": Counter(_WARNING, "packets of a partition not allowed there"),
    "port_xmit_discards": Counter(_NOTE, "packets were thrown away: congestion, or a dead peer"),
    "VL15_dropped": Counter(_NOTE, "management packets were dropped"),
}

# .../ports/*/hw_counters: NVIDIA mlx5 and Broadcom bnxt_re.
HW_COUNTERS = {
    "out_of_sequence": Counter(_WARNING, "packets got lost or overtaken on the way here"),
    "packet_seq_err": Counter(_WARNING, "a peer asked for packets again: lost on the way there"),
    "local_ack_timeout_err": Counter(_WARNING, "a peer did not answer in time"),
    "implied_nak_seq_err": Counter(_WARNING, "answers of a peer got lost"),
    "rx_icrc_encapsulated": Counter(_WARNING, "packets arrived with a wrong checksum"),
    "resp_local_length_error": Counter(_NOTE, "messages did not fit: a program's fault"),
    "rnr_nak_retry_err": Counter(_NOTE, "a peer was not ready to receive: a program's fault"),
    "req_transport_retries_exceeded": Counter(_WARNING, "a peer could not be reached at all"),
    "roce_adp_retrans": Counter(_NOTE, "packets were sent again by adaptive retransmission"),
    "roce_adp_retrans_to": Counter(_WARNING, "adaptive retransmission timed out"),
    "roce_slow_restart": Counter(_NOTE, "sending began slowly after a loss"),
    "max_retry_exceeded": Counter(_WARNING, "a peer could not be reached at all"),
    "seq_err_naks_rcvd": Counter(_WARNING, "a peer asked for packets again"),
    "rx_roce_discards": Counter(_WARNING, "packets were thrown away on arrival"),
}

# /sys/class/net/*/statistics.
ETHERNET_COUNTERS = {
    "rx_crc_errors": Counter(_WARNING, "frames arrive damaged: cable or transceiver", by_rate=True),
    "rx_errors": Counter(_WARNING, "frames arrive damaged", by_rate=True),
    "rx_frame_errors": Counter(_WARNING, "frames arrive damaged", by_rate=True),
    "tx_errors": Counter(_WARNING, "frames could not be sent", by_rate=True),
    "tx_carrier_errors": Counter(_WARNING, "the link was lost while sending", by_rate=True),
    "rx_fifo_errors": Counter(_NOTE, "the host was too slow to take frames", by_rate=True),
    "rx_missed_errors": Counter(_NOTE, "the host was too slow to take frames", by_rate=True),
}
