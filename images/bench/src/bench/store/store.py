"""Store: reads, writes and lists objects by their keys, and reports every error as one message for the user."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Self, TypeVar
from uuid import uuid4

from obstore.exceptions import BaseError

from bench.store.backend import Backend, open_backend
from bench.store.keys import NAME, check_key
from bench.store.listing import StoredObject, list_directory, list_folders
from bench.store.object_reading import check_held, read_object
from bench.store.obstore_calls import (
    await_listing,
    delete_objects,
    is_first_writer_told,
    list_pages,
    read_objects,
    submit,
    write_and_date_object,
    write_and_delete_object,
    write_new_object,
    write_object,
)
from bench.store.obstore_calls import list_folders as list_bucket_folders
from bench.store.store_errors import (
    ENDLESS,
    KeyMissing,
    StoreError,
    StoreUnreachable,
    UnreadableObject,
    classify_error,
    explain_error,
    explain_panic,
    get_headline,
    is_panic,
    name_place,
)

T = TypeVar("T")

# A page takes a second, with all retries RETRY_SECONDS: who answers forever with empty pages never gives one.
LIST_PATIENCE_SECONDS = 120
# A hundred thousand results a night for half a year: more is a server that makes keys up.
MAX_LISTED_OBJECTS = 20_000_000
DELETE_CHUNK = 1000  # keys in one DeleteObjects of S3


@dataclass(frozen=True, kw_only=True)
class Store:
    """Objects under keys. Methods raise StoreError where the store cannot be used and ValueError for a hostile key."""

    url: str
    """The URL as the user gave it."""
    backend: Backend = field(repr=False, compare=False)

    @classmethod
    def open(cls, url: str, *, makes_directory: bool = True) -> Self:
        """Open `file://DIRECTORY` (made if absent; all after file:// is the path), `s3://`, `gs://` or `az://`.

        `makes_directory`: False for what only reads: a directory that is absent holds nothing then, and stays absent.
        No request is made. Credentials: boto3's chain for s3, obstore's defaults for gs and az.
        """
        return cls(url=url, backend=open_backend(url, makes_directory=makes_directory))

    @property
    def checks_signatures(self) -> bool:
        """Whether what is read was signed by a trusted key: only in a `bench.signatures` store."""
        return False

    def seal(self, key: str, data: bytes) -> bytes:
        """Return what `put` writes for an object: here, its bytes as they are."""
        return data

    def unseal(self, key: str, data: bytes) -> bytes:
        """Return what `get` returns of an object: here, its bytes as they are."""
        return data

    def put(self, key: str, data: bytes) -> None:
        """Write an object, whole or not at all, in place of one of the same key; retry for `PUT_RETRY_SECONDS`."""
        data = self.seal(check_key(key), data)
        with self._translate_errors():
            submit(lambda: write_object(self.backend.long_retries, key, data)).result()

    def put_new(self, key: str, data: bytes) -> bool:
        """Write an object if there is none of this key; return False where another is there.

        A server that does not know `If-None-Match: *`, as AWS, Google and Azure do, takes it for `put`:
        `tells_first_writer` finds that out.
        """
        data = self.seal(check_key(key), data)
        with self._translate_errors(key):
            is_new = submit(functools.partial(write_new_object, self.backend, key, data)).result()
            # A request whose answer was lost is repeated, and meets its own object.
            return is_new or submit(functools.partial(self._read, key)).result() == data

    def tells_first_writer(self) -> bool:
        """Return whether `put_new` knows of objects that are there: tried with one that is deleted again.

        A server of S3 that ignores `If-None-Match: *`, such as `rclone serve s3`, takes the plan of a second runner.
        """
        if self.backend.directory is not None:
            return True
        key = f"runs/write-check-{uuid4().hex}"
        with self._translate_errors():
            return submit(functools.partial(is_first_writer_told, self.backend, key)).result()

    def put_with_short_retries(self, key: str, data: bytes) -> None:
        """Write an object as `put` does, but retry for `RETRY_SECONDS` only: for callers that have a deadline."""
        data = self.seal(check_key(key), data)
        with self._translate_errors():
            submit(lambda: write_object(self.backend.short_retries, key, data)).result()

    def get(self, key: str) -> bytes:
        """Return an object's bytes; raise KeyMissing where there is none, and UnreadableObject."""
        check_key(key)
        with self._translate_errors(key):
            data = submit(functools.partial(self._read, key)).result()
        return self.unseal(key, data)

    def holds(self, key: str) -> bool:
        """Return whether there is an object of this key, without reading it."""
        check_key(key)
        try:
            with self._translate_errors(key):
                submit(functools.partial(check_held, self.backend.short_retries, self.backend.directory, key)).result()
        except KeyMissing:
            return False
        return True

    def get_listed(
        self, keys: Iterable[str], *, num_parallel: int = 16
    ) -> Iterator[tuple[str, bytes | UnreadableObject]]:
        """Yield (key, bytes) of the keys of a listing, as `try_many` does; raise StoreError if the store fails.

        An object that was deleted since it was listed is left out. One that cannot be read comes with the reason: what
        its kind means to the caller decides what follows.
        """
        for key, data in self.try_many(keys, num_parallel=num_parallel):
            if isinstance(data, bytes | UnreadableObject):
                yield key, data
            elif isinstance(data, StoreError):
                raise data

    def try_many(
        self, keys: Iterable[str], *, num_parallel: int = 16
    ) -> Iterator[tuple[str, bytes | KeyMissing | StoreError]]:
        """Yield every key with its bytes, or with the error that `get` would raise for it, in any order.

        16 at a time: from a local S3 server, 8 to 32 are equally fast (docs/decisions/0030-data-set.md).
        """
        for key, data in read_objects(self._read, map(check_key, keys), num_parallel):
            try:
                if not isinstance(data, bytes):
                    with self._translate_errors(key):
                        raise data
                found: bytes | KeyMissing | StoreError = self.unseal(key, data)
            except (KeyMissing, StoreError) as error:
                found = error
            yield key, found

    def list_objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield what is below the folder `prefix` ('': all), in any order, without what a killed writer left."""
        folder = prefix.rstrip("/")
        if folder:
            check_key(folder)
        with self._translate_errors():
            if self.backend.directory is not None:
                yield from list_directory(self.backend.directory, folder)
                return
        by_ourselves = self.backend.s3_listing
        yield from self._read_pages(
            list_pages(self.backend.short_retries, folder) if by_ourselves is None else by_ourselves.list_pages(folder)
        )

    def _read_pages(self, pages: Iterator[list[StoredObject]]) -> Iterator[StoredObject]:
        """Yield what the pages of a server list; raise StoreError where its listing does not come to an end."""
        num_listed, first_keys = 0, set[str]()
        while True:
            with self._translate_errors():
                page = self._await_listing(functools.partial(next, pages, None), "no page of its listing came")
            if page is None:
                return
            num_listed += len(page)
            if page[0].key in first_keys or num_listed > MAX_LISTED_OBJECTS:
                raise StoreError(f"store {self.url}: {ENDLESS}")
            first_keys.add(page[0].key)
            yield from page

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
            if self.backend.directory is not None:
                names = list_folders(self.backend.directory / "runs")
            else:
                names = self._list_bucket_folders("runs")
        return sorted(name for name in names if re.fullmatch(NAME, name))

    def _list_bucket_folders(self, folder: str) -> list[str]:
        by_ourselves = self.backend.s3_listing
        if by_ourselves is not None:
            ask = functools.partial(by_ourselves.list_folders, folder)
        else:
            ask = functools.partial(list_bucket_folders, self.backend.short_retries, folder)
        return self._await_listing(ask, f"its list of '{folder}' did not end")

    def _await_listing(self, work: Callable[[], T], lateness: str) -> T:
        """Return what `work` returns, the request of a listing; StoreError where it takes too long, or too much."""
        try:
            with self._name_store():
                return await_listing(work, LIST_PATIENCE_SECONDS)
        except TimeoutError:
            late = f"{lateness} within {LIST_PATIENCE_SECONDS} s"
            raise StoreUnreachable(f"store {self.url}: {late}; try again") from None

    @contextmanager
    def _name_store(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            raise type(error)(f"store {self.url}: {error}") from None

    def check_writable(self) -> None:
        """Write an object of `CHECK_BYTES` and delete it again; raise StoreError with the reason where that fails."""
        key = f"runs/write-check-{uuid4().hex}"
        with self._translate_errors():
            submit(lambda: write_and_delete_object(self.backend.short_retries, key)).result()

    def _read(self, key: str) -> bytes:
        try:
            return read_object(self.backend.short_retries, self.backend.directory, key, self.backend.tags)
        except StoreUnreachable as error:
            raise StoreUnreachable(f"store {self.url}: {error}") from None

    @contextmanager
    def _translate_errors(self, key: str | None = None) -> Iterator[None]:
        try:
            yield
        except UnreadableObject as error:
            raise UnreadableObject(f"store {self.url}: {error}") from None
        except (BaseError, OSError) as error:
            place = name_place(self.backend.place, self.backend.proxy)
            explanation = explain_error(str(error), place, self.backend.make_bucket)
            if explanation is None and key is not None and isinstance(error, FileNotFoundError):
                raise KeyMissing(f"store {self.url}: no object '{key}'") from error
            kind = classify_error(str(error))
            raise kind(f"store {self.url}: {explanation or get_headline(str(error))}") from error
        except BaseException as error:  # a panic of Rust is no Exception
            if not is_panic(error):
                raise
            raise StoreError(f"store {self.url}: {explain_panic(error, self.backend.settings)}") from None
