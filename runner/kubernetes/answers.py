"""Reads the answers of an API server, which a proxy, a login page or a broken extension may have written in its place.

A value that is not as Kubernetes describes it is an ApiError, so that a command says which server answers wrongly. That
a key stands twice is not looked for: it would take two thirds longer to read 100,000 Jobs (9.5 s instead of 5.5), and
the encoder of an API server writes maps, which have each key once.
"""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

from bench.foreign_json import ForeignJsonError, JsonAmounts, check_amounts
from runner.kubernetes.api_errors import INVALID_ANSWER, ApiError, make_encodable
from runner.kubernetes.object_shapes import (
    FINDERS,
    find_misfit_of_event,
    find_misfit_of_list,
    find_misfit_of_version,
)

MAX_ANSWER_BYTES = 64 * 2**20
"""While one is read, it takes twice as much memory. A page of 500 objects has 10 MB; etcd takes 1.5 MB for one
(--max-request-bytes), and a log is rotated at 10 MiB
(containerLogMaxSize of the kubelet)."""

ANSWER_AMOUNTS = JsonAmounts(max_containers=500_000, max_members=1_000_000, max_values=1_500_000)
"""Of a page of 500 objects: a Job that finished has 150 objects and lists in it, and 400 members, a pod twice as many.
An object of two characters takes 400 bytes when it is read."""

MAX_NAME_CHARACTERS = 253
"""Names of objects are DNS subdomains: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"""
MAX_REASON_CHARACTERS = 300

T = TypeVar("T")


class AnswerError(ApiError):
    """The API server, or what stands in its place, sent an answer that is none of Kubernetes."""

    def __init__(self, found: str) -> None:
        super().__init__(HTTPStatus.OK, INVALID_ANSWER, f"the API server's answer is none of Kubernetes: {found}")
        self.found = found


class GarbledWatchError(AnswerError):
    """A line of a watch is no event."""


class ApiObject(dict[str, Any]):
    """A JSON object of an answer: what it lacks is an ApiError, and null counts as absent, as for Kubernetes itself."""

    def __missing__(self, key: str) -> Any:
        raise AnswerError(f"an object has no '{key}'")

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        return self.__missing__(key) if value is None else value

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, `default` where it is absent or null."""
        value = super().get(key)
        return default if value is None else value


def decode_answer(body: bytes) -> ApiObject:
    """Return the JSON object of an answer, of whatever kind; AnswerError where it is none.

    Its texts can be written to a terminal and into a document: halves of characters are replaced.
    """
    try:
        check_amounts(body, ANSWER_AMOUNTS)
    except ForeignJsonError as error:
        raise AnswerError(str(error)) from None
    try:
        found = _DECODER.decode(body.decode())
        if b"\\ud" in body or b"\\uD" in body:  # rare: an API server escapes no characters
            found = _DECODER.decode(make_encodable(json.dumps(found, ensure_ascii=False)))
    except (ValueError, RecursionError):
        kind = "an HTML page" if re.match(rb"\s*<(!doctype )?html", body, re.IGNORECASE) else "no JSON"
        raise AnswerError(f"it is {kind}; see the address of the server, and what stands before it") from None
    if not isinstance(found, ApiObject):
        raise AnswerError("it is no JSON object")
    return found


def decode_object(body: bytes, kind: str, what: str) -> ApiObject:
    """Return the object of a kind in an answer; AnswerError, with `what` in it, where it is not of the kind's shape."""
    found = decode_answer(body)
    _check_shape(found, kind, what)
    return found


def _check_shape(found: ApiObject, kind: str, what: str) -> None:
    find_misfit = FINDERS.get(kind)
    if find_misfit is not None and (misfit := find_misfit(found)):
        raise AnswerError(f"{what}: {misfit}")


def read_items(page: ApiObject, read: Callable[[ApiObject], T], kind: str) -> list[T]:
    """Return what `read` takes of each object of a list; AnswerError as `read_item`. `items: null` is an empty list."""
    if misfit := find_misfit_of_list(page):
        raise AnswerError(f"it is no list of {kind}: {misfit}")
    return [read_item(item, read, kind) for item in page.get("items", [])]


def read_watch_event(line: bytes, kind: str) -> ApiObject:
    """Return the event in a line of a watch, `type` and `object`; GarbledWatchError where it is none."""
    try:
        event = decode_answer(line)
        misfit = find_misfit_of_event(event)
        if misfit is None and event["type"] != "ERROR":
            misfit = find_misfit_of_version(event["object"])
    except AnswerError as error:
        raise GarbledWatchError(f"a line of its watch of {kind}: {error.found}") from None
    if misfit:
        raise GarbledWatchError(f"a line of its watch of {kind}: {misfit}")
    return event


def read_item(item: object, read: Callable[[ApiObject], T], kind: str) -> T:
    """Return what `read` takes of an object; AnswerError, which names it, where it is not as Kubernetes has it."""
    metadata = item.get("metadata") if isinstance(item, ApiObject) else None
    if not isinstance(item, ApiObject) or not isinstance(metadata, ApiObject):
        raise AnswerError(f"one of the {kind} has no metadata")
    name = metadata.get("name")
    what = f"one of the {kind}, {name[:MAX_NAME_CHARACTERS] if isinstance(name, str) else 'without a name'}"
    _check_shape(item, kind, what)
    return interpret(item, read, what)


def interpret(found: ApiObject, read: Callable[[ApiObject], T], what: str) -> T:
    """Return what `read` takes of an object; AnswerError, with `what` in it, where a value is of no use to it."""
    try:
        return read(found)
    except AnswerError as error:
        raise AnswerError(f"{what}: {error.found}") from None
    except ValueError as error:  # a value of the right type that means nothing, such as a label that is no number
        raise AnswerError(f"{what}: {' '.join(str(error).split())[:MAX_REASON_CHARACTERS]}") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_hook=ApiObject, parse_constant=_refuse_constant)
