"""Reads documents of the store, and describes in one line why a text is no valid document."""

from typing import TypeVar

from pydantic import ValidationError

from bench.schema.document import SCHEMA_VERSION, Document
from bench.schema.night import Decision, Notice, Suspicion
from bench.schema.placement import NodeFault, Placement
from bench.schema.raw_removal import RawRemoval
from bench.schema.result import Result
from bench.schema.run import Run

MAX_REASON_CHARACTERS = 300

DocumentT = TypeVar("DocumentT", bound=Document)


class InvalidDocumentError(ValueError):
    """A text is no valid document of the expected kind; the message is the reason, in one line without the place.

    Not a UserError: whether a damaged document is skipped, measured again or reported is for the reader to decide.
    """


def read_document(kind: type[DocumentT], data: bytes) -> DocumentT:
    """Return the document of the given kind in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise InvalidDocumentError(_describe_validation_error(kind, error)) from None


def read_result(data: bytes) -> Result:
    return read_document(Result, data)


def read_run(data: bytes) -> Run:
    return read_document(Run, data)


def read_placement(data: bytes) -> Placement:
    return read_document(Placement, data)


def read_node_fault(data: bytes) -> NodeFault:
    return read_document(NodeFault, data)


def read_raw_removal(data: bytes) -> RawRemoval:
    return read_document(RawRemoval, data)


def read_suspicion(data: bytes) -> Suspicion:
    return read_document(Suspicion, data)


def read_decision(data: bytes) -> Decision:
    return read_document(Decision, data)


def read_notice(data: bytes) -> Notice:
    return read_document(Notice, data)


def _describe_validation_error(kind: type[Document], error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False)
    first = errors[0]
    if first["type"] == "json_invalid":
        return _shorten(f"no JSON: {first['msg'].removeprefix('Invalid JSON: ')}")
    for item in errors:  # before all others: of another version nearly every field can be wrong
        if item["loc"] == ("schema_version",):
            found = repr(item["input"])[:MAX_REASON_CHARACTERS]
            return _shorten(f"schema_version is {found}, this version reads {SCHEMA_VERSION}")
    place = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return _shorten(f"no {kind.__name__}: {place + ': ' if place else ''}{first['msg']}{more}")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON_CHARACTERS else line[: MAX_REASON_CHARACTERS - 1] + "…"
