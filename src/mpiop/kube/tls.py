"""The TLS context of new connections, renewed when its files change."""

import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from mpiop.kube.errors import ConfigError

_log = logging.getLogger(__name__)  # the tools for users share this, and structlog would print into their output

CHECK_SECONDS = 10.0
"""How often the files are checked: a rotated certificate is used after at most this time."""


@dataclass(frozen=True, slots=True)
class TLSConfig:
    """The sources of certificates; data (PEM) takes precedence over a file.

    Attributes:
        ca_file: CA bundle that signs the server's certificate; with `ca_data` empty too, the system's CAs count.
        ca_data: The same, as PEM.
        certificate_file: Client certificate chain.
        certificate_data: The same, as PEM.
        key_file: Private key of the client certificate.
        key_data: The same, as PEM.
        server_name: Name to expect in the server's certificate, instead of the URL's host.
        is_insecure: Accept any server certificate.
    """

    ca_file: str = ""
    ca_data: str = ""
    certificate_file: str = ""
    certificate_data: str = ""
    key_file: str = ""
    key_data: str = ""
    server_name: str = ""
    is_insecure: bool = False

    @property
    def has_certificate(self) -> bool:
        """Return whether there is a client certificate."""
        return bool(self.certificate_data or self.certificate_file)

    def authority(self) -> str:
        """Return the CA bundle; "" for that of the system.

        Raises:
            ConfigError: Its file cannot be read.
        """
        return self.ca_data or (_read(self.ca_file) if self.ca_file else "")

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files that are read."""
        pairs = (self.ca_file, self.ca_data), (self.certificate_file, self.certificate_data), (self.key_file, self.key_data)
        return tuple(file for file, data in pairs if file and not data)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate chain and its private key, as PEM."""

    certificate: str
    key: str


class WatchedFiles:
    """Files that are checked for changes.

    They are compared by identity, size and time of change, through symbolic links: a mounted Secret or ConfigMap changes by
    swapping the link `..data`. Changed ones that cannot be used are reported again at the next check: they may be half written.
    """

    def __init__(self, files: tuple[str, ...], now: Callable[[], float]) -> None:
        """Note the current state of `files`, which are read after this; `now` is in monotonic seconds."""
        self.files = files
        self._now = now
        self._checked = now()
        self._seen = self._used = _signature(files)

    def have_changed(self) -> bool:
        """Return whether the files differ from those in use; they are checked once in `CHECK_SECONDS`."""
        if not self.files or self._now() - self._checked < CHECK_SECONDS:
            return False
        self._checked = self._now()
        self._seen = _signature(self.files)
        return self._seen != self._used

    def use(self) -> None:
        """Note that the files are in use in the state of the last check."""
        self._used = self._seen


class TLSContexts:
    """The newest valid context; if changed files are invalid, the previous context stays."""

    def __init__(self, config: TLSConfig, now: Callable[[], float]) -> None:
        """Make the first context.

        Args:
            config: Where certificates come from.
            now: Monotonic clock, in seconds.

        Raises:
            ConfigError: A file is missing or is not a certificate.
        """
        self._config = config
        self._watched = WatchedFiles(config.files, now)
        self._certificate: ClientCertificate | None = None
        self._context = build_context(config, None)

    def current(self, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
        """Return the context for a new connection: the same object as before unless something changed.

        Args:
            certificate: A client certificate that a credential plug-in gave; it wins over the configured one.

        Raises:
            ConfigError: `certificate` cannot be used.
        """
        if certificate != self._certificate:
            self._context = build_context(self._config, certificate)
            self._certificate = certificate
        self._reload_when_due()
        return self._context

    def is_current(self, context: ssl.SSLContext | None) -> bool:
        """Return whether new connections would use `context`."""
        self._reload_when_due()
        return context is self._context

    def _reload_when_due(self) -> None:
        if not self._watched.have_changed():
            return
        try:
            self._context = build_context(self._config, self._certificate)
        except ConfigError as error:
            _log.warning("changed certificates cannot be used; the ones before stay in use: %s", error)
            return
        self._watched.use()
        _log.info("certificates loaded again: %s", ", ".join(self._config.files))


def build_context(config: TLSConfig, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """Return a client context for `config`.

    Raises:
        ConfigError: A file is missing or is not a certificate; the message names it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 refuses CAs without a key usage extension, which many clusters have; Go and OpenSSL accept them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if config.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif config.ca_data or config.ca_file:
        _load_ca(context, config)
    else:
        context.load_default_certs()
    if certificate is None and config.has_certificate:
        certificate = ClientCertificate(
            config.certificate_data or _read(config.certificate_file), config.key_data or _read(config.key_file)
        )
    if certificate is not None:
        load_certificate(context, certificate, f"the client certificate of {config.certificate_file or 'the configuration'}")
    return context


def _load_ca(context: ssl.SSLContext, config: TLSConfig) -> None:
    try:
        context.load_verify_locations(cadata=config.authority())
    except (ssl.SSLError, ValueError) as error:
        origin = "certificate-authority-data" if config.ca_data else config.ca_file
        raise ConfigError(f"{origin} contains no usable CA certificate (PEM): {error}") from error


def load_certificate(context: ssl.SSLContext, certificate: ClientCertificate, origin: str) -> None:
    """Load `certificate`, called `origin` in messages, into `context`.

    Raises:
        ConfigError: It cannot be used.
    """
    try:
        with _memory_file(certificate.certificate) as certificate_path, _memory_file(certificate.key) as key_path:
            context.load_cert_chain(certificate_path, key_path)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{origin} and its key cannot be used (PEM, one pair?): {error}") from error


@contextmanager
def _memory_file(text: str) -> Generator[str]:
    """Yield the path of a file with `text` that is in memory only: a private key never touches a disk.

    Users' machines may not have such files (macOS).
    """
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("mpiop-tls")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a path that is a string from start to end
            return file.read()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path or 'the key of the client certificate'} cannot be read: {error}") from error


def _signature(files: tuple[str, ...]) -> tuple[tuple[int, int, int, int] | None, ...]:
    return tuple(_identity(file) for file in files)


def _identity(file: str) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(file)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
