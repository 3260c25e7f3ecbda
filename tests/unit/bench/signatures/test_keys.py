"""bench.signatures.keys: which files hold keys, what is said of the others, and that no secret is shown."""

import hashlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from bench.errors import UserError
from bench.signatures.keys import check_is_private, parse_signing_key, read_public_keys, read_signing_key
from signing import make_key, write_keys

OTHER_KIND = generate_private_key(SECP256R1())
# RFC 8032, section 7.1, TEST 2: secret key, public key, the message 0x72, its signature.
SECRET = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
PUBLIC = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
SIGNATURE = bytes.fromhex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def pem_of(secret: bytes) -> bytes:
    key = Ed25519PrivateKey.from_private_bytes(secret)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_a_signature_is_that_of_the_standard() -> None:
    key = parse_signing_key(pem_of(SECRET), "a test")
    signature = key.sign(b"\x72")
    assert signature.value == SIGNATURE
    assert signature.key_id == hashlib.sha256(PUBLIC).hexdigest()[:16]
    assert key.public.verifies(signature, b"\x72")
    assert not key.public.verifies(signature, b"\x73")


def test_keys_are_read_as_they_were_written(tmp_path: Path) -> None:
    (path,) = write_keys(tmp_path, "own")
    assert read_signing_key(Path(path), "--sign").public == make_key("own").public
    assert read_public_keys([Path(f"{path}.pub")], "--verify") == [make_key("own").public]


def test_a_file_may_hold_several_public_keys_with_words_between_them(tmp_path: Path) -> None:
    texts = [make_key(name).public.to_pem() for name in ("old", "new")]
    path = tmp_path / "keys.pem"
    path.write_bytes(b"until March\n" + b"since then\r\n".join(texts).replace(b"\n", b"\r\n"))
    assert read_public_keys([path], "--verify") == [make_key("old").public, make_key("new").public]


OTHER_PUBLIC = OTHER_KIND.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
BAD_SECRETS = {
    "nothing": (b"", "holds no secret key in PEM"),
    "noise": (b"\x00\xff" * 40, "holds no secret key in PEM"),
    "public": (make_key().public.to_pem(), "is a public key"),
    "cut": (make_key().to_pem()[:-40], "holds no secret key in PEM"),
    "another-kind": (
        OTHER_KIND.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "is a key of another kind, expected Ed25519",
    ),
    "encrypted": (
        Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")),
        "is encrypted",
    ),
}


@pytest.mark.parametrize(("data", "words"), BAD_SECRETS.values(), ids=BAD_SECRETS)
def test_what_is_no_signing_key_is_said_in_one_message_that_shows_nothing_of_it(
    tmp_path: Path, data: bytes, words: str
) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(data)
    with pytest.raises(UserError, match=words) as raised:
        read_signing_key(path, "--sign")
    assert str(raised.value).startswith(f"--sign {path}: ")
    assert "\n" not in str(raised.value)
    body = [line for line in data.splitlines() if len(line) > 20 and b"-----" not in line]
    assert not [line for line in body if line.decode(errors="replace") in str(raised.value)]


BAD_PUBLIC = {
    "nothing": (b"", "holds no public key in PEM"),
    "secret": (make_key().to_pem(), "is a secret key"),
    "secret-besides": (make_key().public.to_pem() + make_key().to_pem(), "is a secret key"),
    "another-kind": (OTHER_PUBLIC, "holds a key of another kind"),
    "one-of-another-kind": (make_key().public.to_pem() + OTHER_PUBLIC, "holds a key of another kind"),
    "certificate": (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "something else"),
}


@pytest.mark.parametrize(("data", "words"), BAD_PUBLIC.values(), ids=BAD_PUBLIC)
def test_what_is_no_public_key_is_said_in_one_message(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "key.pub"
    path.write_bytes(data)
    with pytest.raises(UserError, match=words) as raised:
        read_public_keys([path], "--verify")
    assert str(raised.value).startswith(f"--verify {path}: ")


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = Path(*write_keys(tmp_path, "own"))
    check_is_private(path, "--sign")
    path.chmod(0o640)
    with pytest.raises(UserError, match=f"mode 640.*chmod 600 {path}"):
        check_is_private(path, "--sign")


def test_a_key_shows_its_name_and_nothing_of_its_secret() -> None:
    secret = parse_signing_key(pem_of(SECRET), "a test")
    assert secret.public.key_id in repr(secret)
    assert "0x" not in repr(secret)
    assert SECRET.hex() not in repr(secret)


@pytest.mark.parametrize("damage", ["the END line is cut", "a blank behind BEGIN"])
def test_a_key_that_is_damaged_is_not_left_out_in_silence(damage: str, tmp_path: Path) -> None:
    own, other = (Path(f"{path}.pub").read_text() for path in write_keys(tmp_path, "own", "other"))
    is_cut = damage == "the END line is cut"
    damaged = other.partition("-----END")[0] if is_cut else other.replace("KEY-----", "KEY----- ", 1)
    (tmp_path / "both.pub").write_text(own + damaged)
    with pytest.raises(UserError, match="only 1 of 2 keys can be read") as caught:
        read_public_keys([tmp_path / "both.pub"], "--verify")
    assert len(str(caught.value).splitlines()) == 1
