"""Settings that contradict each other, or that are left from debugging."""

from collections.abc import Callable, Iterator
from functools import cache

from ncdiag.model.environment import LintFinding, LintSeverity, Setting, Variable
from ncdiag.profiles.catalogue import variable, variables
from ncdiag.profiles.rules.look import Look, is_before, short
from ncdiag.profiles.rules.table import found

# Names people give to networks that call themselves otherwise. Source: NCCL 2.30.7, the names of
# the networks in src/transport/net_ib and src/transport/net_socket.cc.
_NOT_A_NET = {
    **dict.fromkeys(("tcp", "ethernet", "eth", "sockets", "tcp/ip"), "Socket"),
    **dict.fromkeys(("infiniband", "roce", "rdma", "ibv", "verbs", "rocev2", "mlx5"), "IB"),
    **dict.fromkeys(("efa", "libfabric", "aws"), "AWS Libfabric"),
}
_GDR_OFF = {"LOC", "0"}
# The first release that chooses the GID by family, range and version. Source: NCCL's tags,
# src/transport/net_ib.cc; catalogue, NCCL_IB_GID_INDEX.
_AUTO_GID_SINCE = (2, 21, 5)
# Source: NCCL 2.30.7, src/transport/net_socket.cc, which lowers the sockets where it is more.
_MAX_SOCKETS = 64
# ncdiag's own: hosts with fewer HCAs are seldom cabled in rails, those with 4 or 8 GPUs mostly.
_RAILS_FROM_HCAS = 4
_LEAST_AND_MOST = (
    ("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"),
    ("NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS"),
    ("NCCL_MIN_CTAS", "NCCL_MAX_CTAS"),
    ("NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS"),
)
_TRUE = {"y", "yes", "1", "t", "true"}


def check(look: Look) -> Iterator[LintFinding]:
    """What the settings that take effect say against each other."""
    for rule in _CHECKS:
        yield from rule(look)


def _ib_off(look: Look) -> Iterator[LintFinding]:
    if not look.integer("NCCL_IB_DISABLE"):
        return
    off = look.effective["NCCL_IB_DISABLE"]
    net = look.value("NCCL_NET")
    if net is not None and net.lower() == "ib":
        setting = look.effective["NCCL_NET"]
        message = "NCCL_NET=IB requires what NCCL_IB_DISABLE=1 takes away; initialisation fails"
        yield found("ib_off_but_wanted", setting, message)
    tuned = [
        name
        for name, setting in look.effective.items()
        if name.startswith("NCCL_IB_") and setting.place and setting is not off
    ]
    if tuned:
        chosen = "NCCL_IB_HCA" if "NCCL_IB_HCA" in tuned else tuned[0]
        rest = f" and {len(tuned) - 1} more" if len(tuned) > 1 else ""
        message = f"with NCCL_IB_DISABLE=1, {short(chosen)}{rest} has no effect"
        yield found("ib_off_but_tuned", off, message, f"drop NCCL_IB_DISABLE or {short(chosen)}")


def _net(look: Look) -> Iterator[LintFinding]:
    meant = _NOT_A_NET.get((look.value("NCCL_NET") or "").lower())
    if meant:
        setting = look.effective["NCCL_NET"]
        quoted = ", in quotes where a shell reads it" if " " in meant else ""
        message = f"no network is called {short(setting.value or '')}; initialisation fails"
        yield found("unknown_net", setting, message, f"write the value {meant}{quoted}")


def _p2p_off(look: Look) -> Iterator[LintFinding]:
    disabled = look.integer("NCCL_P2P_DISABLE") == 1
    if disabled and look.value("NCCL_P2P_LEVEL") is not None:
        setting = look.effective["NCCL_P2P_LEVEL"]
        message = "NCCL_P2P_DISABLE=1 wins over NCCL_P2P_LEVEL"
        yield found("p2p_level_without_effect", setting, message)
    level = look.value("NCCL_P2P_LEVEL") in ("LOC", "0") and not disabled
    if not disabled and not level:
        return
    setting = look.effective["NCCL_P2P_DISABLE" if disabled else "NCCL_P2P_LEVEL"]
    if setting.reason is not None:
        return
    message = "GPUs do not reach each other directly; often left from debugging"
    if look.nvlink():
        message = "GPUs of these hosts are joined by NVLink, and this has NCCL go round it"
    yield found("p2p_off", setting, message, f"drop {setting.name}")


