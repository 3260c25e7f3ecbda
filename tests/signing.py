"""Keys of their own for tests of signatures, and stores that sign and verify with them."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from bench.schema import Result, Run
from bench.signatures.keys import SigningKey, make_signing_key
from bench.signatures.signed_store import SignedStore
from bench.store import Store
from factories import put_documents


def make_key(name: str = "own") -> SigningKey:
    """Return the key of this name: another for each name, the same during one run of the tests."""
    return _make_key(name)


@cache
def _make_key(name: str) -> SigningKey:
    return make_signing_key()


def write_keys(folder: Path, *names: str) -> list[str]:
    """Write the secret and the public keys of these names; return the paths of the secret ones, `.pub` beside them."""
    paths = []
    for name in names:
        path = folder / f"{name}.pem"
        path.write_bytes(make_key(name).to_pem())
        path.chmod(0o600)
        path.with_name(f"{name}.pem.pub").write_bytes(make_key(name).public.to_pem())
        paths.append(str(path))
    return paths


def open_signing(folder: Path, name: str = "own") -> SignedStore:
    """Open the store in a folder such that it signs with the key of this name."""
    return SignedStore.over(Store.open(f"file://{folder}"), signer=make_key(name))


def open_verifying(folder: Path, *names: str) -> SignedStore:
    """Open the store in a folder such that it trusts the keys of these names."""
    trusted = [make_key(name).public for name in names or ("own",)]
    return SignedStore.over(Store.open(f"file://{folder}"), trusted=trusted)


def put_signed(folder: Path, run: Run, results: Sequence[Result], name: str = "own") -> SignedStore:
    """Put a run and its results into the store in a folder, signed; return that store."""
    store = open_signing(folder, name)
    put_documents(store, run, results)
    return store
