"""Objects in buckets of s3, gs and az: obstore reads and writes them; boto3 finds the settings of S3 and lists it."""

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import obstore.store
from obstore.exceptions import AlreadyExistsError, BaseError

from bench.redaction import hide_secrets
from bench.store.errors import (
    MAX_SHOWN,
    NOT_S3,
    StoreError,
    StoreUnreachable,
    UnreadableObject,
    explain_botocore,
    explain_obstore,
    is_panic,
)
from bench.store.objects import StoredObject

if TYPE_CHECKING:
    import boto3
    from obstore.store import ObjectStore, RetryConfig

DEFAULT_REGION = "us-east-1"
PUT_RETRY_SECONDS = 120  # a finished measurement is worth waiting for
RETRY_SECONDS = 10  # reads and the check: somebody is waiting
LIST_ATTEMPTS = 5  # of boto3, which waits 8 s between them in all
# obstore asks boto3 again 300 s before this: every 5 minutes, while boto3 renews what has less than 10 minutes left.
CREDENTIALS_TTL = timedelta(seconds=600)
AWS_SETTINGS = "the AWS_* variables or ~/.aws/config"
OTHER_SETTINGS = "the GOOGLE_* and AZURE_* variables"
SYSTEM_CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Objects of one bucket below one prefix. Methods raise StoreError, and FileNotFoundError for an absent object."""

    place: str
    patient: "ObjectStore"
    """Retries for `PUT_RETRY_SECONDS`."""
    quick: "ObjectStore"
    """Retries for `RETRY_SECONDS`."""
    make_bucket: str = "make it"
    """How to make a bucket that does not exist."""
    settings: str = OTHER_SETTINGS

    def write(self, key: str, data: bytes, *, is_patient: bool = True) -> None:
        """Write an object in one request: obstore retries it as a whole, and an aborted one leaves no parts behind."""
        with self.translate_errors():
            (self.patient if is_patient else self.quick).put(key, data, use_multipart=False)

    def write_new(self, key: str, data: bytes) -> bool:
        """Write an object unless there is one of this key; return False where there is.

        Servers that do not know `If-None-Match: *`, as AWS, Google and Azure do, ignore it, or answer with 501, which
        obstore repeats as it does every failure of a server: so what is there is looked for first, and 501 is found out
        with few retries.
        """
        if self.holds(key):
            return False
        for store in (self.quick, self.patient):
            try:
                with self.translate_errors():
                    store.put(key, data, mode="create", use_multipart=False)
                return True
            except AlreadyExistsError:
                return False
            except StoreUnreachable as error:
                if "NotImplemented" in str(error):
                    break
                if store is self.patient:
                    raise
        self.write(key, data)
        return True

    def read(self, key: str, max_bytes: int) -> bytes:
        with self.translate_errors():
            answer = self.quick.get(key)
            num_bytes = answer.meta["size"]  # what the server says: it is asked before memory is taken for it
            if num_bytes > max_bytes:
                raise UnreadableObject(f"'{key}' has {num_bytes:,} bytes, expected at most {max_bytes:,}")
            return bytes(answer.bytes())

    def holds(self, key: str) -> bool:
        with self.translate_errors():
            try:
                self.quick.head(key)
            except FileNotFoundError:
                return False
        return True

    def delete(self, keys: list[str]) -> None:
        """Delete objects with as few requests as the server allows; those that are gone already are no error."""
        with self.translate_errors():
            try:
                self.quick.delete(keys)
            except FileNotFoundError:  # Google and Azure stop at the first that is gone
                for key in keys:
                    with suppress(FileNotFoundError):
                        self.quick.delete(key)

    def read_clock(self, key: str) -> datetime:
        """Return when an object was written by the server's clock, and delete it again."""
        self.write(key, b" ", is_patient=False)
        try:
            with self.translate_errors():
                return self.quick.head(key)["last_modified"]
        finally:
            self.delete([key])

    def list_pages(self, folder: str) -> Iterator[list[StoredObject]]:
        """Yield what the server lists below `folder` ('': all), page by page."""
        pages = self.quick.list(folder or None, chunk_size=1000)
        while True:
            with self.translate_errors():
                page = next(pages, None)
            if not page:
                return
            yield [
                StoredObject.of_server(found["path"], found["size"], found["e_tag"], found["last_modified"])
                for found in page
            ]

    def list_folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly in `folder`."""
        with self.translate_errors():
            found = self.quick.list_with_delimiter(folder)
        return [prefix.rpartition("/")[2] for prefix in found["common_prefixes"]]

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise StoreError for the errors of obstore; FileNotFoundError and AlreadyExistsError as they are."""
        try:
            yield
        except AlreadyExistsError:
            raise
        except (BaseError, FileNotFoundError) as error:
            explained = explain_obstore(error, self.place, self.make_bucket)
            if explained is None:
                raise
            raise explained from None
        except BaseException as error:
            if is_panic(error):
                raise StoreError(f"the store library cannot work with the settings; check {self.settings}") from None
            raise


