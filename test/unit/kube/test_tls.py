"""TLS contexts: what is trusted, and how rotated files come into use (T2, F51)."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from fakes.certificates import Authority
from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import CHECK_SECONDS, ClientCertificate, TLSConfig, TLSContexts, build_context
from virtual_time import ManualClock


def trusted(context: ssl.SSLContext | None) -> list[Any]:
    assert context is not None
    return [certificate["subject"] for certificate in context.get_ca_certs()]


def test_python_3_13_is_not_stricter_than_go(authority: Authority) -> None:
    context = build_context(TLSConfig(ca_data=authority.certificate), None)
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert len(trusted(context)) == 1, "only the given authority"


def test_without_an_authority_the_systems_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, authority: Authority) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    assert len(trusted(build_context(TLSConfig(), None))) == 1


def test_insecure_means_no_check() -> None:
    assert build_context(TLSConfig(is_insecure=True), None).verify_mode == ssl.CERT_NONE


def test_a_file_stays_unread_where_there_is_data(tmp_path: Path, authority: Authority) -> None:
    config = TLSConfig(ca_file=str(tmp_path / "none"), ca_data=authority.certificate)
    assert config.files == ()
    build_context(config, None)


def test_T2_a_rotated_authority_is_used_after_the_next_check(tmp_path: Path) -> None:
    clock = ManualClock()
    link = mounted(tmp_path, "one", Authority("one").certificate)
    contexts = TLSContexts(TLSConfig(ca_file=str(tmp_path / "ca.crt")), clock.monotonic)
    first = contexts.current()
    clock.seconds = CHECK_SECONDS
    assert contexts.current() is first, "nothing changed"
    swap(tmp_path, link, "two", Authority("two").certificate)
    assert contexts.current() is first, "checked a moment ago"
    assert contexts.is_current(first)
    clock.seconds = 2 * CHECK_SECONDS
    assert not contexts.is_current(first)
    second = contexts.current()
    assert trusted(second) != trusted(first)
    clock.seconds = 3 * CHECK_SECONDS
    assert contexts.current() is second


def test_T2_a_half_written_certificate_keeps_the_context_until_it_is_whole(tmp_path: Path, authority: Authority) -> None:
    clock = ManualClock()
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    authority.issue("one").write(certificate, key)
    contexts = TLSContexts(TLSConfig(certificate_file=str(certificate), key_file=str(key)), clock.monotonic)
    first = contexts.current()
    new = authority.issue("two")
    certificate.write_text(new.certificate)
    clock.seconds += CHECK_SECONDS
    assert contexts.current() is first, "the key is still that of the old pair"
    key.unlink()
    clock.seconds += CHECK_SECONDS
    assert contexts.current() is first
    key.write_text(new.key)
    clock.seconds += CHECK_SECONDS
    assert contexts.current() is not first


def test_a_plugins_certificate_wins_and_changes_the_context(authority: Authority) -> None:
    contexts = TLSContexts(TLSConfig(ca_data=authority.certificate), ManualClock().monotonic)
    plain = contexts.current()
    pair = authority.issue("one")
    certificate = ClientCertificate(pair.certificate, pair.key)
    own = contexts.current(certificate)
    assert own is not plain
    assert contexts.current(certificate) is own


BROKEN = [
    ({"ca_data": "no pem"}, "certificate-authority-data contains no usable CA certificate"),
    ({"ca_file": "{directory}/none"}, "/none cannot be read: .*No such file"),
    ({"ca_file": "{directory}/junk"}, "/junk contains no usable CA certificate"),
    ({"ca_file": "{directory}/binary"}, "/binary cannot be read"),
    ({"certificate_file": "{directory}/junk", "key_data": "x"}, "the client certificate of .*/junk and its key cannot be used"),
    ({"certificate_data": "x"}, "the key of the client certificate cannot be read"),
]


@pytest.mark.parametrize(("fields", "message"), BROKEN)
def test_what_cannot_be_used_is_named(tmp_path: Path, fields: dict[str, str], message: str) -> None:
    (tmp_path / "junk").write_text("junk")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    paths: Any = {name: value.format(directory=tmp_path) for name, value in fields.items()}
    config = TLSConfig(**paths)
    with pytest.raises(ConfigError, match=message):
        build_context(config, None)


def mounted(directory: Path, generation: str, content: str) -> Path:
    """Lay out `ca.crt` as the kubelet mounts it: ca.crt → ..data/ca.crt, ..data → <generation>."""
    (directory / generation).mkdir()
    (directory / generation / "ca.crt").write_text(content)
    link = directory / "..data"
    link.symlink_to(generation)
    (directory / "ca.crt").symlink_to("..data/ca.crt")
    return link


def swap(directory: Path, link: Path, generation: str, content: str) -> None:
    """Do what the kubelet does at an update."""
    (directory / generation).mkdir()
    (directory / generation / "ca.crt").write_text(content)
    (directory / "..new").symlink_to(generation)
    (directory / "..new").replace(link)
