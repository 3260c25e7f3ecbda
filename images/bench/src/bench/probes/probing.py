"""A probe that fails is named in the record; what was timed stands."""

from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

T = TypeVar("T")

MAX_LINE_CHARACTERS = 500


def try_probe(failures: list[str], name: str, probe: Callable[[], T], fallback: T) -> T:
    """Return what `probe` returns; `fallback`, and a note among the `failures`, where it raises."""
    try:
        return probe()
    except Exception as error:  # whatever it is: the timing is worth more than a probe
        text = str(error).strip().splitlines() or ["no message"]
        said = describe_violation(error) or f"{type(error).__name__}: {text[0]}"
        failures.append(f"{name}: {said}"[:MAX_LINE_CHARACTERS])
        return fallback


def describe_violation(error: Exception) -> str | None:
    """Return the first value that a document refused, with its place and bound; None of an error of another kind."""
    if not isinstance(error, ValidationError):
        return None
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join([error.title, *map(str, first["loc"])])
    return f"{place}: {first['msg']}, found {str(first['input'])[:100]}"[:MAX_LINE_CHARACTERS]
