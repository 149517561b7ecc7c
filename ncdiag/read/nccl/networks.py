"""Bootstrap, networks, NICs, plug-ins and what each can do."""

import re
from collections.abc import Iterator

from ncdiag.model.log import NcclProcess
from ncdiag.read.line import Line
from ncdiag.read.nccl.notes import MAX_NAMES, ProcessNotes, Rule, add_once, put

_ADDRESS = re.compile(
    r"(?:\[\d{1,4}\])?(?<![^\s:\[\]{}=,;<>])([^\s:\[\]{}=,;<>]{1,64}):([^\s<>]{1,128})<\d{1,6}>"
)
_BOOTSTRAP = re.compile(r"Bootstrap ?: ?Using (.+)")
_OOB_DEVICE = re.compile(r"([A-Za-z][\w.+-]{0,63}):\d{1,5}\s*\Z")
_SOCKETS = re.compile(r"NET/Socket ?: Using (\[\d.+)")
_VERBS = re.compile(r"NET/IB ?: Using (?!interface)(.+)")
_DEVICE = re.compile(r"([A-Za-z][\w.+-]{0,63}):\d{1,5}(?::-?\d{1,9}){0,2}/[A-Za-z]\w{0,15}")
_SIDEBAND = re.compile(r"NET/IB ?: Using interface (\S{1,64}) for sideband")
_SPEED = re.compile(
    r"NET/IB ?: \[\d{1,4}\] ([^\s:]{1,64})(?::[^\s:/]{1,64})?:\d{1,5}(?::-?\d{1,9}){0,2}"
    r"/\w{1,16} (?:provider=\S{1,32} )?speed=(\d{1,9})"
)
_VIRTUAL = re.compile(r"Made virtual device \[\d{1,4}\] name=(\S{1,256}) speed=(\d{1,9})")
_USING = re.compile(r"^Using (?:internal )?[Nn]etwork ([^\[\]<>{}=:]{1,60})")
_ASSIGNED = re.compile(r"^Assigned NET plugin (.{1,60}?) to comm")
_PLUGIN = re.compile(
    r"^(NET|TUNER|PROFILER|ENV|GIN|RMA)/Plugin ?: "
    r"(?:Loaded (?:net |coll |collnet )?(?:plugin )?|Using (?!internal))(\S.{0,60})"
)
_EXTERNAL = re.compile(r"^Successfully loaded external (\w{1,16}) plugin (\S.{0,120})")
_OFI = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("version", r"aws-ofi-nccl (?:version )?(\S{1,40})"),
        ("libfabric", r"Using Libfabric version (\S{1,20})"),
        ("provider", r"Selected [Pp]rovider is (\S{1,40}?),?(?: |$)"),
        ("nics", r"\(found (\d{1,4}) nics\)"),
        ("protocol", r"Using transport protocol (\w{1,20})"),
        ("platform", r"Plugin selected platform: (\S{1,40})"),
        ("refused", r"Failed to initialize (\w{1,20}) protocol"),
    )
)
_OFI_LINE = re.compile(r"^NET/OFI ")
_GDR_NIC = re.compile(
    r"^NET/([^:]{1,40}?) ?: GPU Direct RDMA (Enabled|Disabled) for HCA \d{1,4} '([^']{1,256})'"
)
_GDR_GPU = re.compile(
    r"GPU Direct RDMA (Enabled|Disabled) for GPU .{0,40}?(?:/ HCA|- NET) ([0-9a-f]{1,16})\b"
)
_NVLS = re.compile(
    r"NVLS multicast support is (not )?available|Proceeding (without) NVLS|^NVLS comm 0x"
)
_NO_SHARP = re.compile(
    r"SHARP coll init error|Cannot initialize CollNet|disabling CollNet|CollNet (?:is )?disabled"
)
_NO_PXN = re.compile(r"PXN Disabled")
_MNNVL = re.compile(r"^MNNVL (\d) cliqueId")
_LOCAL_DEVICES = re.compile(r"Rank (\d{1,9}) has (\d{1,6}) local Net devices \(max (\d{1,6})\)")
_ALL_DEVICES = re.compile(r"Rank (\d{1,9}): (\d{1,6}) Net devices")
_MAX_RANKS = 65536


