"""SSH key pairs, made here and nowhere else: randomness is an input of the builders."""

from collections.abc import Callable, Mapping
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from mpiop.controller.objects.ssh_secret import KeyPair

_PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_GENERATORS: Final[Mapping[str, Callable[[], _PrivateKey]]] = {
    "ecdsa-p521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "ecdsa-p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ecdsa-p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "rsa-3072": lambda: rsa.generate_private_key(public_exponent=65537, key_size=3072),
}

KEY_TYPES: Final = tuple(_GENERATORS)
"""What `--ssh-key-type` takes; the first is the default,
as the reference operator makes it: OpenSSH reads it since 5.7, in FIPS mode too."""

SLOW_KEY_TYPES: Final = frozenset({"rsa-3072"})
"""Up to a second each, for a thread; a pair of the others takes less than 1 ms, and the default one less than a thread."""


def generate_key_pair(key_type: str) -> KeyPair:
    """Make a key pair.

    Args:
        key_type: One of `KEY_TYPES`.

    Raises:
        ValueError: `key_type` is none of them.
    """
    generate = _GENERATORS.get(key_type)
    if generate is None:
        raise ValueError(f"unknown SSH key type {key_type!r}: choose one of {', '.join(KEY_TYPES)}")
    key = generate()
    # PKCS#1 and SEC1 are what the reference operator writes; Ed25519 exists in OpenSSH's own format only.
    is_ed25519 = isinstance(key, ed25519.Ed25519PrivateKey)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH if is_ed25519 else serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private_pem=private.decode(), public_openssh=f"{public.decode()}\n")
