"""The certificate of one run: driver and workers trust it, and nothing else, for a day or two.

It exists in memory only and reaches the hosts by standard input. Whoever holds its key can run
code on every host of the run, so it is never in an argument, the environment or a file.
"""

import datetime as dt
import os
import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

# A host whose clock is a day wrong can still take part; a run takes minutes, hours at most.
_SLACK = dt.timedelta(days=1)
_VALID = dt.timedelta(days=3)


@dataclass(frozen=True, slots=True, repr=False)
class RunCertificate:
    """A self-signed certificate and its key, as PEM text."""

    certificate: str
    key: str


def make_certificate() -> RunCertificate:
    """A new certificate with a new key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ncdiag run")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return RunCertificate(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
    )


class HeldCertificate:
    """A certificate that OpenSSL can load by path although no file system holds it.

    Given as text, distributed would write it to a temporary folder again and again.
    """

    def __init__(self, certificate: RunCertificate) -> None:
        self._certificate = certificate.certificate
        self._fd = os.memfd_create("ncdiag run", os.MFD_CLOEXEC)
        with os.fdopen(self._fd, "w", closefd=False) as file:
            file.write(certificate.certificate + certificate.key)

    def security(self) -> Any:
        """What distributed wants to know: TLS 1.3, the same certificate in every role."""
        from distributed.security import Security

        path = f"/proc/self/fd/{self._fd}"
        roles = ("scheduler", "worker", "client")
        return Security(  # type: ignore[no-untyped-call] # distributed leaves it out
            require_encryption=True,
            tls_ca_file=self._certificate,
            tls_min_version=ssl.TLSVersion.TLSv1_3,
            **{f"tls_{role}_{part}": path for role in roles for part in ("cert", "key")},
        )

    def context(self) -> ssl.SSLContext:
        """For connecting to the driver: whoever answers must hold the run's key."""
        arguments: dict[str, Any] = self.security().get_connection_args("worker")
        context: ssl.SSLContext = arguments["ssl_context"]
        return context

    def close(self) -> None:
        """Forget it; what was loaded already works on."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
