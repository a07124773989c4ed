"""The certificate that a server presents: from a folder, read again when its files change, or made at the start."""

import ipaddress
import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mpiop.clock import Clock
from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import ClientCertificate, WatchedFiles, load_certificate
from mpiop.server.serving import ServerError

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Files of a Secret of type kubernetes.io/tls."""

# Nobody can trust it without knowing it, so its end protects nobody; it is that of the process.
_SELF_SIGNED_DAYS = 3650
_CLOCK_SKEW = timedelta(hours=1)
_log = structlog.get_logger(__name__)


def serving_context(folder: str, host: str, clock: Clock) -> ssl.SSLContext:
    """Return the context of a server.

    Args:
        folder: With `tls.crt` and `tls.key` (PEM); "" makes a self-signed certificate.
        host: Name in the self-signed one, in addition to localhost.
        clock: Dates the self-signed one, and times reading the files again.

    Raises:
        ServerError: The files of `folder` cannot be used.
    """
    if folder:
        return _Renewed(Path(folder), clock.monotonic).context
    return _context(_self_signed(host, clock), "the self-signed certificate")


class _Renewed:
    """The newest certificate of a folder that could be used; each connection takes the one of its moment."""

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self._folder = folder
        self._watched = WatchedFiles((str(folder / CERTIFICATE), str(folder / KEY)), now)
        try:
            self.context = self._newest = _read(folder)
        except ConfigError as error:
            what = f"mount a Secret of type kubernetes.io/tls there, or leave --metrics-cert-dir out for a self-signed certificate: {error}"
            raise ServerError(f"--metrics-cert-dir={folder} needs {CERTIFICATE} and {KEY}, one pair as PEM; {what}") from error
        # Called at each handshake, whether the client names a host or not.
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, _host: str | None, _context: ssl.SSLContext) -> None:
        self._reload_when_due()
        connection.context = self._newest

    def _reload_when_due(self) -> None:
        if not self._watched.have_changed():
            return
        try:
            self._newest = _read(self._folder)
        except ConfigError as error:
            _log.warning("changed certificate cannot be used; the one before stays in use", files=self._watched.files, error=str(error))
            return
        self._watched.use()
        _log.info("certificate reloaded", files=self._watched.files)


def _read(folder: Path) -> ssl.SSLContext:
    """Return a context with the pair in `folder`.

    Raises:
        ConfigError: A file cannot be read, or they are no pair.
    """
    try:
        pair = ClientCertificate(*((folder / name).read_text(encoding="utf-8") for name in (CERTIFICATE, KEY)))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"a file cannot be read: {error}") from error
    return _context(pair, f"the certificate in {folder}")


def _context(pair: ClientCertificate, origin: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, pair, origin)
    return context


def _self_signed(host: str, clock: Clock) -> ClientCertificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mpi-operator")])
    begin = clock.now() - _CLOCK_SKEW
    local = [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "::1")]
    names = x509.SubjectAlternativeName([x509.DNSName(host), x509.DNSName("localhost"), *local])
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), begin, begin + timedelta(days=_SELF_SIGNED_DAYS)
    )
    builder = builder.add_extension(names, critical=False).add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    certificate = builder.add_extension(usage, critical=False).sign(key, hashes.SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return ClientCertificate(certificate.public_bytes(Encoding.PEM).decode(), private.decode())
