"""Network adapters as the kernel sees them: firmware, links, cables."""

from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

_PCI = r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
# "mlx5_core 0000:5c:00.0: poll_health:801:(pid 0): "; the device is left out by some tools.
_MLX5 = (
    rf"mlx5_core(?: (?P<device>{_PCI}))?(?: [\w.@-]{{1,40}})?: "
    r"(?:[\w.]{1,60}:\d{1,5}:?)?(?:\(pid -?\d{1,10}\):)? ?"
)
_MLX5_ASIDE = _MLX5.replace("?P<device>", "?P<d_device>")

_SYNDROMES = (
    r"firmware internal error|irisc not responding|unrecoverable hardware error|"
    r"firmware CRC error|ICM fetch PCI error|ICM fetch PCI data poisoned error|HW fatal error|"
    r"async EQ buffer overrun|EQ error|Invalid EQ referenced|FFSER error|High temperature|"
    r"Trust lockdown error|unrecognized error"
)
_CABLE_FAULTS = (
    r"Bus stuck|Bad or shorted cable|Unknown identifier|Power budget exceeded|"
    r"Unsupported cable|Bus stuck \(I2C or data shorted\)|Long range for non MLNX cable|"
    r"No EEPROM/retry timeout|Enforce part number list|Module power budget exceeded|"
    r"Cable is unplugged|Unknown status"
)


def _up_or_down(values: dict[str, str], line: Line) -> dict[str, str]:
    """Fold the words for a link's state into ``up`` and ``down``."""
    del line
    state = values.pop("d_state").lower()
    values["d_state"] = "down" if "down" in state else "up" if state != "init" else "init"
    return values


_kernel = partial(Signature, levels=OUTSIDE, kind="kernel")
_mlx5 = partial(_kernel, source="Linux drivers/net/ethernet/mellanox/mlx5/core")
_firmware = partial(_mlx5, class_=FindingClass.NIC_FIRMWARE_FAULT)
_link = partial(_kernel, class_=FindingClass.NIC_LINK_DOWN, refine=_up_or_down)

