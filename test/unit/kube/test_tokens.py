"""T1, F49, F50: token files."""

import asyncio
from pathlib import Path

import pytest

from mpiop.kube.errors import ConfigError
from mpiop.kube.tokens import Credential, FixedCredential, TokenFile
from virtual_time import VirtualClock


def token_file(path: Path) -> TokenFile:
    return TokenFile(path, VirtualClock().monotonic)


async def test_T1_the_token_is_read_again_after_a_minute_and_stripped(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(" one\n")
    source = token_file(path)
    assert source.current() == Credential("one")
    path.write_text("two\n")
    await asyncio.sleep(59)
    assert source.current() == Credential("one")
    await asyncio.sleep(1)
    assert source.current() == Credential("two")


async def test_F49_a_swapped_link_is_followed(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(name)
    link = tmp_path / "..data"
    link.symlink_to("one")
    (tmp_path / "token").symlink_to("..data/token")
    source = token_file(tmp_path / "token")
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").replace(link)
    await asyncio.sleep(60)
    assert source.current() == Credential("two")


@pytest.mark.parametrize("broken", ["", " \n", "two\nlines", "bad\x00token", "schlüssel"])
async def test_F50_an_unusable_file_keeps_the_token_before(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    source = token_file(path)
    path.write_text(broken, encoding="utf-8")
    await asyncio.sleep(60)
    assert source.current() == Credential("one")
    path.unlink()
    await asyncio.sleep(60)
    assert source.current() == Credential("one")
    path.write_text("two")
    await asyncio.sleep(60)
    assert source.current() == Credential("two")


async def test_T1_after_a_401_the_file_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    source = token_file(path)
    failed = source.current()
    path.write_text("two")
    assert source.refresh(failed)
    assert source.current() == Credential("two")
    path.write_text("three")
    assert source.refresh(failed), "somebody refreshed since: the token of the failed request is not the newest"
    assert source.current() == Credential("two")


@pytest.mark.parametrize("content", [None, "", "\n"])
async def test_no_token_at_the_start_is_an_error_that_names_the_file(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=f"the token file {path} cannot be used: .*; write a valid token there"):
        token_file(path)


def test_a_fixed_credential_cannot_be_refreshed() -> None:
    source = FixedCredential(Credential("one"))
    assert source.current() == Credential("one")
    assert not source.refresh(Credential("one"))


def test_a_token_does_not_show_in_a_credential() -> None:
    assert repr(Credential("hunter2")) == "Credential(token=yes, certificate=no)"
    assert "hunter2" not in str(Credential("hunter2"))


@pytest.mark.parametrize("token", ["a b", "a\r\nX-Remote-User: admin", "schlüssel"])
def test_a_token_cannot_be_a_header_of_its_own(token: str) -> None:
    with pytest.raises(ConfigError, match=r"^the bearer token contains invalid characters"):
        Credential(token)