@dataclass(frozen=True, kw_only=True)
class S3Bucket(Bucket):
    """A bucket of S3, listed by boto3.

    A prefix that ends in a slash, and a name joined to it by another one, make a key with `//`. obstore refuses the
    whole listing for one such key (https://docs.rs/object_store/latest/object_store/path/struct.Path.html).
    """

    client: Any
    bucket: str
    root: str
    """The store's prefix with a slash at its end, or nothing."""

    def list_pages(self, folder: str) -> Iterator[list[StoredObject]]:
        """Yield what the bucket lists below `folder` ('': all), page by page, without the marks of folders."""
        for page in self._list(folder):
            yield [
                StoredObject.of_server(
                    found["Key"].removeprefix(self.root), found["Size"], found.get("ETag"), found["LastModified"]
                )
                for found in page.get("Contents", ())
                if not (found["Key"].endswith("/") and found["Size"] == 0)  # as the consoles of S3 make them
            ]

    def list_folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly in `folder`."""
        return [
            found["Prefix"].removesuffix("/").rpartition("/")[2]
            for page in self._list(folder, Delimiter="/")
            for found in page.get("CommonPrefixes", ())
        ]

    def _list(self, folder: str, **options: str) -> Iterator[Mapping[str, Any]]:
        from botocore.exceptions import BotoCoreError, ClientError

        prefix = self.root + (f"{folder}/" if folder else "")
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix, **options)
        try:
            for page in pages:
                if "IsTruncated" not in page and "Name" not in page:  # botocore takes any XML for an empty listing
                    raise StoreError(NOT_S3.format(place=self.place, status=200))
                yield page
        except (BotoCoreError, ClientError) as error:
            raise explain_botocore(error, self.place, self.make_bucket) from None


def open_bucket(url: str) -> Bucket:
    """Return the bucket of a URL, without a request; StoreError where its settings cannot be right."""
    scheme, _, rest = url.partition("://")
    settings = AWS_SETTINGS if scheme == "s3" else OTHER_SETTINGS
    try:
        if scheme == "s3":
            bucket, _, prefix = rest.rstrip("/").partition("/")
            return _open_s3(url, bucket, prefix)
        return Bucket(
            place=url,
            patient=obstore.store.from_url(url, retry_config=_plan_retries(PUT_RETRY_SECONDS)),
            quick=obstore.store.from_url(url, retry_config=_plan_retries(RETRY_SECONDS)),
        )
    except BaseError as error:
        headline = hide_secrets(" ".join(str(error).partition("Debug source:")[0].split()))[:MAX_SHOWN]
        raise StoreError(f"store {url}: {headline}; the settings come from {settings}") from None
    except BaseException as error:
        if is_panic(error):
            raise StoreError(f"store {url}: the store library cannot work with {settings}; check them") from None
        raise


def _open_s3(url: str, bucket: str, prefix: str) -> S3Bucket:
    import boto3  # takes long to import: only a store that needs it does
    from botocore.config import Config
    from botocore.credentials import Credentials
    from botocore.exceptions import BotoCoreError

    try:
        session = boto3.Session()
        session._session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_read_time)
        credentials = session.get_credentials()
        if type(credentials) is Credentials:  # others ask a server, or a program, when they are read
            for name in ("access_key", "secret_key", "token"):
                check_key_text(getattr(credentials, name), name, credentials.method)
        config = Config(
            connect_timeout=5,
            read_timeout=30,
            retries={"mode": "standard", "total_max_attempts": LIST_ATTEMPTS},
            s3={"addressing_style": "path"},
        )
        # AWS_REGION, which boto3 alone of AWS's libraries does not read, comes first.
        region = os.environ.get("AWS_REGION") or session.region_name or DEFAULT_REGION
        client = session.client("s3", region_name=region, config=config, verify=_find_certificates())
    except (BotoCoreError, ValueError) as error:
        reason = hide_secrets(" ".join(str(error).split()))[:MAX_SHOWN]  # it may quote a credential_process
        raise StoreError(f"store {url}: {reason}; fix {AWS_SETTINGS}") from None
    if credentials is None:
        raise StoreError(
            f"store {url}: no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a "
            "profile in AWS_PROFILE, or log in with `aws sso login`"
        )
    endpoint = client.meta.endpoint_url
    if urlsplit(endpoint).username is not None:
        raise StoreError(f"store {url}: the endpoint (AWS_ENDPOINT_URL) holds credentials; they do not belong there")

    def connect(retry_seconds: float) -> "ObjectStore":
        return obstore.store.S3Store(
            bucket,
            prefix=prefix or None,
            endpoint=endpoint,
            region=region,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
            credential_provider=_provide_credentials(session),
            retry_config=_plan_retries(retry_seconds),
        )

    return S3Bucket(
        place=endpoint,
        patient=connect(PUT_RETRY_SECONDS),
        quick=connect(RETRY_SECONDS),
        make_bucket=f"make it with `aws s3 mb s3://{bucket}`",
        settings=AWS_SETTINGS,
        client=client,
        bucket=bucket,
        root=f"{prefix}/" if prefix else "",
    )


def _provide_credentials(session: "boto3.Session") -> Any:
    """Return obstore's provider of boto3's credentials, which checks them each time."""
    from obstore.auth.boto3 import Boto3CredentialProvider

    class CheckedCredentialProvider(Boto3CredentialProvider):
        def __call__(self) -> Any:
            found = super().__call__()
            for name, value in found.items():
                if isinstance(value, str):
                    check_key_text(value, name, self.credentials.method)
            return found

    return CheckedCredentialProvider(session, ttl=CREDENTIALS_TTL)


def check_key_text(value: str | None, name: str, source: str) -> None:
    """Raise ValueError, which names the setting and not its value, for a key that no header can carry.

    obstore panics at one, such as that of a Secret with a newline at its end.
    """
    if value and not re.fullmatch(r"[!-~]+", value):
        name = {"access_key": "access_key_id", "secret_key": "secret_access_key", "token": "session_token"}.get(
            name, name
        )
        place = f"AWS_{name.upper()}" if source == "env" else f"aws_{name} (found by {source})"
        raise ValueError(
            f"{place} has a space, a line break or another character that no key has; set it again without"
        )


def _read_time(text: str) -> datetime:
    """Return a time of a listing; botocore's own parser takes as long as all the rest."""
    from botocore.utils import parse_timestamp

    with suppress(ValueError, TypeError):
        return datetime.fromisoformat(text)
    return parse_timestamp(text)


def _find_certificates() -> str | None:
    """Return the authorities that obstore trusts: SSL_CERT_FILE's or the system's; None: those that come with boto3."""
    found = (ssl.get_default_verify_paths().cafile, *SYSTEM_CERTIFICATES)
    return next((path for path in found if path and Path(path).exists()), None)


def _plan_retries(retry_seconds: float) -> "RetryConfig":
    return {
        "max_retries": 1000,  # never reached: the time is the bound
        "retry_timeout": timedelta(seconds=retry_seconds),
        "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=5), "base": 2},
    }
