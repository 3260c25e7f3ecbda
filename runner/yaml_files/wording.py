"""Words that error messages about user input have in common: quoting, lists of words, the nearest known word."""

import difflib
import itertools
from collections.abc import Iterable, Sequence

MAX_SHOWN_CHARACTERS = 60
"""How much of a value a message quotes."""
MAX_SHOWN_WORDS = 20
"""How many values a message lists."""


def quote(text: str) -> str:
    """Return `text` in quotes for a message: one line, no control characters, cut if it is long."""
    return repr(text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "...")


def suggest_word(word: str, known: Sequence[str]) -> str:
    """Return "did you mean ...?" with the known word nearest to `word`, or the known words if none is near."""
    by_folded = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word[:MAX_SHOWN_CHARACTERS].lower(), by_folded, n=1)
    if near:
        return f"did you mean '{by_folded[near[0]]}'?"
    return f"known are {join_words(known)}"


def suggest_near_word(word: str, known: Sequence[str]) -> str:
    """Return "did you mean ...?" with the known word nearest to `word`, or an empty text if none is near."""
    suggestion = suggest_word(word, known)
    return suggestion if suggestion.endswith("?") else ""


def join_words(words: Iterable[object]) -> str:
    """Return the words with commas between them, cut after `MAX_SHOWN_WORDS`."""
    shown = [str(word) for word in itertools.islice(words, MAX_SHOWN_WORDS + 1)]
    return ", ".join(shown if len(shown) <= MAX_SHOWN_WORDS else [*shown[:-1], "..."])
