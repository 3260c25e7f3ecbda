"""Stores that sign what they write and check what they read, with the keys that options name."""

from collections.abc import Sequence
from pathlib import Path

from bench.errors import UserError
from bench.schema import Run
from bench.signatures.keys import check_is_private, read_public_keys, read_signing_key
from bench.signatures.signed_store import SignedStore
from bench.store import Store

SIGN, VERIFY = "--sign", "--verify"


def sign_store(store: Store, sign: Path | None, verify: Sequence[Path]) -> Store:
    """Return the store such that it signs with the key `sign`, and trusts the keys `verify` as well as that.

    Without a key it is the store itself. Raise UserError where a file is none of such a key.
    """
    if sign is None:
        if verify:
            raise UserError(f"{VERIFY}: what is checked here is signed here as well; add {SIGN} FILE, or leave it out")
        return store
    signer = read_signing_key(sign, SIGN)
    check_is_private(sign, SIGN)
    return SignedStore.over(store, signer=signer, trusted=read_public_keys(verify, VERIFY))


def open_signed_store(url: str, sign: Path | None, verify: Sequence[Path]) -> Store:
    """Open a store that has runs, such that it signs as `sign_store` says. Raise UserError as that does."""
    return sign_store(Store.open(url, makes_directory=False), sign, verify)


def verify_store(store: Store, verify: Sequence[Path], option: str = VERIFY) -> Store:
    """Return the store such that it reads only what these keys signed; without keys the store itself.

    Raise UserError where a file holds no public keys. `option`: what named the files.
    """
    return SignedStore.over(store, trusted=read_public_keys(verify, option)) if verify else store


def is_signing(store: Store) -> bool:
    """Return whether what is written to the store is signed."""
    return isinstance(store, SignedStore) and store.signer is not None


def find_run_digest(store: Store, run: Run) -> str | None:
    """Return the digest of a run's plan, stored or not yet, that the signatures of its records cover; None: none do."""
    if not isinstance(store, SignedStore) or store.signer is None:
        return None
    return store.find_run_digest(run.run_id, run.to_json)


def list_trusted_keys(store: Store) -> tuple[str, ...]:
    """Return the ids of the keys whose signatures a store believes, sorted; empty where it checks none."""
    if not isinstance(store, SignedStore):
        return ()
    return tuple(sorted({public.key_id for public in store.trusted}))


def check_cells_sign(store: Store, profile: str, signing_secret: str | None) -> None:
    """Raise UserError where the plan would be signed and the records of the cells not, or the other way round."""
    if is_signing(store) and signing_secret is None:
        raise UserError(
            f"{SIGN}: on a cluster the cells sign what they measure; name the Secret that has the key in the profile "
            f"{profile}, `signing_secret: NAME` (docs/how-to/sign-results.md)"
        )
    if signing_secret is not None and not is_signing(store):
        raise UserError(
            f"profile {profile}: signing_secret: the plan has to be signed as well; add {SIGN} FILE, or leave it out"
        )
