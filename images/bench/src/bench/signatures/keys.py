"""Ed25519 keys in PEM files: making, reading and naming them. Nothing here shows a secret key, also not in messages."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bench.errors import UserError
from bench.foreign_files import ForeignFileError, read_foreign_file
from bench.signatures.text import KEY_ID_DIGITS, Signature

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MAX_KEY_BYTES = 2**16  # a key has 120; a file may hold many public ones
NEW_KEY = "`benchmatrix keys new` makes a pair"
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\n.*?-----END \1-----\n?", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class PublicKey:
    """The half of a key that checks signatures, and the name that signatures have of it."""

    key_id: str
    """The first hex digits of the SHA-256 of its 32 bytes."""
    key: "Ed25519PublicKey" = field(repr=False, compare=False)

    @classmethod
    def of(cls, key: "Ed25519PublicKey") -> Self:
        """Return the key with its name."""
        return cls(key_id=hashlib.sha256(key.public_bytes_raw()).hexdigest()[:KEY_ID_DIGITS], key=key)

    def verifies(self, signature: Signature, message: bytes) -> bool:
        """Return whether the signature is by this key, and of this message."""
        from cryptography.exceptions import InvalidSignature

        try:
            self.key.verify(signature.value, message)
        except InvalidSignature:
            return False
        return True

    def to_pem(self) -> bytes:
        """Return the key as a file has it."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return self.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True, kw_only=True)
class SigningKey:
    """The secret half of a key, with the public one."""

    public: PublicKey
    key: "Ed25519PrivateKey" = field(repr=False, compare=False)

    @classmethod
    def of(cls, key: "Ed25519PrivateKey") -> Self:
        """Return the key with its public half."""
        return cls(public=PublicKey.of(key.public_key()), key=key)

    def sign(self, message: bytes) -> Signature:
        """Return the signature of a message."""
        return Signature(key_id=self.public.key_id, value=self.key.sign(message))

    def to_pem(self) -> bytes:
        """Return the secret key as a file has it, not encrypted."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def make_signing_key() -> SigningKey:
    """Return a new key, from the system's source of random numbers."""
    check_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return SigningKey.of(Ed25519PrivateKey.generate())


def read_signing_key(path: Path, source: str) -> SigningKey:
    """Return the secret key of a PEM file; `source`: the option or variable that named it. Raise UserError."""
    return parse_signing_key(_read(path, source), f"{source} {path}")


def parse_signing_key(data: bytes, place: str) -> SigningKey:
    """Return the secret key in a PEM text; `place`: where it was found. Raise UserError."""
    check_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if b"-----BEGIN PUBLIC KEY-----" in data and not _is_secret(data):
        raise UserError(f"{place}: is a public key; to sign takes the secret one; {NEW_KEY}")
    try:
        key = load_pem_private_key(data, password=None)
    except TypeError:  # the library's way to say that it needs a password
        raise UserError(f"{place}: is encrypted; give a key without a password, that others cannot read") from None
    except (ValueError, UnsupportedAlgorithm):  # whose texts could quote the file
        raise UserError(f"{place}: holds no secret key in PEM (PKCS #8); {NEW_KEY}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UserError(f"{place}: is a key of another kind, expected Ed25519; {NEW_KEY}")
    return SigningKey.of(key)


def check_is_private(path: Path, source: str) -> None:
    """Raise UserError where others may use a file of this user that holds a secret key.

    As OpenSSH does, which asks nothing of files that others own: those of a Secret are root's.
    """
    status = os.stat(path)
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == os.getuid() and mode & 0o077:
        raise UserError(f"{source} {path}: others may use it (mode {mode:03o}); run `chmod 600 {path}`")


def read_public_keys(paths: Iterable[Path], source: str) -> Sequence[PublicKey]:
    """Return the public keys of PEM files, each of which may hold several; `source`: the option. Raise UserError."""
    return [key for path in paths for key in _read_public_keys(path, source)]


def _read_public_keys(path: Path, source: str) -> Sequence[PublicKey]:
    data = _read(path, source).replace(b"\r\n", b"\n")
    check_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if _is_secret(data):
        raise UserError(
            f"{source} {path}: is a secret key; keep it where results are signed, and give its public half here "
            f"(`benchmatrix keys show {path} --public` prints it)"
        )
    found = []
    for block in _BLOCK.finditer(data):
        try:
            key = load_pem_public_key(block[0])
        except (ValueError, UnsupportedAlgorithm):
            raise UserError(f"{source} {path}: holds something else than public keys in PEM; {NEW_KEY}") from None
        if not isinstance(key, Ed25519PublicKey):
            raise UserError(f"{source} {path}: holds a key of another kind, expected Ed25519; {NEW_KEY}")
        found.append(PublicKey.of(key))
    if not found:
        raise UserError(f"{source} {path}: holds no public key in PEM; {NEW_KEY}")
    if (num_begun := data.count(b"-----BEGIN ")) != len(found):
        raise UserError(
            f"{source} {path}: only {len(found)} of {num_begun} keys can be read; expected for each the lines from "
            "BEGIN to END as they were written, without blanks behind them; copy the keys again"
        )
    return found


def holds_secret_key(path: Path, source: str) -> bool:
    """Return whether a PEM file holds a secret key, of whatever kind; UserError where it cannot be read."""
    return _is_secret(_read(path, source))


def _is_secret(data: bytes) -> bool:
    return b"PRIVATE KEY-----" in data


def check_cryptography() -> None:
    """Raise UserError where the package that signs and verifies is not installed: only the tool and images have it."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise UserError("signatures need the package `cryptography` in this Python; install it with pip") from None


def _read(path: Path, source: str) -> bytes:
    try:
        return read_foreign_file(path, max_bytes=MAX_KEY_BYTES)
    except ForeignFileError as error:
        raise UserError(f"{source} {path}: {error}; expected a key in PEM ({NEW_KEY})") from None
