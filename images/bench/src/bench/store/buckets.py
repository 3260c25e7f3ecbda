"""Objects in buckets of s3, gs and az: obstore reads and writes them; boto3 finds the settings of S3 and lists it."""

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit
from uuid import uuid4

import boto3
import obstore.store
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError
from botocore.utils import parse_timestamp
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.exceptions import AlreadyExistsError, BaseError

from bench.redaction import hide_secrets
from bench.store.errors import CHECK_BYTES, MAX_SHOWN, NOT_S3, StoreError, explain
from bench.store.keys import StoredObject, find_key_problem

DEFAULT_REGION = "us-east-1"
RETRY_SECONDS = 10  # of one request
LIST_ATTEMPTS = 5  # of boto3, which waits 8 s between them in all
# obstore asks boto3 again 300 s before this: every 5 minutes, while boto3 renews what has less than 10 minutes left.
CREDENTIALS_TTL = timedelta(seconds=600)
SETTINGS = "the variables AWS_*, GOOGLE_* or AZURE_*, or ~/.aws/config"
SYSTEM_CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
OPENED_BY = os.getpid()
"""The process that imported this module, which is when a bucket is opened first."""
EPOCH = datetime.fromtimestamp(0, UTC)
KEY_SETTINGS = {"access_key": "ACCESS_KEY_ID", "secret_key": "SECRET_ACCESS_KEY", "token": "SESSION_TOKEN"}


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Objects of one bucket below one prefix. Methods raise `errors`."""

    place: str
    objects: Any
    """obstore's store."""
    errors: ClassVar = (BaseError, OSError, BotoCoreError, ClientError)

    def check_process(self) -> None:
        """Raise StoreError in a forked process: the threads of obstore stayed behind, and a call would never return."""
        if os.getpid() != OPENED_BY:
            raise StoreError(
                f"this process was forked from one that has used a bucket, which {self.place} cannot be reached from; "
                'start processes by multiprocessing.get_context("spawn")'
            )

    def check(self, key: str) -> None:
        name = f"runs/write-check-{uuid4().hex}"
        self.write(name, bytes(CHECK_BYTES))
        self.delete([name])

    def write(self, key: str, data: bytes) -> None:
        """Write an object in one request: obstore retries it as a whole, and an aborted one leaves no parts behind."""
        self.objects.put(key, data, use_multipart=False)

    def write_new(self, key: str, data: bytes) -> bool:
        """Write an object unless there is one of this key; return False where there is.

        Servers that do not know `If-None-Match: *`, as AWS, Google and Azure do, ignore it, or answer with 501: so what
        is there is looked for first.
        """
        if self.holds(key):
            return False
        try:
            self.objects.put(key, data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        except BaseError as error:
            if "NotImplemented" not in str(error):
                raise
            self.write(key, data)
        return True

    def read(self, key: str) -> bytes | None:
        try:
            answer = self.objects.get(key)
        except FileNotFoundError as error:
            if re.search("NoSuchBucket|ContainerNotFound", str(error)):
                raise explain(error, self.place) from None
            return None
        return bytes(answer.bytes())

    def holds(self, key: str) -> bool:
        try:
            self.objects.head(key)
        except FileNotFoundError:
            return False
        return True

    def delete(self, keys: list[str]) -> None:
        """Delete objects with as few requests as the server allows; those that are gone already are no error."""
        try:
            self.objects.delete(keys)
        except FileNotFoundError:  # Google and Azure stop at the first that is gone
            for key in keys:
                with suppress(FileNotFoundError):
                    self.objects.delete(key)

    def list_pages(self, folder: str) -> Iterator[list[StoredObject]]:
        """Yield what the server lists below `folder` ('': all), page by page."""
        for page in self.objects.list(folder or None, chunk_size=1000):
            yield [_describe(found["path"], found["size"], found["e_tag"], found["last_modified"]) for found in page]

    def list_folders(self, folder: str) -> list[str]:
        found = self.objects.list_with_delimiter(folder)
        return [prefix.rpartition("/")[2] for prefix in found["common_prefixes"]]


@dataclass(frozen=True, kw_only=True)
class S3Bucket(Bucket):
    """Lists a bucket of S3 with boto3, and does the rest as any bucket.

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
                _describe(found["Key"].removeprefix(self.root), found["Size"], found.get("ETag"), found["LastModified"])
                for found in page.get("Contents", ())
                if not (found["Key"].endswith("/") and found["Size"] == 0)  # as the consoles of S3 make them
            ]

    def list_folders(self, folder: str) -> list[str]:
        return [
            found["Prefix"].removesuffix("/").rpartition("/")[2]
            for page in self._list(folder, Delimiter="/")
            for found in page.get("CommonPrefixes", ())
        ]

    def _list(self, folder: str, **options: str) -> Iterator[Mapping[str, Any]]:
        prefix = self.root + (f"{folder}/" if folder else "")
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix, **options)
        for page in pages:
            if "IsTruncated" not in page and "Name" not in page:  # botocore takes any XML for an empty listing
                raise StoreError(NOT_S3.format(place=self.place, status=200))
            yield page


def open_bucket(url: str) -> Bucket:
    """Return the bucket of a URL, without a request; StoreError where its settings cannot be right."""
    retries: Any = {
        "max_retries": 1000,  # never reached: the time is the bound
        "retry_timeout": timedelta(seconds=RETRY_SECONDS),
        "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=5), "base": 2},
    }
    try:
        if url.startswith("s3://"):
            return _open_s3(url, retries)
        return Bucket(place=url, objects=obstore.store.from_url(url, retry_config=retries))
    except (BaseError, BotoCoreError, ValueError) as error:
        reason = hide_secrets(" ".join(str(error).partition("Debug source:")[0].split()))[:MAX_SHOWN]
        raise StoreError(f"store {url}: {reason}; the settings come from {SETTINGS}") from None


def _open_s3(url: str, retries: Any) -> S3Bucket:
    bucket, _, prefix = url.removeprefix("s3://").rstrip("/").partition("/")
    session = boto3.Session()
    session._session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_read_time)
    credentials = session.get_credentials()
    if credentials is None:
        raise StoreError(
            f"store {url}: no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a "
            "profile in AWS_PROFILE, or log in with `aws sso login`"
        )
    if type(credentials) is Credentials:  # others ask a server, or a program, when they are read
        _check_keys(credentials)
    settings = session._session.get_scoped_config().get("s3", {})
    is_virtual = isinstance(settings, dict) and settings.get("addressing_style") == "virtual"
    client = session.client(
        "s3",
        # AWS_REGION, which boto3 alone of AWS's libraries does not read, comes first.
        region_name=os.environ.get("AWS_REGION") or session.region_name or DEFAULT_REGION,
        config=Config(
            connect_timeout=5,
            read_timeout=30,
            retries={"mode": "standard", "total_max_attempts": LIST_ATTEMPTS},
            s3={"addressing_style": "virtual" if is_virtual else "path"},
        ),
        verify=_find_certificates(),
    )
    endpoint = client.meta.endpoint_url
    address = urlsplit(endpoint)
    if address.username is not None or address.port == 0:  # ValueError: above 65535, at which obstore panics
        raise StoreError(f"store {url}: the endpoint (AWS_ENDPOINT_URL) is http(s)://HOST:PORT, without credentials")
    return S3Bucket(
        place=endpoint,
        objects=obstore.store.S3Store(
            bucket,
            prefix=prefix or None,
            # obstore leaves it to the caller to put the bucket before the host.
            endpoint=endpoint.replace("://", f"://{bucket}.", 1) if is_virtual else endpoint,
            region=client.meta.region_name,
            virtual_hosted_style_request=is_virtual,
            client_options={"allow_http": True},
            credential_provider=Boto3CredentialProvider(session, ttl=CREDENTIALS_TTL),
            retry_config=retries,
        ),
        client=client,
        bucket=bucket,
        root=f"{prefix}/" if prefix else "",
    )


def _check_keys(credentials: Credentials) -> None:
    """Raise ValueError, which names the setting and not its value, for a key that no header can carry.

    obstore panics at one, such as that of a Secret with a newline at its end.
    """
    for name, setting in KEY_SETTINGS.items():
        value = getattr(credentials, name)
        if value and not re.fullmatch(r"[!-~]+", value):
            raise ValueError(
                f"AWS_{setting} (found by {credentials.method}) has a space, a line break or another character that no "
                "key has; set it again without"
            )


def _read_time(text: Any) -> datetime:
    """Return a time of a listing; botocore's own parser takes as long as all the rest."""
    with suppress(ValueError, TypeError):
        return datetime.fromisoformat(text)
    return parse_timestamp(text)


def _find_certificates() -> str | None:
    """Return the authorities that obstore trusts: SSL_CERT_FILE's or the system's; None: those that come with boto3."""
    found = (ssl.get_default_verify_paths().cafile, *SYSTEM_CERTIFICATES)
    return next((path for path in found if path and Path(path).exists()), None)


def _describe(key: str, size: int, tag: str | None, modified_at: datetime) -> StoredObject:
    return StoredObject(
        key=key,
        num_bytes=size,
        version=tag or f"{modified_at.isoformat()}-{size}",
        modified_at=modified_at if modified_at > EPOCH else None,  # servers that know no time write 1970 or the year 1
        problem=find_key_problem(key),
    )
