"""What perftest prints, line by line: for the fake program, and for tests of the reader."""

from collections.abc import Mapping, Sequence

RULE = "-" * 87
TITLES = {
    "ib_write_bw": "RDMA_Write BW Test",
    "ib_read_bw": "RDMA_Read BW Test",
    "ib_send_bw": "Send BW Test",
    "ib_write_lat": "RDMA_Write Latency Test",
    "ib_read_lat": "RDMA_Read Latency Test",
    "ib_send_lat": "Send Latency Test",
}
WAITING = [
    "",
    "*" * 36,
    "* Waiting for client to connect... *",
    "*" * 36,
]
CPU_WARNING = (
    "Conflicting CPU frequency values detected: 1500.000000 != 3300.016000."
    " CPU Frequency is not max."
)


def title(program: str, *, bidirectional: bool = False) -> str:
    """The name of a test, as it stands over its parameters."""
    name = TITLES[program]
    return name.replace(" BW", " Bidirectional BW") if bidirectional else name


def parameters(name: str, device: str, *, link: str = "Ethernet", pairs: int = 1) -> list[str]:
    """The block under which a test says what it does."""
    return [
        RULE,
        " " * 20 + name,
        f" Dual-port       : OFF\t\tDevice         : {device}",
        f" Number of qps   : {pairs}\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
        " PCIe relax order: ON",
        " ibv_wr* API     : ON",
        " TX depth        : 128",
        " CQ Moderation   : 1",
        " Mtu             : 4096[B]",
        f" Link type       : {link}",
        " GID index       : 3",
        " Max inline data : 0[B]",
        " rdma_cm QPs\t : OFF",
        " Data ex. method : Ethernet",
        RULE,
    ]


def address(side: str, ip: str | None, lid: int = 0) -> list[str]:
    """One side's queue pair; an InfiniBand port has a LID, a RoCE port a GID with an address."""
    number = f"{lid:#04x}" if lid else "0000"
    line = f" {side} address: LID {number} QPN 0x008a PSN 0xfffb6d RKey 0x238f86 VAddr 0x007dd5"
    if ip is None:
        return [line]
    last = ":".join(f"{int(part):02d}" for part in ip.split("."))
    return [line, f" GID: {'00:' * 10}255:255:{last}"]


def heading(unit: str = "Gb/sec", *, cpu: bool = False) -> str:
    """The titles of a bandwidth table."""
    line = f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]"
    return line + ("    CPU_Util[%]" if cpu else "")


def row(
    size: int,
    iterations: int,
    *,
    average: float,
    mpps: float,
    peak: float = 0.0,
    cpu: float | None = None,
) -> str:
    """A row of a bandwidth table."""
    line = f" {size:<7d}    {iterations:<10d}       {peak:<7.2f}            {average:<7.2f}\t\t"
    return f"{line}   {mpps:<7.6f}" + ("" if cpu is None else f"\t    {cpu:<3.2f}")


LATENCY_HEADING = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
    "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] "
)
TIMED_LATENCY_HEADING = " #bytes        #iterations       t_avg[usec]    tps average"


def latency_row(size: int, iterations: int, figures: Sequence[float]) -> str:
    """A row of a latency table: least, most, typical, average, deviation, 99 %, 99.9 %."""
    return f" {size:<7d} {iterations}          " + "        ".join(
        f"{one:<7.2f}" for one in figures
    )


def json_report(
    info: Mapping[str, object],
    results: Sequence[tuple[str, Mapping[str, object]]],
    *,
    quoted: bool = True,
    trailing: bool = False,
    closed: bool = True,
) -> str:
    """A file of ``--out_json``; newer programs quote names, older ones close with commas."""

    def name(text: str) -> str:
        return f'"{text}"' if quoted else text

    def block(key: str, values: Mapping[str, object]) -> str:
        lines = [f"{name(one)}: {_word(value, quoted=quoted)}" for one, value in values.items()]
        return f"{name(key)}: {{\n" + ",\n".join(lines) + (",\n}" if trailing else "\n}")

    blocks = [block("test_info", info), *(block(key, values) for key, values in results)]
    body = ",\n".join(blocks) + (",\n" if trailing else "\n")
    return "{\n" + body + ("}\n" if closed else "")


def _word(value: object, *, quoted: bool) -> str:
    if isinstance(value, float):
        return f"{value:.6f}" if abs(value) < 1 else f"{value:.2f}"
    return f'"{value}"' if isinstance(value, str) and quoted else str(value)
