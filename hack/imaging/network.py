"""How this machine reaches package indexes: certificates and pip's settings, given to a build as secrets, which reach no layer."""

import configparser
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Build arguments that every builder knows and leaves out of the image's history."""

CA_SECRET = "ca.crt"  # noqa: S105 - a name, not a secret
PIP_SECRET = "pip.conf"  # noqa: S105 - a name, not a secret

_MOUNTED_CA = "/run/secrets/ca.crt"
_SYSTEM_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem")
_PASSED_ON = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")


@contextmanager
def secrets(environment: Mapping[str, str] = os.environ) -> Iterator[dict[str, Path]]:
    """Yield files by the names of the secrets that the Dockerfile mounts; they are gone afterwards."""
    with TemporaryDirectory(prefix="mpiop-images-") as folder:
        settings = pip_settings(environment)
        found: dict[str, Path] = {}
        if bundle := certificates(environment, settings):
            found[CA_SECRET] = bundle
        path = Path(folder) / PIP_SECRET
        path.touch(mode=0o600)
        path.write_text(pip_configuration(settings, has_certificates=bundle is not None), "utf-8")
        found[PIP_SECRET] = path
        yield found


def pip_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what pip on this machine would use: its files from the system's to the user's, then PIP_* variables."""
    home = Path(environment.get("HOME", "/nonexistent"))
    configuration = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"), home / ".pip/pip.conf", configuration / "pip/pip.conf"]
    if chosen := environment.get("PIP_CONFIG_FILE"):
        files.append(Path(chosen))
    parser = configparser.RawConfigParser(strict=False)
    parser.read([file for file in files if file.is_file()], "utf-8")
    settings: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            settings.update({key.replace("_", "-"): value for key, value in parser.items(section)})
    settings.update({key[4:].lower().replace("_", "-"): value for key, value in environment.items() if key.startswith("PIP_")})
    return settings


def pip_configuration(settings: Mapping[str, str], *, has_certificates: bool) -> str:
    """Return the pip.conf of the build: settings with the address of an index; no folder of this machine exists there."""
    lines = [f"{key} = {_continued(settings[key])}" for key in _PASSED_ON if settings.get(key)]
    if has_certificates:
        lines.append(f"cert = {_MOUNTED_CA}")
    return "\n".join(["[global]", *lines, ""])


def certificates(environment: Mapping[str, str], settings: Mapping[str, str]) -> Path | None:
    """Return the file of certificate authorities that this machine trusts, or None if it has none."""
    chosen = (settings.get("cert", ""), environment.get("SSL_CERT_FILE", ""), environment.get("REQUESTS_CA_BUNDLE", ""), *_SYSTEM_BUNDLES)
    return next((Path(file) for file in chosen if file and Path(file).is_file()), None)


def _continued(value: str) -> str:
    return "\n    ".join(value.split())
