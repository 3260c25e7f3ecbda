"""The credentials of this process, so that no message and no record repeats what a server or a program says of them.

Servers do: S3 answers with the session token that expired, and a proxy may print the headers of a request. So do
programs that print their environment when they fail.
"""

import os
import re
from collections.abc import Mapping

from bench.url_credentials import has_url_credentials, hide_url_credentials

MIN_CHARACTERS = 6
"""What is shorter stands in other words too, and is no credential worth the name."""
HIDDEN = "(hidden)"
_KEYS = "ACCESS|ACCOUNT|API|CUSTOMER|ENCRYPTION|MASTER|PRIVATE|SAS|SIGNING|SSH|STORAGE"
_WORDS = (
    r"(?:SECRET|TOKEN(?!IZ)|PASSWORD|PASSWD|PASSPHRASE|(?<!APPLICATION_)CREDENTIAL|CONNECTION_?STRING|WEBHOOK|SLACK"
    rf"|(?:{_KEYS})_?KEY)"
)
"""In names of credentials. GOOGLE_APPLICATION_CREDENTIALS is the path of a file."""
_NAME = re.compile(_WORDS)
_OF_FILES = ("_FILE", "_PATH", "_DIR")
"""Ends of names whose values say where a credential is, not what."""
_ASSIGNMENT = re.compile(rf"""\b(?=[A-Z0-9_]*?{_WORDS})([A-Z0-9_]++)(['"]?(?:=|: ?)['"]?)([^\s'"]+)""")
"""A name is read once, whether a value follows or not: of names of megabytes each further try would take minutes."""
_FIELD = re.compile(
    rf"""(?i)\b(?=[a-z0-9_]*?{_WORDS})([a-z0-9_]++)(['"]?\s?[:=]\s?['"]?)((?![0-9.]+\b)[a-z0-9+/_.~=-]{{16,}})"""
)
"""The same in other letters, such as `"SecretAccessKey": "..."`; a value of fewer characters may be a word."""
_IN_TEXTS = (
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)[^-]*"),
    re.compile(r"(?i)(\b(?:bearer|basic) +)[A-Za-z0-9._~+/-]{16,}=*"),  # no word of a message is as long
    re.compile(r"(\b)eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*"),
    re.compile(r"(?i)(\b(?:sig|x-amz-signature|x-goog-signature|accountkey)=)[^\s&'\"<>;]+"),
)
"""Credentials that show what they are, wherever they stand: a secret key in PEM, a header of HTTP, a JSON Web Token,
the signature of a URL that is signed (SAS of Azure, presigned URLs), and the parts of a connection string of Azure."""

_secrets: set[str] = set()


def remember_secret(value: object) -> None:
    """Make `hide_secrets` hide this text from now on; None and texts of less than MIN_CHARACTERS are ignored."""
    if isinstance(value, str) and len(value) >= MIN_CHARACTERS:
        _secrets.add(value)


def hide_secrets(text: str) -> str:
    """Return `text` with `(hidden)` in the place of each credential that was remembered, or shows what it is."""
    return _hide(text, _secrets.copy())


def hide_printed_secrets(text: str, variables: Mapping[str, str] | None = None) -> str:
    """Return what another program printed without the credentials in it.

    Hidden are those that were remembered, the values of `variables` (this process's, unless given) whose names say that
    they are credentials, what is printed as the value of such a name, and users and passwords in URLs.
    """
    named = {
        value
        for name, value in (os.environ if variables is None else variables).items()
        if len(value) >= MIN_CHARACTERS and _is_secret_name(name.upper())
    }
    hidden = _FIELD.sub(_hide_value, _ASSIGNMENT.sub(_hide_value, _hide(text, named | _secrets)))
    return hide_url_credentials(hidden)


def is_secret_variable(name: str, value: str) -> bool:
    """Return whether a variable has a credential by its name, or its value shows that it is one."""
    return (
        _is_secret_name(name.upper())
        or has_url_credentials(value)
        or any(known.search(value) is not None for known in _IN_TEXTS)
    )


def _is_secret_name(name: str) -> bool:
    return _NAME.search(name) is not None and not name.endswith(_OF_FILES)


def _hide(text: str, secrets: set[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    for known in _IN_TEXTS:
        text = known.sub(rf"\g<1>{HIDDEN}", text)
    return text


def _hide_value(found: re.Match[str]) -> str:
    name, between, value = found.groups()
    return f"{name}{between}{HIDDEN if _is_secret_name(name.upper()) else value}"
