"""Keys and certificates of a cluster, made with openssl: two authorities and one leaf per user of them."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import ClusterError

DAYS = 3650


@dataclass(frozen=True)
class Leaf:
    """One certificate to be signed.

    `names` are subjectAltNames as openssl writes them (`DNS:x`, `IP:y`), and make it a server's; without it is a client's.
    """

    file: str
    common_name: str
    organization: str = ""
    names: tuple[str, ...] = ()
    authority: str = "ca"


def render_request(leaf: Leaf) -> str:
    """Return the openssl configuration for `leaf` (config(5), x509v3_config(5))."""
    subject = f"CN = {leaf.common_name}\n" + (f"O = {leaf.organization}\n" if leaf.organization else "")
    usage = "serverAuth" if leaf.names else "clientAuth"
    names = f"subjectAltName = {','.join(leaf.names)}\n" if leaf.names else ""
    return (
        f"[req]\nprompt = no\ndistinguished_name = subject\nx509_extensions = extensions\n[subject]\n{subject}"
        "[extensions]\nbasicConstraints = critical,CA:FALSE\nkeyUsage = critical,digitalSignature\n"
        f"extendedKeyUsage = {usage}\nauthorityKeyIdentifier = keyid\n{names}"
    )


def render_authority(common_name: str) -> str:
    """Return the openssl configuration of a self-signed authority; Python ≥ 3.13 insists on its keyUsage."""
    return (
        f"[req]\nprompt = no\ndistinguished_name = subject\nx509_extensions = extensions\n[subject]\nCN = {common_name}\n"
        "[extensions]\nbasicConstraints = critical,CA:TRUE\nkeyUsage = critical,digitalSignature,keyCertSign,cRLSign\n"
        "subjectKeyIdentifier = hash\n"
    )


def make_certificates(folder: Path, leaves: list[Leaf]) -> None:
    """Write `<file>.crt` and `<file>.key` for each leaf, for both authorities, and the service account key pair.

    Raises:
        ClusterError: openssl refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    for authority, common_name in (("ca", "mpiop-cluster-ca"), ("front-proxy-ca", "mpiop-cluster-front-proxy-ca")):
        (folder / f"{authority}.cnf").write_text(render_authority(common_name), encoding="utf-8")
        _wait(authority, _request(folder, authority))
    running = []
    for leaf in leaves:
        (folder / f"{leaf.file}.cnf").write_text(render_request(leaf), encoding="utf-8")
        running.append((leaf.file, _request(folder, leaf.file, "-CA", f"{leaf.authority}.crt", "-CAkey", f"{leaf.authority}.key")))
    key = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", "service-accounts.key"]
    _wait("service-accounts", _start(key, folder))
    _wait("service-accounts", _start(["openssl", "pkey", "-in", "service-accounts.key", "-pubout", "-out", "service-accounts.pub"], folder))
    for file, process in running:
        _wait(file, process)


def _request(folder: Path, file: str, *signer: str) -> subprocess.Popen[str]:
    elliptic = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")
    output = ("-config", f"{file}.cnf", "-keyout", f"{file}.key", "-out", f"{file}.crt", "-days", str(DAYS), "-sha256")
    return _start(["openssl", "req", "-x509", *elliptic, *output, *signer], folder)


def _start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _wait(file: str, process: subprocess.Popen[str]) -> None:
    _, complaint = process.communicate()
    if process.returncode != 0:
        reason = (complaint.strip().splitlines() or ["no reason given"])[-1]
        raise ClusterError(f"openssl could not make the certificate {file}: {reason}; version 3.0 or later is needed")
