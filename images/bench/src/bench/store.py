"""Store URL and keys in, the bytes of objects out: one API over a directory (file://) and buckets (s3://, gs://, az://).

Every call can be interrupted by Ctrl-C: the work is done in a thread of its own, since a call into obstore cannot be.
obstore's asynchronous calls are not used: their threads may still hand over a result while the interpreter ends, and
then abort the process.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Self, TypeVar
from uuid import uuid4

import obstore.store
from obstore.exceptions import BaseError

from bench.errors import TransientError, UserError
from bench.store_faults import explain_fault, explain_os_error, explain_panic, get_headline, is_panic, is_passing
from bench.store_keys import (
    LATEST_REPORT_KEY,
    LATEST_RUN_KEY,
    NAME,
    ResultKey,
    cancelled_key,
    cancelled_prefix,
    check_key,
    interrupted_key,
    parse_result_key,
    report_key,
    result_key,
    results_prefix,
    run_key,
)
from bench.store_settings import ENDPOINT, CheckedCredentials, check_endpoint, check_key_text, hide_password

if TYPE_CHECKING:
    import boto3
    from botocore.client import BaseClient
    from obstore.store import ObjectStore, RetryConfig

__all__ = [
    "LATEST_REPORT_KEY",
    "LATEST_RUN_KEY",
    "KeyMissing",
    "ResultKey",
    "Store",
    "StoreError",
    "StoreUnreachable",
    "cancelled_key",
    "cancelled_prefix",
    "interrupted_key",
    "parse_result_key",
    "report_key",
    "result_key",
    "results_prefix",
    "run_key",
]

SCHEMES = ("file", "s3", "gs", "az")
DEFAULT_REGION = "us-east-1"
PUT_RETRY_SECONDS = 120  # a finished measurement is worth waiting for
RETRY_SECONDS = 10  # reads and the check: somebody is waiting
INITIAL_BACKOFF_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 5
MAX_RETRIES = 1000  # never reached: the time is the bound
# obstore asks boto3 again 300 s before this: every 5 minutes, while boto3 renews what has less than 10 minutes left.
CREDENTIALS_TTL_SECONDS = 600
LIST_CHUNK = 1000  # keys in one page of S3
CHECK_BYTES = 65_536  # about a result
AWS_SETTINGS = "the AWS_* variables or ~/.aws/config"
OTHER_SETTINGS = "the GOOGLE_* and AZURE_* variables"

T = TypeVar("T")


class StoreError(UserError):
    """The store cannot be used: the message says which one, why, and how to mend it."""


class StoreUnreachable(StoreError, TransientError):  # noqa: N818  (an answer rather than an error)
    """The store does not answer at present, or its server ails; it may later."""


class KeyMissing(LookupError):  # noqa: N818  (an answer rather than an error)
    """There is no object with that key."""


@dataclass(frozen=True, kw_only=True)
class Backend:
    """What a URL was opened to: obstore's stores, and the words for messages."""

    place: str
    patient: "ObjectStore"
    """Retries for `PUT_RETRY_SECONDS`."""
    brisk: "ObjectStore"
    """Retries for `RETRY_SECONDS`."""
    make_bucket: str = "make it"
    settings: str = "the URL"
    """Where to mend what the store library cannot use."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """Objects under keys. Methods raise StoreError where the store cannot be used and ValueError for a hostile key."""

    url: str
    """As the user gave it."""
    backend: Backend = field(repr=False, compare=False)

    @classmethod
    def open(cls, url: str) -> Self:
        """Open `file://DIRECTORY` (made if absent; all after file:// is the path), `s3://`, `gs://` or `az://`.

        No request is made. Credentials: boto3's chain for s3, obstore's defaults for gs and az.
        """
        scheme, separator, rest = url.partition("://")
        if not separator:
            raise StoreError(f"store '{url}': not a URL; for a directory write file://{url}")
        if scheme not in SCHEMES:
            raise StoreError(f"store: '{scheme}://' is unknown; known are {', '.join(SCHEMES)}")
        if scheme == "file":
            return cls(url=url, backend=_open_directory(url, rest))
        if not re.fullmatch(r"[A-Za-z0-9._-]+(/[^?#@]*)?", rest):
            raise StoreError(
                f"store: {scheme}:// needs a bucket and may have a prefix, {scheme}://BUCKET/PREFIX, and nothing else"
            )
        bucket, _, prefix = rest.rstrip("/").partition("/")
        try:
            check_key(prefix or bucket)
        except ValueError as error:
            raise StoreError(f"store {url}: {error}") from error
        return cls(url=url, backend=_open_s3(url, bucket, prefix) if scheme == "s3" else _open_other(url))

    def put(self, key: str, data: bytes) -> None:
        """Write an object. Readers see all of it or nothing. It replaces one of the same key: the last writer wins.

        Faults of the server and of the network are retried for `PUT_RETRY_SECONDS`.
        """
        check_key(key)
        with self._translate_faults():
            _submit(lambda: _write(self.backend.patient, key, data)).result()

    def put_briskly(self, key: str, data: bytes) -> None:
        """Write an object as `put` does, but retry for `RETRY_SECONDS` only: for one with a deadline of their own."""
        check_key(key)
        with self._translate_faults():
            _submit(lambda: _write(self.backend.brisk, key, data)).result()

    def get(self, key: str) -> bytes:
        """Return an object's bytes; raise KeyMissing where there is none."""
        check_key(key)
        with self._translate_faults(key):
            return _submit(functools.partial(_read, self.backend.brisk, key)).result()

    def get_many(self, keys: Iterable[str], *, num_parallel: int = 32) -> Iterator[tuple[str, bytes]]:
        """Yield (key, bytes) of every key, `num_parallel` at a time, in any order; raise KeyMissing as `get` does."""
        left = iter(keys)
        running: dict[Future[bytes], str] = {}
        while True:
            for key in islice(left, num_parallel - len(running)):
                check_key(key)
                running[_submit(functools.partial(_read, self.backend.brisk, key))] = key
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                key = running.pop(future)
                with self._translate_faults(key):
                    data = future.result()
                yield key, data

    def list_keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys below the folder `prefix` ('': all), in any order, without what a killed writer left."""
        folder = prefix.rstrip("/")
        if folder:
            check_key(folder)
        with self._translate_faults():
            stream = self.backend.brisk.list(folder or None, chunk_size=LIST_CHUNK)
        while True:
            with self._translate_faults():
                chunk = _submit(lambda: next(stream, None)).result()
            if chunk is None:
                return
            yield from (meta["path"] for meta in chunk)

    def list_run_ids(self) -> list[str]:
        """Return the names of the folders in `runs/` that can be run ids, sorted, without listing the objects."""
        with self._translate_faults():
            listing = _submit(lambda: self.backend.brisk.list_with_delimiter("runs")).result()
        names = (folder.rpartition("/")[2] for folder in listing["common_prefixes"])
        return sorted(name for name in names if re.fullmatch(NAME, name))

    def check_writable(self) -> None:
        """Write an object of `CHECK_BYTES` and delete it again; raise StoreError with the reason where that fails."""
        with self._translate_faults():
            _submit(lambda: _write_and_delete(self.backend.brisk, f"runs/write-check-{uuid4().hex}")).result()

    @contextmanager
    def _translate_faults(self, key: str | None = None) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            explanation = explain_fault(str(error), self.backend.place, self.backend.make_bucket)
            if explanation is None and key is not None and isinstance(error, FileNotFoundError):
                raise KeyMissing(f"store {self.url}: no object '{key}'") from error
            kind = StoreUnreachable if is_passing(str(error)) else StoreError
            raise kind(f"store {self.url}: {explanation or get_headline(str(error))}") from error
        except BaseException as error:  # a panic of Rust is no Exception
            if not is_panic(error):
                raise
            raise StoreError(f"store {self.url}: {explain_panic(error, self.backend.settings)}") from None


def _open_directory(url: str, path: str) -> Backend:
    if not path:
        raise StoreError(f"store {url}: names no directory; for the current one write file://.")
    directory = Path(path).expanduser().absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"store {url}: {explain_os_error(error.errno, str(directory)) or error}") from error
    store = obstore.store.LocalStore(directory, automatic_cleanup=True)
    return Backend(place=str(directory), patient=store, brisk=store)


def _open_s3(url: str, bucket: str, prefix: str) -> Backend:
    from obstore.auth.boto3 import Boto3CredentialProvider

    session, endpoint, region = _resolve_aws(url)
    provider = Boto3CredentialProvider(session, ttl=timedelta(seconds=CREDENTIALS_TTL_SECONDS))
    open_with = functools.partial(
        obstore.store.S3Store,
        bucket,
        prefix=prefix or None,
        endpoint=endpoint,
        region=region,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
        credential_provider=CheckedCredentials(
            provider=provider, config=provider.config, source=provider.credentials.method
        ),
    )
    with _translate_refusals(url, AWS_SETTINGS):
        return Backend(
            place=endpoint,
            patient=open_with(retry_config=_plan_retries(PUT_RETRY_SECONDS)),
            brisk=open_with(retry_config=_plan_retries(RETRY_SECONDS)),
            make_bucket=f"make it with `aws s3 mb s3://{bucket}`",
            settings=AWS_SETTINGS,
        )


def _resolve_aws(url: str) -> "tuple[boto3.Session, str, str]":
    """Return a session that has credentials, the endpoint and the region, from all places that boto3 looks at."""
    import boto3
    from botocore.credentials import Credentials
    from botocore.exceptions import BotoCoreError

    try:
        session = boto3.Session()
        credentials = session.get_credentials()
        if credentials is not None and type(credentials) is Credentials:  # others ask a server when they are read
            for name, value in (
                ("access_key_id", credentials.access_key),
                ("secret_access_key", credentials.secret_key),
            ):
                check_key_text(value, name, credentials.method)
            check_key_text(credentials.token or None, "session_token", credentials.method)
        client = _make_client(session)
        check_endpoint(client.meta.endpoint_url)
    except (BotoCoreError, ValueError) as error:
        raise StoreError(f"store {url}: {hide_password(str(error))}; mend {AWS_SETTINGS}") from None
    if credentials is None:
        raise StoreError(
            f"store {url}: no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a "
            "profile in AWS_PROFILE, or log in with `aws sso login`"
        )
    return session, client.meta.endpoint_url, client.meta.region_name


def _make_client(session: "boto3.Session") -> "BaseClient":
    try:
        client: BaseClient = session.client("s3", region_name=session.region_name or DEFAULT_REGION)
    except ValueError as error:
        raise ValueError(f"{ENDPOINT}: {error}") from None
    return client


def _open_other(url: str) -> Backend:
    with _translate_refusals(url, OTHER_SETTINGS):
        return Backend(
            place=url,
            patient=obstore.store.from_url(url, retry_config=_plan_retries(PUT_RETRY_SECONDS)),
            brisk=obstore.store.from_url(url, retry_config=_plan_retries(RETRY_SECONDS)),
            settings=OTHER_SETTINGS,
        )


@contextmanager
def _translate_refusals(url: str, settings: str) -> Iterator[None]:
    """Raise StoreError for settings that the store library refuses when a store is opened."""
    try:
        yield
    except BaseError as error:
        headline = hide_password(get_headline(str(error)))
        raise StoreError(f"store {url}: {headline}; the settings come from {settings}") from None
    except BaseException as error:
        if not is_panic(error):
            raise
        raise StoreError(f"store {url}: {explain_panic(error, settings)}") from None


def _plan_retries(retry_seconds: float) -> "RetryConfig":
    return {
        "max_retries": MAX_RETRIES,
        "retry_timeout": timedelta(seconds=retry_seconds),
        "backoff": {
            "init_backoff": timedelta(seconds=INITIAL_BACKOFF_SECONDS),
            "max_backoff": timedelta(seconds=MAX_BACKOFF_SECONDS),
            "base": 2,
        },
    }


def _submit(work: Callable[[], T]) -> Future[T]:
    """Start `work` in a thread that does not keep the process alive: what nobody waits for any more ends with it."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # handed over to whoever waits
            future.set_exception(error)

    Thread(target=run, name="store", daemon=True).start()
    return future


def _read(store: "ObjectStore", key: str) -> bytes:
    return bytes(store.get(key).bytes())


def _write(store: "ObjectStore", key: str, data: bytes) -> None:
    # One request: object_store retries it as a whole, and an aborted upload leaves no parts behind.
    store.put(key, data, use_multipart=False)


def _write_and_delete(store: "ObjectStore", key: str) -> None:
    _write(store, key, bytes(CHECK_BYTES))
    store.delete(key)