def _shm_off(look: Look) -> Iterator[LintFinding]:
    setting = look.effective.get("NCCL_SHM_DISABLE")
    if setting is not None and look.integer("NCCL_SHM_DISABLE") and setting.reason is None:
        message = "traffic within a host that has no direct path goes over the network"
        yield found("shm_off", setting, message, "drop NCCL_SHM_DISABLE")


def _gpudirect_off(look: Look) -> Iterator[LintFinding]:
    setting = look.effective.get("NCCL_NET_GDR_LEVEL")
    if setting and look.value("NCCL_NET_GDR_LEVEL") in _GDR_OFF and setting.reason is None:
        message = f"{setting.value} turns GPUDirect RDMA off: data goes through host memory"
        yield found("gpudirect_off", setting, message, "drop NCCL_NET_GDR_LEVEL")


def _forced(look: Look) -> Iterator[LintFinding]:
    for name in ("NCCL_ALGO", "NCCL_PROTO"):
        value = look.value(name)
        if not value:
            continue
        setting = look.effective[name]
        lists = [part.rpartition(":")[2] for part in value.split(";")]
        taken = [part for part in lists if not part.startswith("^")]
        if name == "NCCL_PROTO" and any("LL128" in part.upper().split(",") for part in taken):
            message = "LL128 is forced, which corrupts data on hardware that does not support it"
            yield found("ll128_forced", setting, message, "leave LL128 to NCCL's own choice")
        elif taken and setting.reason is None:
            message = (
                f"{name}={short(value)} holds for every size; collectives that do not have it "
                "fail from NCCL 2.24 on"
            )
            yield found("algorithm_forced", setting, message, f"drop {name}")


def _gid_index(look: Look) -> Iterator[LintFinding]:
    index = look.integer("NCCL_IB_GID_INDEX")
    at_hand = look.context.nccl
    if index is None or index < 0 or (at_hand and is_before(at_hand, _AUTO_GID_SINCE)):
        return
    setting = look.effective["NCCL_IB_GID_INDEX"]
    if setting.reason is None:
        message = f"GID index {index} is another address once addresses change"
        fix = "drop NCCL_IB_GID_INDEX: NCCL finds the RoCE v2 address itself from 2.21.5 on"
        yield found("gid_index_fixed", setting, message, fix, None if at_hand else _INFO)


def _sockets(look: Look) -> Iterator[LintFinding]:
    threads, each = look.integer("NCCL_SOCKET_NTHREADS"), look.integer("NCCL_NSOCKS_PERTHREAD")
    if threads is not None and each is not None and threads * each > _MAX_SOCKETS:
        setting = look.effective["NCCL_NSOCKS_PERTHREAD"]
        message = f"{threads} threads with {each} sockets are {threads * each}, of at most 64"
        yield found("too_many_sockets", setting, message)


def _bounds(look: Look) -> Iterator[LintFinding]:
    for least, most in _LEAST_AND_MOST:
        low, high = look.integer(least), look.integer(most)
        if low is not None and high is not None and low > high > 0:
            message = f"{least}={low} is more than {most}={high}"
            yield found("min_over_max", look.effective[least], message)


def _cumem(look: Look) -> Iterator[LintFinding]:
    if look.integer("NCCL_CUMEM_ENABLE") != 0:
        return
    setting = look.effective["NCCL_CUMEM_ENABLE"]
    wanted = [name for name in ("NCCL_NVLS_ENABLE", "NCCL_MNNVL_ENABLE") if look.integer(name) == 1]
    if wanted:
        message = f"{wanted[0]}=1 needs what NCCL_CUMEM_ENABLE=0 turns off"
        yield found("cumem_off", setting, message)
    elif setting.reason is None and look.integer("NCCL_NVLS_ENABLE") != 0:
        message = "without cuMem there is no NVLS, symmetric memory or multi-node NVLink"
        yield found("cumem_off", setting, message, None, None if look.nvlink() else _INFO)


