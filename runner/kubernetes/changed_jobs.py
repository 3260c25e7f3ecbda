"""Finds what a cluster made of a Job that differs from what it was asked for: webhooks and policies change requests."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from collector.word_lists import join_some

MAX_NAMED = 5
MAX_VALUE_CHARACTERS = 60


def describe_changes(asked: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """Return in words what was changed, removed or, of containers, added; empty if nothing was."""
    changes = list(_find_changes("", asked, made))
    return join_some(changes, MAX_NAMED, separator="; ")


def _find_changes(place: str, asked: Any, made: Any) -> Iterator[str]:
    """Yield a line for each difference; what the API server fills in by itself is none."""
    if isinstance(asked, Mapping) and isinstance(made, Mapping):
        if "containers" in asked:  # a container among these may run beside the others: a sidecar of Kubernetes' own
            asked = {"initContainers": [], **asked}
        for key, value in asked.items():
            if key in made:
                yield from _find_changes(f"{place}.{key}" if place else key, value, made[key])
            elif value not in (None, "", 0, False, {}, []):  # the API server leaves these out
                yield f"{place}.{key} was removed"
    elif isinstance(asked, list) and isinstance(made, list):
        yield from _find_changed_items(place, asked, made)
    elif asked != made and not _is_same_amount(asked, made):
        yield f"{place} is {_cut(made)} instead of {_cut(asked)}"


def _find_changed_items(place: str, asked: Sequence[Any], made: Sequence[Any]) -> Iterator[str]:
    names = [item.get("name") if isinstance(item, Mapping) else None for item in (*asked, *made)]
    if all(isinstance(name, str) for name in names):  # told apart by their names, as Kubernetes does
        by_name = {item["name"]: item for item in made}
        yield from _find_changes(place, {item["name"]: item for item in asked}, by_name)
        if place.endswith("ontainers"):
            yield from (f"{place}.{name} was added" for name in by_name.keys() - {item["name"] for item in asked})
    elif len(asked) != len(made):
        yield f"{place} has {len(made)} items instead of {len(asked)}"
    else:
        for number, (one, other) in enumerate(zip(asked, made, strict=True)):
            yield from _find_changes(f"{place}[{number}]", one, other)


def _is_same_amount(asked: object, made: object) -> bool:
    """Return whether two amounts are the same: the API server writes 1024Mi as 1Gi."""
    try:
        return bool(parse_quantity(asked) == parse_quantity(made))  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, ArithmeticError):
        return False


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[: MAX_VALUE_CHARACTERS - 1]}…"
