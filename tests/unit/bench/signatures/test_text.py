"""bench.signatures.text: where a signature stands, and which bytes it covers."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.signatures.text import Signature, append_signature, encode_message, split_signature

DOCUMENT = b'{\n "a": 1\n}'
SIGNATURE = Signature(key_id="0123456789abcdef", value=bytes(range(64)))
KEY = "runs/r/run.json"


def test_a_signature_is_the_last_member_of_a_document_that_any_reader_of_json_reads() -> None:
    signed = append_signature(DOCUMENT, SIGNATURE)
    text = f"ed25519 0123456789abcdef {base64.b64encode(bytes(range(64))).decode()}"
    assert json.loads(signed) == {"a": 1, "signature": text}
    assert split_signature(signed) == (DOCUMENT, SIGNATURE)


def test_a_document_without_a_signature_is_returned_as_it_is() -> None:
    assert split_signature(DOCUMENT) == (DOCUMENT, None)
    assert split_signature(b"") == (b"", None)


@given(st.binary(min_size=64, max_size=64), st.text(min_size=0, max_size=300))
def test_what_was_appended_is_found_again(value: bytes, text: str) -> None:
    document = json.dumps({"text": text}, indent=1).encode()
    signature = Signature(key_id="00112233445566ff", value=value)
    assert split_signature(append_signature(document, signature)) == (document, signature)


@pytest.mark.parametrize(
    "change",
    [
        lambda signed: signed + b"\n",
        lambda signed: signed.replace(b"ed25519 ", b"ed25519  "),
        lambda signed: signed.replace(b"ed25519", b"none"),
        lambda signed: signed.replace(b"0123456789abcdef", b"0123456789ABCDEF"),
        lambda signed: signed.replace(b'=="', b'="'),
        lambda signed: signed[:-3],
        # Two bits of the last letter say nothing: with them another text would stand for the same signature.
        lambda signed: signed.replace(b'Pw=="', b'Px=="'),
        lambda signed: json.dumps(json.loads(signed)).encode(),
    ],
)
def test_a_signature_that_is_written_otherwise_is_none(change: "object") -> None:
    assert callable(change)
    changed = change(append_signature(DOCUMENT, SIGNATURE))
    assert changed != append_signature(DOCUMENT, SIGNATURE)
    assert split_signature(changed) == (changed, None)


def test_bytes_that_do_not_end_as_our_documents_cannot_be_signed() -> None:
    with pytest.raises(ValueError, match="no document"):
        append_signature(b'{"a": 1}', SIGNATURE)


def test_the_message_is_that_of_dsse() -> None:
    # By hand, after https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
    kind = "application/vnd.benchmatrix.document+json; key=runs/r/run.json"
    assert encode_message(KEY, None, b"{}") == f"DSSEv1 {len(kind)} {kind} 2 {{}}".encode()
    assert encode_message(KEY, "ab", b"{}") == f"DSSEv1 {len(kind) + 8} {kind}; run=ab 2 {{}}".encode()


def test_other_keys_runs_and_documents_have_other_messages() -> None:
    messages = {
        encode_message(key, run, document)
        for key in (KEY, "runs/s/run.json")
        for run in (None, "ab", "ac")
        for document in (b"{}", b"{} ", b"")
    }
    assert len(messages) == 2 * 3 * 3
