"""Opens a store URL: finds the directory, or the bucket with its credentials, endpoint and region."""

import functools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore.store
from obstore.exceptions import BaseError

from bench.certificates import check_certificates
from bench.foreign_files import show_bytes
from bench.known_secrets import hide_printed_secrets
from bench.proxies import Proxy
from bench.store.entity_tags import EntityTags
from bench.store.keys import check_key
from bench.store.routes import find_store_proxy, lead_requests
from bench.store.settings import (
    ENDPOINT,
    REGION,
    CheckedCredentials,
    check_endpoint,
    check_google_account,
    check_key_text,
    check_token_files,
    check_variables,
    hide_password,
    hide_user,
    limit_login,
    remember_variables,
)
from bench.store.store_errors import StoreError, explain_os_error, explain_panic, get_headline, is_panic

if TYPE_CHECKING:
    import boto3
    from botocore.client import BaseClient
    from obstore.store import ObjectStore, RetryConfig

    from bench.store.s3_listing import S3Listing

SCHEMES = ("file", "s3", "gs", "az")
MAX_SHOWN = 200
"""Of a URL that is too long to be shown whole."""
DEFAULT_REGION = "us-east-1"
PUT_RETRY_SECONDS = 120  # a finished measurement is worth waiting for
RETRY_SECONDS = 10  # reads and the check: somebody is waiting
INITIAL_BACKOFF_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 5
MAX_RETRIES = 1000  # never reached: the time is the bound
# obstore asks boto3 again 300 s before this: every 5 minutes, while boto3 renews what has less than 10 minutes left.
CREDENTIALS_TTL_SECONDS = 600
AWS_SETTINGS = "the AWS_* variables or ~/.aws/config"
ANY_CLOUD = "https://any-cloud.invalid"
"""In the place of an endpoint that the store library chooses: the variables that name its proxy are those of https."""
OTHER_SETTINGS = "the GOOGLE_* and AZURE_* variables"


@dataclass(frozen=True, kw_only=True)
class Backend:
    """obstore's stores for one URL, and what error messages say about the place."""

    place: str
    long_retries: "ObjectStore"
    """Retries for `PUT_RETRY_SECONDS`."""
    short_retries: "ObjectStore"
    """Retries for `RETRY_SECONDS`."""
    make_bucket: str = "make it"
    """How to make a bucket that does not exist."""
    settings: str = "the URL"
    """Where to fix what the store library cannot use."""
    directory: Path | None = None
    """The directory of a `file://` store, which is listed without the store library: that one fails at a link to a
    folder above it, and does not name what is no file."""
    s3_listing: "S3Listing | None" = None
    """Lists a bucket of S3, where the store library has no limit; None for all others."""
    proxy: Proxy | None = None
    """What passes the requests on to the server; None where they go to it, or the store library decides."""
    tags: EntityTags = field(default_factory=EntityTags)


