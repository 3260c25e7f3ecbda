"""Hides credentials in texts that are shown or stored: servers and programs repeat them when they fail."""

import os
import re
from collections.abc import Mapping

HIDDEN = "(hidden)"
MAX_CHARACTERS = 8_000
"""Of a text that is looked through, from its end: a program may print megabytes on one line."""
MIN_CHARACTERS = 6
"""What is shorter stands in other words too, and is no credential worth the name."""
_SECRET_NAME = re.compile(
    r"SECRET|TOKEN(?!IZ)|PASSWORD|PASSWD|PASSPHRASE|(?<!APPLICATION_)CREDENTIAL|CONNECTION_?STRING|WEBHOOK|SLACK"
    r"|(?:ACCESS|ACCOUNT|API|CUSTOMER|ENCRYPTION|MASTER|PRIVATE|SAS|SIGNING|SSH|STORAGE)_?KEY"
)
_URL_USER = re.compile(r"(:/{1,3})[^\s/:@]*(?::\S*)?@")
"""A user, or a user and a password, which may hold `/`, as keys of AWS do."""
_SHOWN = re.compile(
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)[^-]*"
    r"|((?i:\b(?:bearer|basic) +))[A-Za-z0-9._~+/-]{16,}=*"
    r"|((?i:\b(?:sig|x-amz-signature|x-goog-signature|accountkey)=))[^\s&'\"<>;]+"
)
"""What shows that it is a credential: a key in PEM, a header of HTTP, a signed URL, a connection string of Azure."""
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)=([^\s&;'\"]+)")
_remembered: set[str] = set()


def remember_secret(value: object) -> None:
    """Make `hide_secrets` hide a text that is in no variable; None and short texts are ignored."""
    if isinstance(value, str) and len(value) >= MIN_CHARACTERS:
        _remembered.add(value)


def hide_secrets(text: str, variables: Mapping[str, str] | None = None) -> str:
    """Return the end of `text` without values of secret variables (default: this process's) and users of URLs."""
    text = text[-MAX_CHARACTERS:]
    named = (os.environ if variables is None else variables).items()
    secrets = {value for name, value in named if len(value) >= MIN_CHARACTERS and _is_secret_name(name)}
    for secret in sorted(secrets | _remembered, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _ASSIGNED.sub(lambda found: f"{found[1]}={HIDDEN}" if _is_secret_name(found[1]) else found[0], text)
    return hide_url_users(_SHOWN.sub(lambda found: f"{found[found.lastindex or 0]}{HIDDEN}", text))


def hide_url_users(text: str) -> str:
    """Return `text` with `...` in the place of each user and password in a URL."""
    return _URL_USER.sub(r"\1...@", text) if "@" in text else text


def is_secret_variable(name: str, value: str) -> bool:
    """Return whether the name or the value of a variable shows that it holds a credential."""
    return _is_secret_name(name) or hide_url_users(value) != value or _SHOWN.search(value) is not None


def _is_secret_name(name: str) -> bool:
    return _SECRET_NAME.search(name.upper()) is not None and not name.upper().endswith(("_FILE", "_PATH", "_DIR"))
