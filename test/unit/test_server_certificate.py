"""The certificate of secure metrics: made at the start, or from a folder and renewed without a restart."""

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from fakes.certificates import Authority
from fakes.http_server import listening
from mpiop.clock import SystemClock
from mpiop.kube.tls import CHECK_SECONDS
from mpiop.server import Server, ServerError, health, serving_context
from virtual_time import ManualClock

pytestmark = pytest.mark.real_time


async def shown(context: ssl.SSLContext, *, host: str = "", trust: str = "") -> x509.Certificate:
    """Return the certificate that a server with `context` shows to a client that asks for `host`, and trusts `trust` alone if given."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if trust:
        client.load_verify_locations(cadata=trust)
    else:
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    async with listening(Server("127.0.0.1", 0, {"/": health({})}, context)) as port:
        # Of an address no name is sent along (SNI), as Prometheus does when it finds Pods by their address.
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=host or "127.0.0.1")
        certificate = x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.transport.abort()
        return certificate


def name_of(certificate: x509.Certificate) -> str:
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def write(folder: Path, authority: Authority, name: str) -> None:
    authority.issue(name).write(folder / "tls.crt", folder / "tls.key")


async def test_without_a_folder_it_is_self_signed_for_this_host_and_valid_now() -> None:
    context = serving_context("", "mpi-operator-0", SystemClock())
    certificate = await shown(context)
    assert certificate.issuer == certificate.subject
    assert certificate.not_valid_before_utc < datetime.now(UTC) < certificate.not_valid_after_utc
    pem = ssl.DER_cert_to_PEM_cert(certificate.public_bytes(Encoding.DER))
    for host in ("mpi-operator-0", "localhost", "127.0.0.1"):
        await shown(context, host=host, trust=pem)
    with pytest.raises(ssl.SSLCertVerificationError):
        await shown(context, host="elsewhere", trust=pem)


@pytest.mark.parametrize("in_folder", [False, True])
def test_tls_older_than_1_2_is_refused(tmp_path: Path, authority: Authority, *, in_folder: bool) -> None:
    write(tmp_path, authority, "one")
    assert serving_context(str(tmp_path) if in_folder else "", "host", ManualClock()).minimum_version == ssl.TLSVersion.TLSv1_2


async def test_two_processes_do_not_share_a_key() -> None:
    one, other = [await shown(serving_context("", "host", SystemClock())) for _ in range(2)]
    assert one.public_key() != other.public_key()
    assert one.serial_number != other.serial_number


@pytest.mark.parametrize("host", ["", "one"], ids=["no name is sent along", "a name is sent along"])
async def test_a_folders_certificate_is_shown_and_renewed_without_a_restart(tmp_path: Path, authority: Authority, host: str) -> None:
    clock = ManualClock()
    write(tmp_path, authority, "one")
    context = serving_context(str(tmp_path), "host", clock)
    assert name_of(await shown(context, host=host, trust=authority.certificate)) == "one"
    write(tmp_path, authority, "two")
    assert name_of(await shown(context)) == "one", "read a moment ago"
    clock.seconds += CHECK_SECONDS
    with structlog.testing.capture_logs() as logs:
        assert name_of(await shown(context)) == "two"
        clock.seconds += CHECK_SECONDS
        assert name_of(await shown(context)) == "two"
    assert [log["event"] for log in logs if "certificate" in log["event"]] == ["certificate reloaded"]


def half_written(folder: Path, authority: Authority) -> None:
    (folder / "tls.crt").write_text(authority.issue("two").certificate, encoding="ascii")


BREAKAGES: list[tuple[str, Callable[[Path, Authority], object]]] = [
    ("the key is still the old one", half_written),
    ("the key is gone", lambda folder, _: (folder / "tls.key").unlink()),
    ("the certificate is rubbish", lambda folder, _: (folder / "tls.crt").write_text("rubbish", encoding="ascii")),
]


@pytest.mark.parametrize("breakage", [breakage for _, breakage in BREAKAGES], ids=[name for name, _ in BREAKAGES])
async def test_a_broken_renewal_is_logged_and_the_certificate_before_stays_until_it_is_whole(
    tmp_path: Path, authority: Authority, breakage: Callable[[Path, Authority], object]
) -> None:
    clock = ManualClock()
    write(tmp_path, authority, "one")
    context = serving_context(str(tmp_path), "host", clock)
    breakage(tmp_path, authority)
    clock.seconds += CHECK_SECONDS
    with structlog.testing.capture_logs() as logs:
        assert name_of(await shown(context)) == "one"
    [log] = [log for log in logs if log["log_level"] == "warning"]
    assert log["event"] == "changed certificate cannot be used; the one before stays in use"
    assert str(tmp_path) in log["error"]
    assert "PRIVATE KEY" not in str(logs)
    write(tmp_path, authority, "two")
    clock.seconds += CHECK_SECONDS
    assert name_of(await shown(context)) == "two"


UNUSABLE: list[tuple[str, Callable[[Path, Authority], object], str]] = [
    ("no certificate", lambda folder, _: (folder / "tls.crt").unlink(), "No such file or directory: '{folder}/tls.crt'"),
    ("no key", lambda folder, _: (folder / "tls.key").unlink(), "No such file or directory: '{folder}/tls.key'"),
    ("not even text", lambda folder, _: (folder / "tls.key").write_bytes(b"\xff"), "a file cannot be read"),
    ("rubbish", lambda folder, _: (folder / "tls.crt").write_text("rubbish"), "the certificate in {folder} and its key cannot be used"),
    ("not a pair", half_written, "the certificate in {folder} and its key cannot be used"),
]


@pytest.mark.parametrize(("breakage", "reason"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE])
def test_what_cannot_be_used_at_the_start_says_what_is_wrong_where_and_what_to_do(
    tmp_path: Path, authority: Authority, breakage: Callable[[Path, Authority], object], reason: str
) -> None:
    write(tmp_path, authority, "one")
    breakage(tmp_path, authority)
    with pytest.raises(ServerError) as caught:
        serving_context(str(tmp_path), "host", ManualClock())
    assert str(caught.value).startswith(f"--metrics-cert-dir={tmp_path} needs tls.crt and tls.key, one pair as PEM; mount a Secret")
    assert reason.format(folder=tmp_path) in str(caught.value)
