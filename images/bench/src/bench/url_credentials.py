"""Hide users and passwords of URLs in texts of any length: the time that takes grows with the length alone."""

import re

HIDDEN_USER = "..."
_MOST = 4096
"""Characters of a user or of a password: so many are looked through behind each address, however long a line is."""
_WORD = re.compile(r"\S+")
_ADDRESS = re.compile(r":/{1,3}")
"""Where a user and a password may follow; a slash may have been forgotten."""


def hide_url_credentials(text: str) -> str:
    """Return `text` with `...` in the place of each user and password in a URL.

    A password may hold `/`, as keys of AWS do, and `@`.
    """
    # No pattern does this: a regular expression tries each address to the end of its word, which takes hours of a
    # word of some megabytes that a program printed.
    return _WORD.sub(lambda word: _hide_in_word(word[0]), text) if "@" in text else text


def has_url_credentials(text: str) -> bool:
    """Return whether a URL in `text` has a user or a password."""
    return hide_url_credentials(text) != text


def _hide_in_word(word: str) -> str:
    """Return a text without white space, of which no address begins behind the last `@`, with its users hidden."""
    parts, written = [], 0
    last = word.rfind("@")
    for address in _ADDRESS.finditer(word, 0, last):
        start = address.end()
        if address.start() < written:  # within a password that is hidden already
            continue
        end = _find_end(word, start)
        if end is not None:
            parts.append(word[written:start] + HIDDEN_USER)
            written = end
    return "".join(parts) + word[written:]


def _find_end(word: str, start: int) -> int | None:
    """Return where the `@` behind a user, or behind a user and a password, stands; None where there is neither."""
    colon = word.find(":", start, start + _MOST + 1)
    if colon >= 0 and word.find("@", start, colon) < 0:
        end = word.rfind("@", colon + 1, colon + 1 + _MOST + 1)
        if end >= 0:
            return end
    slash = word.find("/", start)
    end = word.find("@", start, slash if slash >= 0 else len(word))
    return end if end > start else None
