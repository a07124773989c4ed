"""Key pairs that OpenSSH itself takes for what they should be."""

import shutil
import subprocess
from pathlib import Path

import pytest

from mpiop.controller.write.ssh_keys import KEY_TYPES, generate_key_pair
from mpiop.options import Options

EXPECTED = {
    "ecdsa-p521": ("ecdsa-sha2-nistp521", "EC PRIVATE KEY", "521"),
    "ecdsa-p256": ("ecdsa-sha2-nistp256", "EC PRIVATE KEY", "256"),
    "ecdsa-p384": ("ecdsa-sha2-nistp384", "EC PRIVATE KEY", "384"),
    "ed25519": ("ssh-ed25519", "OPENSSH PRIVATE KEY", "256"),
    "rsa-3072": ("ssh-rsa", "RSA PRIVATE KEY", "3072"),
}


def test_the_table_above_is_complete() -> None:
    assert tuple(EXPECTED) == KEY_TYPES


def test_the_default_is_what_the_reference_makes() -> None:
    assert EXPECTED[Options().ssh_key_type][:2] == ("ecdsa-sha2-nistp521", "EC PRIVATE KEY")


@pytest.mark.parametrize("key_type", KEY_TYPES)
def test_form_of_the_pair(key_type: str) -> None:
    algorithm, armour, _ = EXPECTED[key_type]
    pair = generate_key_pair(key_type)
    assert pair.private_pem.startswith(f"-----BEGIN {armour}-----\n")
    assert pair.private_pem.endswith(f"-----END {armour}-----\n")
    assert pair.public_openssh.startswith(f"{algorithm} AAAA")
    assert pair.public_openssh.count("\n") == 1
    assert pair.public_openssh.endswith("\n")


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen here: apt-get install openssh-client")
@pytest.mark.parametrize("key_type", KEY_TYPES)
def test_ssh_keygen_finds_the_public_key_in_the_private_one(key_type: str, tmp_path: Path) -> None:
    pair = generate_key_pair(key_type)
    private, public = tmp_path / "id_rsa", tmp_path / "id_rsa.pub"
    private.write_text(pair.private_pem)
    private.chmod(0o600)
    public.write_text(pair.public_openssh)
    read = subprocess.run(["ssh-keygen", "-y", "-f", private], capture_output=True, text=True, check=True).stdout
    assert read.split()[:2] == pair.public_openssh.split()
    shown = subprocess.run(["ssh-keygen", "-l", "-f", public], capture_output=True, text=True, check=True).stdout
    assert shown.split()[0] == EXPECTED[key_type][2]


def test_no_two_pairs_are_the_same() -> None:
    assert generate_key_pair("ed25519") != generate_key_pair("ed25519")


def test_the_private_half_does_not_show_in_logs() -> None:
    pair = generate_key_pair("ed25519")
    assert pair.private_pem.splitlines()[1] not in repr(pair)


def test_an_unknown_type_is_refused_with_the_choice() -> None:
    with pytest.raises(ValueError, match=r"unknown SSH key type 'dsa': choose one of ecdsa-p521, ecdsa-p256"):
        generate_key_pair("dsa")