_FIRMWARE_ROWS: tuple[Signature, ...] = (
    _firmware(
        name="mlx5_health",
        needle="health compromised",
        pattern=Pattern(_MLX5 + r"(?P<error>device's health compromised[\w -]{0,60})"),
        sample="mlx5_core 0000:6a:00.0: poll_health:825:(pid 0): device's health compromised - "
        "reached miss count",
        near_miss="mlx5_core 0000:6a:00.0: health poll started",
    ),
    _firmware(
        name="mlx5_fatal",
        needle="Fatal error ",
        pattern=Pattern(_MLX5 + r"(?P<error>Fatal error \d{1,6} detected)"),
        sample="mlx5_core 0000:6a:00.0: poll_health:808:(pid 0): Fatal error 3 detected",
        near_miss="mlx5_core 0000:6a:00.0: firmware version: 28.39.1002",
    ),
    _firmware(
        name="mlx5_syndrome",
        needle="synd 0x",
        pattern=Pattern(
            r"mlx5_core(?: (?P<device>" + _PCI + r"))?[^\n]{0,120}?\bsynd 0x[0-9a-fA-F]{1,8}: "
            rf"(?P<error>{_SYNDROMES})"
        ),
        sample="mlx5_core 0000:6a:00.0: print_health_info:431:(pid 0): synd 0x7: irisc not "
        "responding",
        near_miss="mlx5_core 0000:6a:00.0: print_health_info:431:(pid 0): ext_synd 0x8a18",
    ),
    _firmware(
        name="mlx5_health_issue",
        needle="Health issue observed",
        pattern=Pattern(
            _MLX5 + r"Health issue observed, (?P<error>[^,\n]{1,80}), "
            r"severity\(\d\) (?:EMERGENCY|ALERT|CRITICAL|ERROR)"
        ),
        sample="mlx5_core 0000:6a:00.0: print_health_info:420:(pid 0): Health issue observed, "
        "firmware internal error, severity(3) ERROR:",
        near_miss="mlx5_core 0000:6a:00.0: print_health_info:420:(pid 0): Health issue observed, "
        "High temperature, severity(4) WARNING:",
        versions="Linux 6 and later",
    ),
    _firmware(
        name="mlx5_recovery",
        needle="health recovery",
        further=("handling bad device", "NIC SW reset", "device is in "),
        pattern=Pattern(
            _MLX5 + r"[^\n]{0,60}?(?P<error>health recovery flow aborted[\w ,-]{0,60}|"
            r"health recovery failed|handling bad device here|NIC SW reset (?:in progress|failed)|"
            r"starting health recovery flow|device is in (?:fatal|error) state[\w ]{0,40})"
        ),
        sample="mlx5_core 0000:6a:00.0: mlx5_health_try_recover:337:(pid 812): health recovery "
        "flow aborted, PCI reads still not working",
        near_miss="mlx5_core 0000:6a:00.0: mlx5_health_try_recover:347:(pid 812): health "
        "recovery succeeded",
    ),
    _firmware(
        name="mlx5_command_timeout",
        needle="Will cause a leak of a command resource",
        pattern=Pattern(
            _MLX5 + r"(?:[^\n]{0,60}?\b)?(?P<error>[A-Z][A-Z0-9_]{1,60}\(0x[0-9a-f]{1,4}\) timeout)"
            r"\. Will cause a leak of a command resource"
        ),
        sample="mlx5_core 0000:6a:00.0: wait_func:1172:(pid 4711): QUERY_VPORT_COUNTER(0x770) "
        "timeout. Will cause a leak of a command resource",
        near_miss="mlx5_core 0000:6a:00.0: mlx5_cmd_out_err:803:(pid 4711): ACCESS_REG(0x805) "
        "op_mod(0x1) failed, status bad operation(0x2), syndrome (0x0), err(-22)",
    ),
    _firmware(
        name="mlx5_command_stuck",
        needle="No done completion",
        pattern=Pattern(
            _MLX5 + r"(?:cmd\[\d{1,3}\]: )?(?P<error>[A-Z][A-Z0-9_]{1,60}\(0x[0-9a-f]{1,4}\) "
            r"No done completion)"
        ),
        sample="mlx5_core 0000:6a:00.0: wait_func_handle_exec_timeout:1129:(pid 4711): cmd[2]: "
        "CREATE_CQ(0x400) No done completion",
        near_miss="mlx5_core 0000:6a:00.0: cmd[2]: CREATE_CQ(0x400) recovered after timeout",
    ),
    _firmware(
        name="transmit_timeout",
        needle="transmit queue",
        pattern=Pattern(
            rf"(?:(?P<device>{_PCI}) [^\n]{{0,60}}?)?NETDEV WATCHDOG: (?:(?!NETDEV)[^\n]){{1,80}}?"
            r"transmit queue (?:\d{1,5} )?(?P<error>timed out)"
        ),
        sample="NETDEV WATCHDOG: ens8f0 (mlx5_core): transmit queue 5 timed out",
        near_miss="mlx5_core 0000:6a:00.0 ens8f0: transmit queue 5 recovered",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
        source="Linux net/sched/sch_generic.c",
    ),
    _mlx5(
        name="mlx5_cq_error",
        class_=FindingClass.IB_QP_FATAL_EVENT,
        needle="CQ error on CQN",
        pattern=Pattern(_MLX5_ASIDE + r"(?P<event>CQ error) on CQN 0x[0-9a-fA-F]{1,8}, syndrome"),
        sample="mlx5_core 0000:6a:00.0: cq_err_event_notifier:569:(pid 0): CQ error on CQN "
        "0x4a1, syndrome 0x1",
        near_miss="mlx5_core 0000:6a:00.0: CQ moderation set on CQN 0x4a1",
    ),
)

_CABLE_ROWS: tuple[Signature, ...] = (
    _mlx5(
        name="mlx5_module_error",
        class_=FindingClass.NIC_LINK_DOWN,
        needle="Port module event[error]",
        pattern=Pattern(
            _MLX5 + r"Port module event\[error\]: module \d{1,3}, Cable error, "
            rf"(?P<d_cable>{_CABLE_FAULTS})"
        ),
        sample="mlx5_core 0000:6a:00.0: Port module event[error]: module 1, Cable error, Bad or "
        "shorted cable",
        near_miss="mlx5_core 0000:6a:00.0: Port module event: module 1, Cable plugged",
        constants={"d_state": "down"},
    ),
    _mlx5(
        name="mlx5_module_hot",
        class_=FindingClass.THERMAL_POWER,
        needle="Port module event[error]",
        pattern=Pattern(
            _MLX5 + r"Port module event\[error\]: module \d{1,3}, Cable error, "
            r"(?P<error>High Temperature)"
        ),
        sample="mlx5_core 0000:6a:00.0: Port module event[error]: module 1, Cable error, High "
        "Temperature",
        near_miss="mlx5_core 0000:6a:00.0: Port module event[error]: module 1, Cable error, Bus "
        "stuck",
    ),
    _mlx5(
        name="mlx5_module_unplugged",
        class_=FindingClass.NIC_LINK_DOWN,
        needle="Port module event: module",
        pattern=Pattern(_MLX5 + r"Port module event: module \d{1,3}, Cable (?P<d_cable>unplugged)"),
        sample="mlx5_core 0000:6a:00.0: Port module event: module 1, Cable unplugged",
        near_miss="mlx5_core 0000:6a:00.0: Port module event: module 1, Cable plugged",
        role=Role.WARNING,
        severity=Severity.INFO,
        constants={"d_state": "down"},
    ),
    _mlx5(
        name="mlx5_slot_power",
        class_=FindingClass.THERMAL_POWER,
        needle="insufficient power on the PCIe slot",
        pattern=Pattern(
            _MLX5 + r"(?:[^\n]{0,60}?)(?P<error>Detected insufficient power on the PCIe slot"
            r"(?: \(\d{1,4}W\))?)"
        ),
        sample="mlx5_core 0000:6a:00.0: mlx5_pcie_event:301:(pid 1201): Detected insufficient "
        "power on the PCIe slot (25W).",
        near_miss="mlx5_core 0000:6a:00.0: mlx5_pcie_event:294:(pid 1201): PCIe slot advertised "
        "sufficient power (75W).",
    ),
)

