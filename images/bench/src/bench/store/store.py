"""Store: reads, writes and lists objects by their keys, and reports every error as one message for the user."""

import functools
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Self
from uuid import uuid4

from obstore.exceptions import BaseError

from bench.store.backend import Backend, open_backend
from bench.store.keys import NAME, check_key
from bench.store.listing import StoredObject, list_directory
from bench.store.obstore_calls import (
    delete_objects,
    read_object,
    read_objects,
    submit,
    write_and_date_object,
    write_and_delete_object,
    write_object,
)
from bench.store.store_errors import (
    KeyMissing,
    StoreError,
    StoreUnreachable,
    explain_error,
    explain_panic,
    get_headline,
    is_panic,
    is_transient,
)

LIST_CHUNK = 1000  # keys in one page of S3
DELETE_CHUNK = 1000  # keys in one DeleteObjects of S3


@dataclass(frozen=True, kw_only=True)
class Store:
    """Objects under keys. Methods raise StoreError where the store cannot be used and ValueError for a hostile key."""

    url: str
    """The URL as the user gave it."""
    backend: Backend = field(repr=False, compare=False)

    @classmethod
    def open(cls, url: str) -> Self:
        """Open `file://DIRECTORY` (made if absent; all after file:// is the path), `s3://`, `gs://` or `az://`.

        No request is made. Credentials: boto3's chain for s3, obstore's defaults for gs and az.
        """
        return cls(url=url, backend=open_backend(url))

    def put(self, key: str, data: bytes) -> None:
        """Write an object. Readers see all of it or nothing. It replaces one of the same key: the last writer wins.

        Errors of the server and of the network are retried for `PUT_RETRY_SECONDS`.
        """
        check_key(key)
        with self._translate_errors():
            submit(lambda: write_object(self.backend.long_retries, key, data)).result()

    def put_with_short_retries(self, key: str, data: bytes) -> None:
        """Write an object as `put` does, but retry for `RETRY_SECONDS` only: for callers that have a deadline."""
        check_key(key)
        with self._translate_errors():
            submit(lambda: write_object(self.backend.short_retries, key, data)).result()

    def get(self, key: str) -> bytes:
        """Return an object's bytes; raise KeyMissing where there is none."""
        check_key(key)
        with self._translate_errors(key):
            return submit(functools.partial(read_object, self.backend.short_retries, key)).result()

    def holds(self, key: str) -> bool:
        """Return whether there is an object of this key, without reading it."""
        check_key(key)
        try:
            with self._translate_errors(key):
                submit(functools.partial(self.backend.short_retries.head, key)).result()
        except KeyMissing:
            return False
        return True

    def get_many(self, keys: Iterable[str], *, num_parallel: int = 16) -> Iterator[tuple[str, bytes]]:
        """Yield (key, bytes) of every key, `num_parallel` at a time, in any order; raise KeyMissing as `get` does."""
        for key, data in self.try_many(keys, num_parallel=num_parallel):
            if not isinstance(data, bytes):
                raise data
            yield key, data

    def try_many(
        self, keys: Iterable[str], *, num_parallel: int = 16
    ) -> Iterator[tuple[str, bytes | KeyMissing | StoreError]]:
        """Yield every key with its bytes, or with the error that `get` would raise for it; as `get_many` otherwise.

        16 at a time: from a local S3 server, 8 to 32 are equally fast (docs/decisions/0030-data-set.md).
        """
        for key, data in read_objects(self.backend.short_retries, map(_checked, keys), num_parallel):
            if isinstance(data, bytes):
                yield key, data
                continue
            try:
                with self._translate_errors(key):
                    raise data
            except (KeyMissing, StoreError) as error:
                yield key, error

    def list_objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield what is below the folder `prefix` ('': all), in any order, without what a killed writer left."""
        folder = prefix.rstrip("/")
        if folder:
            check_key(folder)
        with self._translate_errors():
            if self.backend.directory is not None:
                yield from list_directory(self.backend.directory, folder)
                return
            stream = self.backend.short_retries.list(folder or None, chunk_size=LIST_CHUNK)
        while True:
            with self._translate_errors():
                chunk = submit(lambda: next(stream, None)).result()
            if chunk is None:
                return
            for meta in chunk:
                modified_at = meta["last_modified"]
                yield StoredObject(
                    key=meta["path"],
                    num_bytes=meta["size"],
                    version=meta["e_tag"] or f"{modified_at.isoformat()}-{meta['size']}",
                    modified_at=modified_at,
                )

    def list_keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys of `list_objects` that can be read."""
        return (found.key for found in self.list_objects(prefix) if not found.problem)

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is no error."""
        check_key(key)
        with suppress(KeyMissing), self._translate_errors(key):
            submit(functools.partial(self.backend.short_retries.delete, key)).result()

    def delete_many(self, keys: Iterable[str]) -> None:
        """Delete objects, those that are there: what another process deleted meanwhile is no error."""
        left = iter(keys)
        while chunk := list(islice(left, DELETE_CHUNK)):
            for key in chunk:
                check_key(key)
            with self._translate_errors():
                submit(functools.partial(delete_objects, self.backend.short_retries, chunk)).result()

    def read_clock(self) -> datetime:
        """Return the time by the clock of the store: of an object that is written, and deleted again."""
        key = f"runs/write-check-{uuid4().hex}"
        with self._translate_errors():
            return submit(lambda: write_and_date_object(self.backend.short_retries, key)).result()

    def list_run_ids(self) -> list[str]:
        """Return the names of the folders in `runs/` that can be run ids, sorted, without listing the objects."""
        with self._translate_errors():
            listing = submit(lambda: self.backend.short_retries.list_with_delimiter("runs")).result()
        names = (folder.rpartition("/")[2] for folder in listing["common_prefixes"])
        return sorted(name for name in names if re.fullmatch(NAME, name))

    def check_writable(self) -> None:
        """Write an object of `CHECK_BYTES` and delete it again; raise StoreError with the reason where that fails."""
        key = f"runs/write-check-{uuid4().hex}"
        with self._translate_errors():
            submit(lambda: write_and_delete_object(self.backend.short_retries, key)).result()

    @contextmanager
    def _translate_errors(self, key: str | None = None) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            explanation = explain_error(str(error), self.backend.place, self.backend.make_bucket)
            if explanation is None and key is not None and isinstance(error, FileNotFoundError):
                raise KeyMissing(f"store {self.url}: no object '{key}'") from error
            kind = StoreUnreachable if is_transient(str(error)) else StoreError
            raise kind(f"store {self.url}: {explanation or get_headline(str(error))}") from error
        except BaseException as error:  # a panic of Rust is no Exception
            if not is_panic(error):
                raise
            raise StoreError(f"store {self.url}: {explain_panic(error, self.backend.settings)}") from None


def _checked(key: str) -> str:
    check_key(key)
    return key