def _host_id(look: Look) -> Iterator[LintFinding]:
    if look.value("NCCL_HOSTID") and look.multi_host() is not False:
        message = "the same NCCL_HOSTID on every host makes all of them look like one"
        fix = "drop it, or set it on each host to something of that host"
        yield found("hostid_constant", look.effective["NCCL_HOSTID"], message, fix)


def _cross_nic(look: Look) -> Iterator[LintFinding]:
    hcas = max((len(host.hcas or ()) for host in look.context.hosts), default=0)
    if look.integer("NCCL_CROSS_NIC") == 1 and hcas >= _RAILS_FROM_HCAS:
        setting = look.effective["NCCL_CROSS_NIC"]
        if setting.reason is None:
            message = f"with {hcas} HCAs a host, traffic between rails passes the spines"
            yield found("cross_nic_on_rails", setting, message)


def _file_of_another_machine(look: Look) -> Iterator[LintFinding]:
    kinds = {(host.gpus, host.hcas) for host in look.context.hosts}
    for name in ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"):
        if look.value(name) and len(kinds) > 1:
            message = f"these hosts are of {len(kinds)} kinds, and {name} describes one"
            yield found("file_of_another_machine", look.effective[name], message)


def _old_and_new(look: Look) -> Iterator[LintFinding]:
    for row in _aliases():
        new = row.replaced_by or ""
        old_value, new_value = look.value(row.name), look.value(new)
        if old_value is not None and new_value is not None and old_value != new_value:
            message = f"{row.name}={short(old_value)} and {new}={short(new_value)} differ"
            yield found("both_names_set", look.effective[row.name], message, f"keep {new} only")


@cache
def _aliases() -> tuple[Variable, ...]:
    """Rows that are still read and have a new name for the same."""
    deprecated = [row for row in variables() if row.deprecated and row.replaced_by]
    return tuple(
        row
        for row in deprecated
        if (new := variable(row.replaced_by or "")) is not None and new.type is row.type
    )


def _blocking_wait(look: Look) -> Iterator[LintFinding]:
    wait, setting = _pytorch(look, "BLOCKING_WAIT")
    handling, _ = _pytorch(look, "ASYNC_ERROR_HANDLING")
    if setting is not None and (wait or "").lower() in _TRUE and handling in ("1", "2", "3"):
        message = f"with blocking wait, asynchronous error handling ({handling}) has no effect"
        yield found("blocking_wait_and_async", setting, message)


def _pytorch(look: Look, name: str) -> tuple[str | None, Setting | None]:
    """The value of a variable that PyTorch also reads by its old name."""
    for full in (f"TORCH_NCCL_{name}", f"NCCL_{name}"):
        if look.value(full) is not None:
            return look.value(full), look.effective[full]
    return None, None


def _recorder(look: Look) -> Iterator[LintFinding]:
    for name in ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"):
        if (
            look.integer(name) == 0
            and (look.value("TORCH_NCCL_DUMP_ON_TIMEOUT") or "").lower() in _TRUE
        ):
            message = f"{name}=0 keeps nothing that TORCH_NCCL_DUMP_ON_TIMEOUT could write"
            yield found("recorder_off", look.effective[name], message, f"write {name}=2000")


_INFO = LintSeverity.INFO
_CHECKS: tuple[Callable[[Look], Iterator[LintFinding]], ...] = (
    _ib_off,
    _net,
    _p2p_off,
    _shm_off,
    _gpudirect_off,
    _forced,
    _gid_index,
    _sockets,
    _bounds,
    _cumem,
    _host_id,
    _cross_nic,
    _file_of_another_machine,
    _old_and_new,
    _blocking_wait,
    _recorder,
)