_LINK_ROWS: tuple[Signature, ...] = (
    _link(
        name="netdev_link",
        needle="Link down",
        further=("Link up", "Link Down", "Link Up", "Link is "),
        pattern=Pattern(
            rf"\b(?:[a-z]\w{{1,20}} )?(?P<device>{_PCI}):? (?!Port)"
            rf"(?:(?P<interface>[\w.@-]{{1,24}}):? )?"
            r"(?:NIC )?Link (?:is )?(?P<d_state>[Uu]p|[Dd]own|UP|DOWN)\b"
        ),
        sample="mlx5_core 0000:6a:00.0 ens8f0: Link down",
        near_miss="pcieport 0000:5d:01.0: pciehp: Slot(12): Link Down",
        source="netdev messages of mlx5_core, ice, i40e, ixgbe, bnxt_en",
    ),
    _link(
        name="ib_port_link",
        needle="Link DOWN",
        further=("Link ACTIVE", "Link INIT", "Link ARMED", "link DOWN", "link ACTIVE"),
        pattern=Pattern(
            rf"\bmlx\d_\w{{2,6}}:? (?P<device>{_PCI}|mlx\d_\d{{1,3}}): [^\n]{{0,60}}?Port:? "
            rf"\d{{1,3}} "
            r"[Ll]ink (?P<d_state>DOWN|ACTIVE|INIT|ARMED)\b"
        ),
        sample="mlx5_core 0000:6a:00.0: Port: 1 Link DOWN",
        near_miss="mlx5_core 0000:6a:00.0: Port: 1 Link layer InfiniBand",
        source="mlx5_core of MLNX_OFED",
    ),
    _link(
        name="bond_slave",
        needle="link status definitely",
        pattern=Pattern(
            r"(?P<device>[\w.-]{1,24}): (?:\(slave (?P<interface>[\w.@-]{1,24})\): )?link status "
            r"definitely (?P<d_state>down|up)(?: for interface (?P<d_slave>[\w.@-]{1,24}))?"
        ),
        sample="bond1: (slave ens8f1): link status definitely down, disabling slave",
        near_miss="bond1: (slave ens8f1): link status up again after 100 ms",
        source="Linux drivers/net/bonding",
    ),
    _link(
        name="link_ready",
        needle="link becomes ready",
        pattern=Pattern(
            r"ADDRCONF\(NETDEV_CHANGE\): (?P<interface>[\w.@-]{1,24}): link becomes "
            r"(?P<d_state>ready)"
        ),
        sample="IPv6: ADDRCONF(NETDEV_CHANGE): ib2: link becomes ready",
        near_miss="IPv6: ADDRCONF(NETDEV_UP): ib2: link is not ready",
        source="Linux net/ipv6/addrconf.c",
    ),
    _link(
        name="old_nic_link",
        needle="NIC Link is ",
        pattern=Pattern(
            r"\b(?:igb|ixgbe|e1000e?|i40e|be2net|tg3|bnx2x?): ?(?P<interface>[\w.@-]{1,24}):? "
            r"NIC Link is (?P<d_state>Up|Down)"
        ),
        sample="igb: eno3 NIC Link is Down",
        near_miss="igb: eno3 NIC flow control is RX/TX",
        source="Linux drivers/net/ethernet/intel",
    ),
    _kernel(
        name="efa_registration",
        class_=FindingClass.OFI_MEMORY_REGISTRATION,
        needle="Failed to register mr",
        pattern=Pattern(r"(?P<error>Failed to register mr) \[(?P<rc>-?\d{1,5})\]"),
        sample="infiniband rdmap16s27: Failed to register mr [-22]",
        near_miss="infiniband rdmap16s27: registered mr [22]",
        source="Linux drivers/infiniband/hw/efa",
    ),
)

ROWS: tuple[Signature, ...] = (*_FIRMWARE_ROWS, *_CABLE_ROWS, *_LINK_ROWS)
