"""Single calls into obstore, each in a thread of its own, so that Ctrl-C interrupts the thread that waits for one.

A call into obstore itself cannot be interrupted. Its asynchronous calls are not used: their threads may still hand over
a result while the interpreter ends, and then abort the process.
"""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from obstore.store import ObjectStore

CHECK_BYTES = 65_536  # about a result

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


def read_object(store: "ObjectStore", key: str) -> bytes:
    """Return the bytes of the object with this key."""
    return bytes(store.get(key).bytes())


def write_object(store: "ObjectStore", key: str, data: bytes) -> None:
    """Write an object in one request: object_store retries it as a whole, and an aborted one leaves no parts behind."""
    store.put(key, data, use_multipart=False)


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


def delete_objects(store: "ObjectStore", keys: list[str]) -> None:
    """Delete objects with as few requests as the store allows; those that are gone already are no error."""
    try:
        store.delete(keys)
    except FileNotFoundError:  # a directory stops at the first that is gone
        for key in keys:
            with suppress(FileNotFoundError):
                store.delete(key)
