"""Single calls into obstore, each in a thread of its own, so that Ctrl-C interrupts the thread that waits for one.

A call into obstore itself cannot be interrupted. Its asynchronous calls are not used: their threads may still hand over
a result while the interpreter ends, and then abort the process.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import TYPE_CHECKING, TypeVar

from obstore.exceptions import AlreadyExistsError, BaseError, GenericError

from bench.bounded_work import WorkTooLargeError, WorkTooSlowError, run_bounded
from bench.store.listing import StoredObject
from bench.store.store_errors import StoreError, is_cut

if TYPE_CHECKING:
    from obstore.store import ObjectStore

    from bench.store.backend import Backend

CHECK_BYTES = 65_536  # about a result
# Of one request: the store library repeats a request that got no answer, but not one whose answer was cut
# (https://github.com/apache/arrow-rs-object-store/issues/15, mended for GET alone, and for one cut).
MAX_CUT_ANSWERS = 5
LIST_CHUNK = 1000  # keys in one page of S3
NUM_READ_AHEAD = 4  # objects for each thread that were read and not yet taken: enough that it seldom waits

# Of memory while a listing is read: a page of 1,000 keys has 0.3 MB, the names of 100,000 runs 30 MB. The store library
# keeps what a server sends as one page, without a limit: 12 GB came in 30 s from one that never stopped.
MAX_LISTING_BYTES = 200 * 2**20

T = TypeVar("T")


def submit(work: Callable[[], T]) -> Future[T]:
    """Start `work` in a thread that does not keep the process alive: work that nobody waits for ends with it."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # passed to the thread that waits
            future.set_exception(error)

    Thread(target=run, name="store", daemon=True).start()
    return future


def await_listing(work: Callable[[], T], limit_seconds: float) -> T:
    """Return what `work`, the request of a listing, returns. Raise TimeoutError, and StoreError where it fills memory.

    The request itself cannot be ended: whoever gets these errors ends the command.
    """
    try:
        return run_bounded(work, limit_seconds=limit_seconds, max_bytes=MAX_LISTING_BYTES)
    except WorkTooLargeError:
        raise StoreError("what the server sends as a listing does not end; is it an S3 server?") from None
    except WorkTooSlowError:
        raise TimeoutError from None


def list_pages(store: "ObjectStore", folder: str) -> Iterator[list[StoredObject]]:
    """Yield what a server lists below `folder` ('': all), page by page, none empty.

    A listing whose page was cut goes on behind the last whole one.
    """
    last_key, num_cut = None, 0
    pages = store.list(folder or None, offset=None, chunk_size=LIST_CHUNK)
    while True:
        try:
            page = next(pages, None)
            num_cut = 0
        except BaseError as error:
            num_cut += 1
            if num_cut >= MAX_CUT_ANSWERS or not is_cut(str(error)):
                raise
            pages = store.list(folder or None, offset=last_key, chunk_size=LIST_CHUNK)  # after an error they just end
            continue
        if not page:
            return
        last_key = max(found["path"] for found in page)
        yield [StoredObject.of_server(found) for found in page]


def list_folders(store: "ObjectStore", folder: str) -> list[str]:
    """Return the names of the folders directly in `folder` of a bucket."""
    found = repeat_cut(lambda: store.list_with_delimiter(folder))
    return [prefix.rpartition("/")[2] for prefix in found["common_prefixes"]]


def repeat_cut(call: Callable[[], T]) -> T:
    """Return what `call`, one request that may be made again, returns; make it again where its answer was cut."""
    for _ in range(MAX_CUT_ANSWERS - 1):
        try:
            return call()
        except BaseError as error:
            if not is_cut(str(error)):
                raise
    return call()


def read_objects(
    read: Callable[[str], bytes], keys: Iterable[str], num_parallel: int
) -> Iterator[tuple[str, bytes | BaseException]]:
    """Yield each key with what `read` returns for it, or with the error that it raises, in any order.

    `num_parallel` threads read for as long as the iterator is asked: a thread for every object would cost as much as
    the request itself. An error of `keys` is raised.
    """
    reading = _Reading(read, keys, num_parallel)
    for _ in range(num_parallel):
        Thread(target=reading.run, name="store", daemon=True).start()
    num_running = num_parallel
    try:
        while num_running:
            item = reading.found.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                num_running -= 1
            else:
                yield item
            reading.room.release()
    finally:
        reading.is_over = True
        reading.room.release(num_parallel)


class _Reading:
    """What the threads of one call of `read_objects` share."""

    def __init__(self, read: Callable[[str], bytes], keys: Iterable[str], num_parallel: int) -> None:
        self.found: SimpleQueue[tuple[str, bytes | BaseException] | BaseException | None] = SimpleQueue()
        """Objects, an error of the keys, and a None from each thread that ended."""
        self.room = Semaphore(num_parallel * NUM_READ_AHEAD)
        self.is_over = False
        self._read = read
        self._left, self._taking = iter(keys), Lock()

    def run(self) -> None:
        """Read until no key is left, or nobody takes the objects any more."""
        while True:
            self.room.acquire()
            try:
                with self._taking:
                    key = None if self.is_over else next(self._left, None)
            except BaseException as error:  # raised where the objects are taken
                self.found.put(error)
                return
            if key is None:
                self.found.put(None)
                return
            try:
                self.found.put((key, self._read(key)))
            except BaseException as error:
                self.found.put((key, error))


def write_object(store: "ObjectStore", key: str, data: bytes) -> None:
    """Write an object in one request: object_store retries it as a whole, and an aborted one leaves no parts behind."""
    store.put(key, data, use_multipart=False)


def write_new_object(backend: "Backend", key: str, data: bytes) -> bool:
    """Write an object unless there is one of this key, and return whether there was none.

    A server that knows no such condition replaces it, or says that it has not implemented it: a 501, which the library
    repeats as it does every failure of a server. So it is asked with few retries first.
    """
    for store in (backend.short_retries, backend.long_retries):
        try:
            store.put(key, data, mode="create", use_multipart=False)
            return True
        except AlreadyExistsError:
            return False
        except GenericError as error:
            if "NotImplemented" in str(error):
                break
            if store is backend.long_retries:
                raise
    write_object(backend.long_retries, key, data)
    return True


def write_and_delete_object(store: "ObjectStore", key: str) -> None:
    """Write an object of `CHECK_BYTES` and delete it again."""
    write_object(store, key, bytes(CHECK_BYTES))
    store.delete(key)


def write_and_date_object(store: "ObjectStore", key: str) -> datetime:
    """Write a small object, return when it was written by the store's clock, and delete it."""
    write_object(store, key, b" ")
    try:
        return store.head(key)["last_modified"]
    finally:
        store.delete(key)


def is_first_writer_told(backend: "Backend", key: str) -> bool:
    """Return whether the server keeps an object that is there from `write_new_object`; `key`: of one for this test."""
    write_object(backend.short_retries, key, b"first")
    try:
        return not write_new_object(backend, key, b"second")
    finally:
        backend.short_retries.delete(key)


def delete_objects(store: "ObjectStore", keys: list[str]) -> None:
    """Delete objects with as few requests as the store allows; those that are gone already are no error."""
    try:
        repeat_cut(lambda: store.delete(keys))
    except FileNotFoundError:  # a directory stops at the first that is gone
        for key in keys:
            with suppress(FileNotFoundError):
                store.delete(key)
