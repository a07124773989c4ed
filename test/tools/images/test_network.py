"""What a build learns of this machine's way to the package index, and for how long."""

from pathlib import Path

from imaging import network


def test_later_files_and_variables_win(tmp_path: Path) -> None:
    chosen = tmp_path / "chosen.conf"
    chosen.write_text("[global]\nindex-url = https://a/simple\ntimeout = 5\n[install]\ntrusted_host = a\n", "utf-8")
    user = tmp_path / ".config/pip/pip.conf"
    user.parent.mkdir(parents=True)
    user.write_text("[global]\nindex-url = https://u/simple\nproxy = http://p\n", "utf-8")
    settings = network.pip_settings({"HOME": str(tmp_path), "PIP_CONFIG_FILE": str(chosen), "PIP_TIMEOUT": "7"})
    desired = {"index-url": "https://a/simple", "timeout": "7", "trusted-host": "a", "proxy": "http://p"}
    assert desired.items() <= settings.items()


def test_only_what_says_where_the_index_is_goes_into_the_build() -> None:
    settings = {
        "index-url": "https://a/simple",
        "extra-index-url": "https://b\nhttps://c",
        "find-links": "/wheels",
        "cert": "/ca",
        "user": "1",
    }
    assert network.pip_configuration(settings, has_certificates=True) == (
        "[global]\nindex-url = https://a/simple\nextra-index-url = https://b\n    https://c\ncert = /run/secrets/ca.crt\n"
    )
    assert network.pip_configuration({}, has_certificates=False) == "[global]\n"


def test_certificates_are_those_that_pip_would_take(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.touch()
    second.touch()
    assert network.certificates({"SSL_CERT_FILE": str(second)}, {"cert": str(first)}) == first
    assert network.certificates({"SSL_CERT_FILE": str(second)}, {"cert": "/gone"}) == second


def test_secrets_are_private_and_gone_afterwards(tmp_path: Path) -> None:
    bundle = tmp_path / "ca"
    bundle.touch()
    with network.secrets({"PIP_INDEX_URL": "https://user:word@a/simple", "SSL_CERT_FILE": str(bundle), "PIP_CERT": str(bundle)}) as secrets:
        file = secrets[network.PIP_SECRET]
        assert "user:word" in file.read_text("utf-8")
        assert file.stat().st_mode & 0o077 == 0
        assert secrets[network.CA_SECRET] == bundle
    assert not file.exists()
