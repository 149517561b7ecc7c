"""Health reports made by hand."""

from collections.abc import Mapping, Sequence

from ncdiag.model.health import (
    Difference,
    GpuHealth,
    HealthFacts,
    HealthFinding,
    HealthReport,
    HostFitness,
    HostHealth,
    NotKnown,
    Severity,
    Source,
    SourceReading,
    SourceState,
)

FITNESS = {
    Severity.FATAL: HostFitness.FATAL,
    Severity.FAULT: HostFitness.FAULTY,
    Severity.WARNING: HostFitness.WARNING,
}


def finding(
    check: str, severity: Severity, text: str, device: str | None = None, **more: str
) -> HealthFinding:
    return HealthFinding(
        check=check,
        severity=severity,
        text=text,
        device=device,
        next=more.pop("next", f"put {check} right"),
        **more,  # type: ignore[arg-type] # only texts
    )


XID = finding(
    "xid", Severity.FATAL, "Xid 79: the GPU has fallen off the bus", "gpu3", class_="gpu_lost"
)
HOT = [
    finding("gpu_temperature", Severity.WARNING, f"at {88 + gpu} °C", f"gpu{gpu}", measured="88 °C")
    for gpu in range(8)
]
PORT = finding("ib_port_down", Severity.FAULT, "the port is down", "mlx5_1")
NOTE = finding("gpu_mig", Severity.NOTE, "MIG is on", "gpu0")


def facts(host: str, *, hung: Sequence[Source] = (), taken_s: float = 1.7e9) -> HealthFacts:
    return HealthFacts(
        hostname=host,
        taken_s=taken_s,
        uptime_s=7200.0,
        cpus=96,
        gpus=tuple(
            GpuHealth(index=gpu, name="NVIDIA H100 80GB HBM3", temperature_c=50.0 + gpu)
            for gpu in range(8)
        ),
        sources=tuple(
            SourceReading(source=one, state=SourceState.TIMED_OUT, reason="no answer within 5.0 s")
            if one in hung
            else SourceReading(source=one, state=SourceState.READ, seconds=0.25)
            for one in (Source.NVML, Source.NVIDIA_SMI, Source.PROC)
        ),
        versions={"driver": "550.54.15"},
    )


def host_health(host: str, *findings: HealthFinding, told: HealthFacts | None = None) -> HostHealth:
    worst = [one for one in FITNESS if any(found.severity is one for found in findings)]
    return HostHealth(
        host=host,
        fitness=FITNESS[worst[0]] if worst else HostFitness.HEALTHY,
        findings=findings,
        not_known=(NotKnown(check="ib_errors", reason="there is no InfiniBand here"),),
        passed=("gpu_count", "memory_ecc"),
        facts=told or facts(host),
    )


def silent(host: str, error: str = "ssh: connection refused") -> HostHealth:
    return HostHealth(host=host, fitness=HostFitness.UNKNOWN, error=error)


def report(*hosts: HostHealth, **more: object) -> HealthReport:
    values: Mapping[str, object] = {"started": "2026-11-30T10:00:00Z", "seconds": 2.5, **more}
    return HealthReport(hosts=hosts, **values)  # type: ignore[arg-type] # its own fields


def fleet() -> HealthReport:
    """One fatal, two faulty, one with warnings, two unreachable, the rest healthy: 64 in all."""
    special = {
        "gpu003": host_health("gpu003", XID, *HOT),
        "gpu004": host_health("gpu004", PORT),
        "gpu005": host_health("gpu005", PORT, told=facts("gpu005", hung=[Source.NVIDIA_SMI])),
        "gpu006": host_health("gpu006", *HOT, NOTE),
        "gpu007": silent("gpu007"),
        "gpu008": silent("gpu008"),
    }
    names = [f"gpu{number:03d}" for number in range(1, 65)]
    return report(
        *(special.get(name) or host_health(name) for name in names),
        differences=(
            Difference(
                what="driver", most="550.54.15", most_hosts=62, other="535.1", hosts=("gpu009",)
            ),
        ),
    )
