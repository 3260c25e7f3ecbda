"""The place of a signature in a document, and the bytes that it covers: no cryptography, and no canonical form of JSON.

The signature is the last member of the document's object, written in one way only. What is signed is the document
without it, byte by byte as it is stored, so that nobody has to write JSON anew to check it, which two programs rarely
do alike (docs/decisions/0058-signatures.md).
"""

import base64
import binascii
import re
from dataclasses import dataclass

KEY_ID_DIGITS = 16
_END = b"\n}"
_MEMBER = re.compile(rb',\n "signature": "ed25519 ([0-9a-f]{16}) ([A-Za-z0-9+/]{86}==)"\n}\Z')
_MEMBER_BYTES = 160  # a member has 136


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A signature as a document has it; whether it is right is not known yet."""

    key_id: str
    """Of the key that the signature says it is by."""
    value: bytes


def split_signature(data: bytes) -> tuple[bytes, Signature | None]:
    """Return the document without its signature, and the signature; None where it has none at its end."""
    match = _MEMBER.search(data, max(0, len(data) - _MEMBER_BYTES))
    if match is None:
        return data, None
    try:
        value = base64.b64decode(match[2], validate=True)
    except binascii.Error:
        return data, None
    if base64.b64encode(value) != match[2]:  # other texts of the same bytes would be other objects with one signature
        return data, None
    return data[: match.start()] + _END, Signature(key_id=match[1].decode(), value=value)


def append_signature(document: bytes, signature: Signature) -> bytes:
    """Return the document with a signature as its last member; ValueError where it does not end as ours do."""
    if not document.endswith(_END):
        raise ValueError("no document as `Document.to_json` writes it")
    text = base64.b64encode(signature.value)
    return b'%b,\n "signature": "ed25519 %b %b"%b' % (
        document.removesuffix(_END), signature.key_id.encode(), text, _END,
    )  # fmt: skip


def encode_message(key: str, run_digest: str | None, document: bytes) -> bytes:
    """Return what is signed: the document, its key in the store, and the digest of its run's plan.

    `run_digest`: None for the plan itself. The encoding is DSSE's, which no two different pairs of type and body share:
    https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
    """
    run = "" if run_digest is None else f"; run={run_digest}"
    kind = f"application/vnd.benchmatrix.document+json; key={key}{run}".encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(document), document)