def open_backend(url: str, *, makes_directory: bool = True) -> Backend:
    """Open the store at `url` without a request to it; raise StoreError where the URL or the settings are wrong.

    `makes_directory`: whether a directory that is absent is made.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        shown = hide_user(url)
        raise StoreError(f"store '{shown}': not a URL; for a directory write file://{shown}")
    if scheme not in SCHEMES:
        raise StoreError(f"store: '{scheme}://' is unknown; known are {', '.join(SCHEMES)}")
    if scheme == "file":
        return _open_directory(url, makes_directory=makes_directory)
    if not re.fullmatch(r"[A-Za-z0-9._-]+(/[^?#@]*)?", rest):
        raise StoreError(
            f"store: {scheme}:// needs a bucket and may have a prefix, {scheme}://BUCKET/PREFIX, and nothing else"
        )
    bucket, _, prefix = rest.rstrip("/").partition("/")
    try:
        check_key(prefix or bucket)
        check_certificates(os.environ)
    except ValueError as error:
        raise StoreError(f"store {url}: {error}") from error
    return _open_s3(url, bucket, prefix) if scheme == "s3" else _open_other(url)


def find_directory(url: str) -> Path:
    """Return the directory of a `file://` URL; raise StoreError where there can be none."""
    path = url.partition("://")[2]
    if not path:
        raise StoreError(f"store {url}: names no directory; for the current one write file://.")
    if hide_user(path.partition("/")[0] + "/") != path.partition("/")[0] + "/":
        raise StoreError("store: file:// takes the path of a directory, and no user or password")
    try:
        directory = Path(path).expanduser().absolute()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # said where it is made or read
            os.stat(directory)
    except RuntimeError:
        raise StoreError(f"store {url}: there is no such user; write the directory out") from None
    except FileNotFoundError:
        raise StoreError(f"store {url}: the current directory was deleted; change to another one") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StoreError(f"store {url[:MAX_SHOWN]}: cannot be the name of a directory ({reason})") from None
    if (shown := show_bytes(str(directory))) != str(directory):
        raise StoreError(
            f"store {show_bytes(url)[:MAX_SHOWN]}: {shown} has bytes that are no UTF-8, and documents could not name "
            "it; give the directory another name"
        )
    return directory


def _open_directory(url: str, *, makes_directory: bool) -> Backend:
    directory = find_directory(url)
    if not makes_directory and not os.path.lexists(directory):
        nothing = obstore.store.MemoryStore()  # what is written goes with the process
        return Backend(place=str(directory), long_retries=nothing, short_retries=nothing, directory=directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"store {url}: {explain_os_error(error.errno, str(directory)) or error}") from error
    store = obstore.store.LocalStore(directory, automatic_cleanup=True)
    return Backend(place=str(directory), long_retries=store, short_retries=store, directory=directory)


def _open_s3(url: str, bucket: str, prefix: str) -> Backend:
    from bench.store.s3_listing import S3Listing  # boto3 takes long to import: only a store that needs it does
    from bench.store.s3_requests import S3Requests

    session, client = _resolve_aws(url)
    endpoint = client.meta.endpoint_url
    proxy = find_store_proxy(url, endpoint)
    make_bucket = f"make it with `aws s3 mb s3://{bucket}`"
    requests = S3Requests(
        endpoint=endpoint,
        proxy=proxy,
        bucket=bucket,
        region=client.meta.region_name,
        get_credentials=(credentials := _provide_credentials(session)),
        make_bucket=make_bucket,
        retry_seconds=RETRY_SECONDS,
    )
    open_with = functools.partial(
        obstore.store.S3Store,
        bucket,
        prefix=prefix or None,
        endpoint=endpoint,
        region=client.meta.region_name,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, **lead_requests(endpoint, proxy)},
        credential_provider=credentials,
    )
    with _translate_setting_errors(url, AWS_SETTINGS):
        return Backend(
            place=endpoint,
            long_retries=open_with(retry_config=_plan_retries(PUT_RETRY_SECONDS)),
            short_retries=open_with(retry_config=_plan_retries(RETRY_SECONDS)),
            make_bucket=make_bucket,
            settings=AWS_SETTINGS,
            proxy=proxy,
            s3_listing=S3Listing(requests, prefix),
        )


def _provide_credentials(session: "boto3.Session") -> CheckedCredentials:
    from obstore.auth.boto3 import Boto3CredentialProvider

    provider = Boto3CredentialProvider(session, ttl=timedelta(seconds=CREDENTIALS_TTL_SECONDS))
    return CheckedCredentials(provider=provider, config=provider.config, source=provider.credentials.method)


def _resolve_aws(url: str) -> "tuple[boto3.Session, BaseClient]":
    """Return a session with credentials and a client with endpoint and region, found where boto3 looks for them."""
    import boto3
    from botocore.credentials import Credentials
    from botocore.exceptions import BotoCoreError

    try:
        check_token_files(os.environ)
        session = boto3.Session()
        credentials = limit_login(session.get_credentials)
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
        reason = get_headline(hide_printed_secrets(hide_password(str(error))))  # it may quote a credential_process
        raise StoreError(f"store {url}: {reason}; fix {AWS_SETTINGS}") from None
    if credentials is None:
        raise StoreError(
            f"store {url}: no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a "
            "profile in AWS_PROFILE, or log in with `aws sso login`"
        )
    return session, client


def _make_client(session: "boto3.Session") -> "BaseClient":
    """Return the client that knows the endpoint; it is asked nothing."""
    try:
        client: BaseClient = session.client("s3", region_name=_find_region(session))
    except ValueError as error:
        raise ValueError(f"{_name_setting(error)}: {error}") from None
    return client


def _name_setting(error: ValueError) -> str:
    """Return in words which setting boto3 cannot make a client of."""
    from botocore.exceptions import InvalidRegionError

    if isinstance(error, InvalidRegionError):
        return REGION
    if "literal for int()" in str(error):
        return "a setting that is a number (AWS_MAX_ATTEMPTS, or max_attempts of the profile)"
    return ENDPOINT


def _find_region(session: "boto3.Session") -> str:
    """Return the region of the bucket: AWS_REGION, which boto3 alone of AWS's libraries does not read, comes first."""
    return os.environ.get("AWS_REGION") or session.region_name or DEFAULT_REGION


def _open_other(url: str) -> Backend:
    cloud = "GOOGLE" if url.startswith("gs:") else "AZURE"
    remember_variables(cloud, os.environ)
    try:
        check_variables(cloud, os.environ)
        if url.startswith("gs:"):
            check_google_account(os.environ)
    except ValueError as error:
        raise StoreError(f"store {url}: {error}; fix {OTHER_SETTINGS}") from None
    find_store_proxy(url, ANY_CLOUD, schemes=("http", "https"))
    with _translate_setting_errors(url, OTHER_SETTINGS):
        return Backend(
            place=url,
            long_retries=obstore.store.from_url(url, retry_config=_plan_retries(PUT_RETRY_SECONDS)),
            short_retries=obstore.store.from_url(url, retry_config=_plan_retries(RETRY_SECONDS)),
            settings=OTHER_SETTINGS,
        )


@contextmanager
def _translate_setting_errors(url: str, settings: str) -> Iterator[None]:
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
