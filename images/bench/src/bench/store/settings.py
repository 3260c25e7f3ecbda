"""Checks of credentials and endpoints before the store library sees them; messages name the setting, not its value.

The store library aborts a request with a Rust panic where a header or a URL cannot be made of them.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from obstore.store import HTTPStore

from bench.bounded_work import WorkTooLargeError, WorkTooSlowError, run_bounded
from bench.foreign_files import FileProblem, ForeignFileError, read_foreign_file
from bench.known_secrets import is_secret_variable, remember_secret

T = TypeVar("T")

ENDPOINT = "the endpoint (AWS_ENDPOINT_URL, or endpoint_url of the profile)"
REGION = "the region (AWS_REGION, AWS_DEFAULT_REGION, or region of the profile)"
# What a header can carry, less what no key has: spaces, control characters and all that is not ASCII.
KEY = r"[!-~]+"
MAX_PORT = 65_535
HOST = r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?"
"""A name that a resolver takes (https://datatracker.ietf.org/doc/html/rfc1035#section-2.3.4), and `_` as in those of
containers."""
PATH = r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*"
"""Of a URL: https://datatracker.ietf.org/doc/html/rfc3986#section-3.3."""
# Of the variables that the store library reads for gs:// and az://, less GOOGLE or AZURE: those that get into requests.
_IN_REQUESTS = re.compile(
    "_(STORAGE_)?(BASE_URL|.*ENDPOINT|.*HOST|.*_ID|ACCOUNT_NAME|CLIENT_SECRET|TOKEN|SAS_TOKEN|SAS_KEY)"
)
_URLS = re.compile(".*(BASE_URL|ENDPOINT|HOST)")
ACCOUNT_FILES = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_APPLICATION_CREDENTIALS")
"""Variables that name the key file of a service account; ACCOUNT_KEY holds such a file's content."""
ACCOUNT_KEY = "GOOGLE_SERVICE_ACCOUNT_KEY"
MAX_ACCOUNT_BYTES = 2**20
"""A key file has 2 KB."""
TOKEN_FILES = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
"""Variables that name a file with a token, which is read again and again."""
MAX_TOKEN_BYTES = 2**20
"""A token has 2 KB."""
LOGIN_SECONDS = 60.0
"""The command line tools of the clouds take a few seconds."""
MAX_LOGIN_BYTES = 100 * 2**20
"""Of memory; what such a program prints has 2 KB."""
KEY_NAMES = {"access_key_id": "access_key_id", "secret_access_key": "secret_access_key", "token": "session_token"}
"""From obstore's words for the parts of credentials to those of AWS."""


@dataclass(frozen=True, kw_only=True)
class CheckedCredentials:
    """A credential provider of obstore whose answers are checked before a request is signed with them."""

    provider: Callable[[], Any]
    config: Any
    """Read by obstore."""
    source: str
    """Where botocore found the credentials, such as `env`."""

    def __call__(self) -> Any:
        """Return the present credentials; ValueError where one of them cannot be right."""
        credentials = limit_login(self.provider)
        for part, name in KEY_NAMES.items():
            check_key_text(credentials.get(part), name, self.source)
            remember_secret(credentials.get(part))
        return credentials


def limit_login(log_in: Callable[[], T]) -> T:
    """Return what `log_in` returns, which may start a program (credential_process); ValueError where that has no end.

    boto3 waits for such a program however long it takes, and keeps all that it prints.
    """
    try:
        return run_bounded(log_in, limit_seconds=LOGIN_SECONDS, max_bytes=MAX_LOGIN_BYTES)
    except WorkTooSlowError:
        reason = f"has not answered after {LOGIN_SECONDS:g} s"
    except WorkTooLargeError:
        reason = "prints without end"
    raise ValueError(
        f"what gives the AWS credentials (credential_process or a token file of the profile) {reason}; call it by hand"
    )


def check_token_files(variables: Mapping[str, str]) -> None:
    """Raise ValueError, which names the variable, where a file of a token has no end: boto3 reads it to there."""
    for name in TOKEN_FILES:
        if path := variables.get(name):
            try:
                read_foreign_file(Path(path), max_bytes=MAX_TOKEN_BYTES)
            except ForeignFileError as error:
                if error.problem != FileProblem.MISSING:  # where other credentials come first, it is not read
                    raise ValueError(f"{name}: {path}: {error}; expected a file with a token") from None


def check_key_text(value: object, name: str, source: str) -> None:
    """Raise ValueError where `value`, a key of AWS or None, has characters that no key has. It is not shown."""
    if value is not None and not re.fullmatch(KEY, str(value)):
        place = f"AWS_{name.upper()}" if source == "env" else f"aws_{name} (found by {source})"
        raise ValueError(
            f"{place} is empty or has a space, a line break or another character that no key has; set it again without"
        )


def check_endpoint(endpoint: str) -> None:
    """Raise ValueError where `endpoint` is no URL of a server. One with a password is not shown."""
    _check_url(endpoint, ENDPOINT)


def check_variables(cloud: str, variables: Mapping[str, str]) -> None:
    """Raise ValueError where a variable of this cloud, GOOGLE or AZURE, can be no part of a request."""
    for name, value in variables.items():
        if value and name.startswith(cloud) and _IN_REQUESTS.fullmatch(name.removeprefix(cloud)):
            if not re.fullmatch(KEY, value):
                raise ValueError(f"{name} has a space, a line break or another character that does not belong there")
            if _URLS.fullmatch(name):
                _check_url(value, name)


def remember_variables(cloud: str, variables: Mapping[str, str]) -> None:
    """Have the credentials among the variables of a cloud, GOOGLE or AZURE, hidden in what its servers say."""
    for name, value in variables.items():
        if name.startswith(cloud) and is_secret_variable(name, value):
            for part in (value, unquote(value)):
                remember_secret(part)


def check_google_account(variables: Mapping[str, str]) -> None:
    """Raise ValueError where a service account's key cannot be read, or names a server that can be none."""
    for name in ACCOUNT_FILES:
        if path := variables.get(name):
            try:
                content = read_foreign_file(Path(path), max_bytes=MAX_ACCOUNT_BYTES)
            except ForeignFileError as error:
                raise ValueError(f"{name}: {path}: {error}") from None
            _check_base_url(content, f"gcs_base_url in {path} ({name})")
    _check_base_url(variables.get(ACCOUNT_KEY, ""), f"gcs_base_url in {ACCOUNT_KEY}")


def _check_base_url(account: bytes | str, name: str) -> None:
    try:
        document = json.loads(account)
    except (ValueError, RecursionError):  # the store library has a message for what is no JSON
        return
    url = document.get("gcs_base_url") if isinstance(document, dict) else None
    if isinstance(url, str):
        _check_url(url, name)


def _check_url(url: str, name: str) -> None:
    """Raise ValueError, which names the setting, where the store library could not work with a URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{name} is no URL: {hide_password(str(error))}") from None
    if parts.username is not None:
        raise ValueError(f"{name} holds credentials; they do not belong there")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{name} begins with '{parts.scheme}:', expected http: or https:")
    if not re.fullmatch(KEY, url) or parts.query or parts.fragment or not re.fullmatch(PATH, parts.path):
        raise ValueError(f"{name} has characters that do not belong there, expected http://HOST:PORT")
    if port == 0 or not host:
        raise ValueError(f"{name} has no host, or the port 0; ports are 1 to {MAX_PORT}")
    if reason := _find_host_problem(host, parts.netloc):
        raise ValueError(f"{name} has the host '{host}', {reason}")


def _find_host_problem(host: str, place: str) -> str:
    """Return in words why the store library can ask no server of this name; empty where it can.

    `place`: the host as it stands in the URL, with the brackets of an IPv6 address and the port.
    """
    if re.fullmatch(r"[0-9]+", host.rstrip(".").rpartition(".")[2]):  # a number at the end: an address, or nothing
        try:
            IPv4Address(host)
        except ValueError:
            return "which is no IPv4 address"
    if not place.startswith("[") and not re.fullmatch(HOST, host):
        return "which no server can have: expected letters, digits, '.' and '-', 63 between two dots at the most"
    try:
        HTTPStore(f"http://{place}")  # reads the URL as the other stores do, and has an error where they panic
    except ValueError as error:
        return f"which no server can have ({error})"
    return ""


def hide_password(text: str) -> str:
    """Return `text` on one line and without what stands before the @ of a URL."""
    return re.sub(r"//\S*@", "//...@", " ".join(text.split()))


def hide_user(text: str) -> str:
    """Return what was given as a URL without a user and password in it, `USER:PASSWORD@`, wherever they stand."""
    return re.sub(r"[^\s/]*:[^\s/]*@", "...@", text)
