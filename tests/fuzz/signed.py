"""Strategies for keys and signed documents, and the store and keys that a case with them begins with."""

import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import strategies as st

from bench.signatures.keys import SigningKey
from bench.signatures.signed_store import SignedStore
from bench.store import Store
from factories import put_documents
from fuzz.cases import Special
from fuzz.inputs import Contents
from fuzz.mutations import draw_garbled
from fuzz.workspaces import RUN_A, TRAIN, make_stored_result, make_stored_run

KEY = SigningKey.of(Ed25519PrivateKey.from_private_bytes(b"known to everybody, of no use ..."[:32]))
OTHER_KEY = SigningKey.of(Ed25519PrivateKey.from_private_bytes(b"another one that is of no use ..."[:32]))
SIGNED = "signed"
"""The folder of the store whose one run is signed."""
RUN, RESULT = make_stored_run(RUN_A, (TRAIN,)), make_stored_result(RUN_A, TRAIN, 1)
PLAN_FILE = f"{SIGNED}/runs/{RUN_A}/run.json"
RESULT_FILE = f"{SIGNED}/runs/{RUN_A}/results/{TRAIN.cell_id}/1-a1.json"


def write_signed(folder: Path) -> None:
    """Write a pair of keys, and a store with one run that is signed by them."""
    (folder / "key.pem").write_bytes(KEY.to_pem())
    (folder / "key.pem").chmod(0o600)
    (folder / "key.pem.pub").write_bytes(KEY.public.to_pem())
    put_documents(_open(folder), RUN, [RESULT])


def _open(folder: Path) -> SignedStore:
    return SignedStore.over(Store.open(f"file://{folder}/{SIGNED}"), signer=KEY)


def _sign(file: str, data: bytes) -> bytes:
    store = SignedStore.over(Store.open(f"file://{tempfile.gettempdir()}"), signer=KEY)
    store.seal(f"runs/{RUN_A}/run.json", RUN.to_json())
    return store.seal(file.removeprefix(f"{SIGNED}/"), data)


def _draw_near(*texts: bytes) -> Contents:
    """Draw texts, mostly with bytes of theirs cut, doubled or replaced, and what is no file at all."""
    whole = st.sampled_from(texts)
    return st.one_of(whole, *[draw_garbled(whole)] * 5, st.sampled_from(list(Special)))


public_keys = _draw_near(KEY.public.to_pem(), KEY.public.to_pem() + OTHER_KEY.public.to_pem(), KEY.to_pem())
signing_keys = _draw_near(KEY.to_pem(), OTHER_KEY.to_pem(), KEY.public.to_pem())
signed_results = _draw_near(_sign(RESULT_FILE, RESULT.to_json()))
signed_plans = _draw_near(_sign(PLAN_FILE, RUN.to_json()))
