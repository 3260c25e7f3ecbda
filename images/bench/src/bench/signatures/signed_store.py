"""SignedStore: a store that signs the documents that it writes, and reads none whose signature is not right.

Every reader and writer goes through the store, so that none of them can forget a check.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from bench.signatures.keys import PublicKey, SigningKey
from bench.signatures.text import append_signature, encode_message, split_signature
from bench.store import (
    TABLES_PREFIX,
    KeyMissing,
    Store,
    StoredObject,
    UnreadableObject,
    find_signed_run,
    is_signed_key,
    run_key,
)


class SignatureProblem(StrEnum):
    """Why a document does not count where signatures are checked."""

    MISSING = "not signed"
    UNKNOWN_KEY = "signed by an unknown key"
    WRONG = "wrong signature"


class UnverifiedObject(UnreadableObject):
    """A document is not what somebody with one of the trusted keys wrote to this place."""

    def __init__(self, message: str, problem: SignatureProblem, reason: str) -> None:
        super().__init__(message)
        self.problem = problem
        self.reason = reason
        """The message without the place."""


@dataclass(frozen=True, kw_only=True)
class SignedStore(Store):
    """The documents of a store with their signatures. What is derived from them (`tables/`) is not read.

    `get` and its like return a document without its signature, and raise or yield UnverifiedObject for one that is not
    signed, or not rightly, by a trusted key. Other objects (reports, `latest/`) are as in any store.
    """

    trusted: Sequence[PublicKey] = field(repr=False, compare=False)
    signer: SigningKey | None = field(default=None, repr=False, compare=False)
    """None: what is written is not signed."""
    run_digests: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """By run, the SHA-256 of its plan, which the signatures of its records cover too."""

    @classmethod
    def over(
        cls,
        store: Store,
        *,
        trusted: Sequence[PublicKey] = (),
        signer: SigningKey | None = None,
        run_digests: dict[str, str] | None = None,
    ) -> Self:
        """Return the same store with signatures. The signer's own key is trusted."""
        own = [] if signer is None else [signer.public]
        return cls(
            url=store.url,
            backend=store.backend,
            trusted=[*trusted, *own],
            signer=signer,
            run_digests=dict(run_digests or {}),
        )

    @property
    def checks_signatures(self) -> bool:
        """Whether what is read was signed by a trusted key."""
        return True

    def list_objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield what is below a folder as `Store` does, but nothing of `tables/`, which anybody may have written."""
        if prefix.split("/")[0] == TABLES_PREFIX:
            return iter(())
        return super().list_objects(prefix)

    def seal(self, key: str, data: bytes) -> bytes:
        """Return a document with its signature. One that has a right one already keeps it; UnverifiedObject."""
        if not is_signed_key(key) or self.signer is None:
            return data
        document, signature = split_signature(data)
        if signature is not None:
            self.unseal(key, data)
            return data
        message = encode_message(key, self._find_digest_for(key), document)
        self._note_plan(key, document)
        return append_signature(document, self.signer.sign(message))

    def unseal(self, key: str, data: bytes) -> bytes:
        """Return a document without its signature; raise UnverifiedObject where it is not by a trusted key."""
        if key.split("/")[0] == TABLES_PREFIX:
            raise UnreadableObject(f"store {self.url}: {key}: tables are not signed")
        if not is_signed_key(key):
            return data
        document, signature = split_signature(data)
        if signature is None:
            is_signed = b'"signature"' in data
            raise self._refuse(key, SignatureProblem.WRONG if is_signed else SignatureProblem.MISSING)
        candidates = [public for public in self.trusted if public.key_id == signature.key_id]
        if not candidates:
            raise self._refuse(key, SignatureProblem.UNKNOWN_KEY, signature.key_id)
        message = encode_message(key, self._find_digest_for(key), document)
        if not any(public.verifies(signature, message) for public in candidates):
            raise self._refuse(key, SignatureProblem.WRONG)
        self._note_plan(key, document)
        return document

    def find_run_digest(self, run_id: str, make_plan: Callable[[], bytes] | None = None) -> str:
        """Return the SHA-256 of a run's plan in hex; of what `make_plan` returns, where the store has none.

        Raise UnverifiedObject where the one in the store is not signed rightly, and KeyMissing where there is none.
        """
        if run_id not in self.run_digests:
            try:
                self.get(run_key(run_id))
            except KeyMissing:
                if make_plan is None:
                    raise
                return _compute_digest(make_plan())
        return self.run_digests[run_id]

    def _find_digest_for(self, key: str) -> str | None:
        """Return the digest that the signature of an object covers; None for a plan, and for what is of no run."""
        run_id = find_signed_run(key)
        if run_id is None or key == run_key(run_id):
            return None
        try:
            return self.find_run_digest(run_id)
        except KeyMissing:
            raise self._refuse(key, SignatureProblem.WRONG) from None

    def _note_plan(self, key: str, document: bytes) -> None:
        run_id = find_signed_run(key)
        if run_id is not None and key == run_key(run_id):
            self.run_digests[run_id] = _compute_digest(document)

    def _refuse(self, key: str, problem: SignatureProblem, key_id: str = "") -> UnverifiedObject:
        reason = {
            SignatureProblem.MISSING: "not signed",
            SignatureProblem.UNKNOWN_KEY: f"signed by the key {key_id}, which is none of those given by --verify",
            SignatureProblem.WRONG: "wrong signature: changed, moved here, or of another run of this name",
        }[problem]
        return UnverifiedObject(f"store {self.url}: {key}: {reason}", problem, reason)


def _compute_digest(plan: bytes) -> str:
    return hashlib.sha256(plan).hexdigest()
