"""The credentials that this process sends to servers, kept so that no message repeats what a server says back of them.

Servers do: S3 answers with the session token that expired, and a proxy may print the headers of a request.
"""

MIN_CHARACTERS = 6
"""What is shorter stands in other words too, and is no credential worth the name."""

_secrets: set[str] = set()


def remember_secret(value: object) -> None:
    """Make `hide_secrets` hide this text from now on; None and texts of less than MIN_CHARACTERS are ignored."""
    if isinstance(value, str) and len(value) >= MIN_CHARACTERS:
        _secrets.add(value)


def hide_secrets(text: str) -> str:
    """Return `text` with `(hidden)` in the place of each credential that was remembered."""
    for secret in sorted(_secrets.copy(), key=len, reverse=True):
        text = text.replace(secret, "(hidden)")
    return text
