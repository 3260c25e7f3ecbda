"""Store: reads, writes and lists objects by their keys, and reports every error as one message for the user."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.pool import ThreadPool
from threading import Thread
from typing import TYPE_CHECKING, Self, TypeVar

from bench.redaction import hide_url_users
from bench.store.directory import Directory, find_directory
from bench.store.errors import KeyMissing, StoreError, StoreUnreachable, UnreadableObject, explain
from bench.store.keys import NAME, StoredObject, find_key_problem

if TYPE_CHECKING:
    from bench.store.buckets import Bucket

SCHEMES = ("file", "s3", "gs", "az")
PUT_RETRY_SECONDS = 120  # a finished measurement is worth waiting for
NUM_READ_AHEAD = 4  # objects for each thread that are asked for, and held until they are taken

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Store:
    """Objects under keys (`bench.store.keys` makes them). Methods raise StoreError where the store cannot be used."""

    url: str
    """The URL as the user gave it."""
    backend: "Directory | Bucket" = field(repr=False, compare=False)
    on_wait: Callable[[StoreError], None] = field(default=lambda error: None, repr=False, compare=False)
    """Called before each further try of what failed because the store is away."""

    @classmethod
    def open(cls, url: str, **hooks: Callable[[StoreError], None]) -> Self:
        """Open `file://DIRECTORY` (all after file:// is the path), `s3://`, `gs://` or `az://`.

        Nothing is made or asked for. Credentials: boto3's chain for s3, obstore's defaults for gs and az.
        """
        scheme, separator, rest = url.partition("://")
        if not separator:
            shown = re.sub(r"[^\s/]*:[^\s/]*@", "...@", url)
            raise StoreError(f"store '{shown}': not a URL; for a directory write file://{shown}")
        if scheme == "file":
            return cls(url=url, backend=Directory(find_directory(url)), **hooks)
        if scheme not in SCHEMES:
            raise StoreError(f"store: '{scheme}://' is unknown; known are {', '.join(SCHEMES)}")
        if not re.fullmatch(r"[A-Za-z0-9._-]+(/[^?#@]*)?", rest) or find_key_problem(rest.rstrip("/")):
            raise StoreError(
                f"store: {scheme}:// needs a bucket and may have a prefix, {scheme}://BUCKET/PREFIX, and nothing else"
            )
        from bench.store.buckets import open_bucket  # takes long to import: only a store that needs it does

        return cls(url=url, backend=open_bucket(url), **hooks)

    def put(self, key: str, data: bytes, *, retry_seconds: float = PUT_RETRY_SECONDS) -> None:
        """Write an object, whole or not at all, in place of one of the same key.

        `retry_seconds`: for how long it is tried again where the store is away; each try takes 10 s.
        """
        self._insist(lambda: self.backend.write(key, data), retry_seconds)

    def put_new(self, key: str, data: bytes) -> bool:
        """Write an object if there is none of this key; return False where another is there.

        Of two writers at the same moment one learns it, except on servers that ignore `If-None-Match: *`.
        """
        if self._insist(lambda: self.backend.write_new(key, data), PUT_RETRY_SECONDS):
            return True
        return self.get(key) == data  # a request whose answer was lost is repeated, and meets its own object

    def get(self, key: str) -> bytes:
        """Return an object's bytes; raise KeyMissing where there is none, and UnreadableObject."""
        data = self._wait(lambda: self.backend.read(key))
        if data is None:
            raise KeyMissing(f"store {self.url}: no object '{key}'")
        return data

    def holds(self, key: str) -> bool:
        """Return whether there is an object of this key, without reading it."""
        return self._wait(lambda: self.backend.holds(key))

    def get_listed(
        self, keys: Iterable[str], *, num_parallel: int = 16
    ) -> Iterator[tuple[str, bytes | UnreadableObject]]:
        """Yield (key, bytes) of the keys of a listing, in any order; raise StoreError if the store fails.

        An object that was deleted since it was listed is left out. One that cannot be read comes with the reason: what
        its kind means to the caller decides what follows.
        16 at a time: from a local S3 server, 8 to 32 are equally fast (docs/decisions/0030-data-set.md).
        """
        left = iter(keys)
        with ThreadPool(num_parallel) as pool:
            while chunk := list(islice(left, NUM_READ_AHEAD * num_parallel)):
                yield from filter(None, pool.imap_unordered(self._try, chunk))

    def list_objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield what is below the folder `prefix` ('': all), in any order, without what a killed writer left."""
        folder = prefix.rstrip("/")
        pages = self.backend.list_pages(folder)
        while (page := self._wait(lambda: next(pages, None))) is not None:
            yield from page

    def list_keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys of `list_objects` that can be read."""
        return (found.key for found in self.list_objects(prefix) if not found.problem)

    def list_run_ids(self) -> list[str]:
        """Return the names of the folders in `runs/` that can be run ids, sorted, without listing the objects."""
        names = self._wait(lambda: self.backend.list_folders("runs"))
        return sorted(name for name in names if re.fullmatch(NAME, name))

    def delete_many(self, keys: Iterable[str]) -> None:
        """Delete objects, those that are there: what another process deleted meanwhile is no error."""
        if chosen := list(keys):
            self._wait(lambda: self.backend.delete(chosen))

    def check_writable(self, key: str = "runs/x", *, retry_seconds: float = 0.0) -> None:
        """Write something and delete it again; raise StoreError with the reason where that fails.

        `key`: of an object that is going to be written, where it lies in a directory: there it is tried.
        """
        self._insist(lambda: self.backend.check(key), retry_seconds)

    def _insist(self, work: Callable[[], T], seconds: float) -> T:
        """Return what `work` returns, tried for so long where the store is away, and once at least."""
        give_up_at = time.monotonic() + seconds
        while True:
            try:
                return self._wait(work)
            except StoreUnreachable as error:
                if time.monotonic() >= give_up_at:
                    raise
                self.on_wait(error)
            time.sleep(1)

    def _wait(self, work: Callable[[], T]) -> T:
        """Return what `work` returns; it has a thread of its own, so that Ctrl-C interrupts the one that waits."""
        with self._translate_errors():
            return submit(work).result()

    def _try(self, key: str) -> tuple[str, bytes | UnreadableObject] | None:
        try:
            with self._translate_errors():
                data = self.backend.read(key)
        except UnreadableObject as error:
            return key, error
        return None if data is None else (key, data)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            self.backend.check_process()
            yield
        except (StoreError, *self.backend.errors) as error:
            problem = error if isinstance(error, StoreError) else explain(error, self.backend.place)
            raise type(problem)(f"store {hide_url_users(self.url)}: {problem}") from None


def submit(work: Callable[[], T]) -> Future[T]:
    """Start `work` in a thread that does not keep the process alive: work that nobody waits for ends with it.

    A call into obstore itself cannot be interrupted. Its asynchronous calls are not used: their threads may still hand
    over a result while the interpreter ends, and then abort the process.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # passed to the thread that waits
            future.set_exception(error)

    Thread(target=run, name="store", daemon=True).start()
    return future
