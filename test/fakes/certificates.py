"""Certificates of a small authority of our own, for tests over TLS."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: str
    key: str

    def write(self, certificate: Path, key: Path) -> None:
        certificate.write_text(self.certificate, encoding="ascii")
        key.write_text(self.key, encoding="ascii")


class Authority:
    def __init__(self, name: str = "authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.BasicConstraints(ca=True, path_length=None)
        # No key usage extension, as in the authorities of many clusters: Python's strict mode would refuse it.
        certificate = self._builder(self._name, self._key.public_key()).add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        self.certificate = certificate.public_bytes(Encoding.PEM).decode()

    def issue(self, name: str, *, address: str = "127.0.0.1") -> Pair:
        """Return a certificate for `name`, good for servers at `address` and at the DNS name `name`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address)), x509.DNSName(name)])
        certificate = self._builder(subject, key.public_key()).add_extension(names, critical=False).sign(self._key, hashes.SHA256())
        return Pair(
            certificate.public_bytes(Encoding.PEM).decode(),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        )

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        begin = datetime.now(UTC) - timedelta(minutes=5)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        return builder.serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(begin + timedelta(days=1))