def _note_bootstrap(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    _note_addresses(notes.process, found[1])
    if device := _OOB_DEVICE.match(found[1].strip()):
        add_once(notes.process.interfaces, device[1])


def _note_addresses(process: NcclProcess, text: str) -> None:
    for name, address in _addresses(text):
        add_once(process.interfaces, name)
        add_once(process.addresses, address)


def _addresses(text: str) -> Iterator[tuple[str, str]]:
    return ((found[1], found[2]) for found in _ADDRESS.finditer(text))


def _note_sockets(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    _note_addresses(notes.process, found[1])
    for name, _ in _addresses(found[1]):
        add_once(notes.process.nics, name)


def _note_verbs(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    """The list of devices, merged ones in braces, then the out-of-band address."""
    del line
    process = notes.process
    devices, _, out_of_band = found[1].partition("OOB ")
    for device in _DEVICE.finditer(devices):
        add_once(process.nics, device[1])
    _note_addresses(process, out_of_band)


def _note_sideband(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    add_once(notes.process.interfaces, found[1])


def _note_speed(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    add_once(notes.process.nics, found[1])
    put(notes.process.nic_speeds_mbit_per_s, found[1], found[2])


def _note_virtual(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    put(notes.process.nic_speeds_mbit_per_s, found[1], found[2])


def _note_network(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    add_once(notes.process.networks, found[1].strip())


def _note_plugin(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    add_once(notes.process.plugins, f"{found[1]} {found[2].strip()}")


def _note_ofi(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del found
    for name, pattern in _OFI:
        if told := pattern.search(line.text):
            put(notes.process.ofi, name, told[1])


def _note_nic_gdr(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    """What a NIC can do; sockets never can and prove nothing."""
    del line
    if found[1] != "Socket" and len(notes.process.hca_gdr) < MAX_NAMES:
        notes.process.hca_gdr[found[3]] = found[2] == "Enabled"


def _note_gpu_gdr(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    """A decision for one GPU and NIC: far GPUs go without, so one that goes with it counts."""
    del line
    process = notes.process
    index = int(found[2], 16)
    nic = process.nics[index] if index < len(process.nics) else found[2]
    if nic in process.hca_gdr or len(process.hca_gdr) < MAX_NAMES:
        process.hca_gdr[nic] = process.hca_gdr.get(nic, False) or found[1] == "Enabled"


def _note_nvls(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    if found[2]:
        notes.process.nvls = False
    else:
        notes.process.nvls = notes.process.nvls or not found[1]


def _note_no_sharp(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del found, line
    notes.process.sharp = False


def _note_no_pxn(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del found, line
    notes.process.pxn = False


def _note_mnnvl(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    notes.process.mnnvl = notes.process.mnnvl or found[1] != "0"


def _note_local_devices(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    process = notes.process
    process.net_devices_max = int(found[3])
    if len(process.net_devices) < _MAX_RANKS:
        process.net_devices[int(found[1])] = int(found[2])


def _note_all_devices(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    if len(notes.process.net_devices) < _MAX_RANKS:
        notes.process.net_devices.setdefault(int(found[1]), int(found[2]))


RULES = (
    Rule(("Bootstrap ", "Bootstrap:"), _BOOTSTRAP, _note_bootstrap),
    Rule(("NET/Socket",), _SOCKETS, _note_sockets),
    Rule(("NET/IB",), _VERBS, _note_verbs),
    Rule(("for sideband",), _SIDEBAND, _note_sideband),
    Rule(("speed=",), _SPEED, _note_speed),
    Rule(("Made virtual device",), _VIRTUAL, _note_virtual),
    Rule(("Using network ", "Using internal "), _USING, _note_network),
    Rule(("Assigned NET plugin",), _ASSIGNED, _note_network),
    Rule(("/Plugin",), _PLUGIN, _note_plugin),
    Rule(("Successfully loaded external",), _EXTERNAL, _note_plugin),
    Rule(("NET/OFI ",), _OFI_LINE, _note_ofi),
    Rule(("GPU Direct RDMA ",), _GDR_NIC, _note_nic_gdr),
    Rule(("GPU Direct RDMA ",), _GDR_GPU, _note_gpu_gdr),
    Rule(("NVLS ",), _NVLS, _note_nvls),
    Rule(("SHARP coll init", "CollNet"), _NO_SHARP, _note_no_sharp, fact=False),
    Rule(("PXN Disabled",), _NO_PXN, _note_no_pxn),
    Rule(("MNNVL ",), _MNNVL, _note_mnnvl),
    Rule(("local Net devices",), _LOCAL_DEVICES, _note_local_devices, fact=False),
    Rule(("Net devices",), _ALL_DEVICES, _note_all_devices),
)
