"""Checks of credentials and endpoints before the store library sees them; messages name the setting, not its value.

The store library aborts a request with a Rust panic where a header or a URL cannot be made of them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any
from urllib.parse import urlsplit

from bench.known_secrets import remember_secret

ENDPOINT = "the endpoint (AWS_ENDPOINT_URL, or endpoint_url of the profile)"
# What a header can carry, less what no key has: spaces, control characters and all that is not ASCII.
KEY = r"[!-~]+"
MAX_PORT = 65_535
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
        credentials = self.provider()
        for part, name in KEY_NAMES.items():
            check_key_text(credentials.get(part), name, self.source)
            remember_secret(credentials.get(part))
        return credentials


def check_key_text(value: object, name: str, source: str) -> None:
    """Raise ValueError where `value`, a key of AWS or None, has characters that no key has. It is not shown."""
    if value is not None and not re.fullmatch(KEY, str(value)):
        place = f"AWS_{name.upper()}" if source == "env" else f"aws_{name} (found by {source})"
        raise ValueError(
            f"{place} is empty or has a space, a line break or another character that no key has; set it again without"
        )


def check_endpoint(endpoint: str) -> None:
    """Raise ValueError where `endpoint` is no URL of a server. One with a password is not shown."""
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{ENDPOINT} is no URL: {hide_password(str(error))}") from None
    if parts.username is not None:
        raise ValueError(f"{ENDPOINT} holds credentials; they do not belong there")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{ENDPOINT} begins with '{parts.scheme}:', expected http: or https:")
    if not re.fullmatch(KEY, endpoint) or parts.query or parts.fragment:
        raise ValueError(f"{ENDPOINT} has characters that do not belong there, expected http://HOST:PORT")
    if port == 0 or not host:
        raise ValueError(f"{ENDPOINT} has no host, or the port 0; ports are 1 to {MAX_PORT}")
    if re.fullmatch(r"[0-9]+", host.rstrip(".").rpartition(".")[2]):  # a number at the end: an address, or nothing
        try:
            IPv4Address(host)
        except ValueError:
            raise ValueError(f"{ENDPOINT} has the host '{host}', which is no IPv4 address") from None


def hide_password(text: str) -> str:
    """Return `text` on one line and without what stands before the @ of a URL."""
    return re.sub(r"//\S*@", "//...@", " ".join(text.split()))


def hide_user(text: str) -> str:
    """Return what was given as a URL without a user and password in it, `USER:PASSWORD@`, wherever they stand."""
    return re.sub(r"[^\s/]*:[^\s/]*@", "...@", text)
