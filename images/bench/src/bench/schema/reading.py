"""Reads documents that other programs wrote, and describes in one line why a text is no valid document."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError

from bench.foreign_json import ForeignJsonError, JsonAmounts, check_amounts, check_keys, read_members
from bench.freed_memory import release_freed_memory
from bench.schema.document import SCHEMA_VERSION, Document
from bench.schema.night import Decision, Notice, Suspicion
from bench.schema.node_fault import NodeFault
from bench.schema.placement import Placement
from bench.schema.raw_removal import RawRemoval
from bench.schema.result import Result
from bench.schema.run import Run
from bench.signatures.text import split_signature

MAX_REASON_CHARACTERS = 300
LARGE_BYTES = 2**20
"""From here on, as for the plan of a large run, a text is decoded a second time rather than written anew in memory."""

DOCUMENT_AMOUNTS = JsonAmounts(max_containers=20_000, max_members=150_000, max_values=1_000_000)
"""A Result of 250,000 steps has 750,000 values, with what each took on the device and waited; a record of 5,000 removed
results as many objects with 70,000 members, and there are no larger documents. 370 MB where it is refused."""
PLAN_AMOUNTS = JsonAmounts(max_containers=600_000, max_members=4_500_000, max_values=4_500_000, has_small_parts=True)
"""A plan of 100,000 cells has 200,000 objects, 2.7 million members and 2.8 million values; with as many repeats that
are missing, an object with two members for each."""

DocumentT = TypeVar("DocumentT", bound=Document)


class InvalidDocumentError(ValueError):
    """A text is no valid document of the expected kind; the message is the reason, in one line without the place.

    Not a UserError: whether a damaged document is skipped, measured again or reported is for the reader to decide.
    """


def read_result(data: bytes) -> Result:
    """Return the Result in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none of this version."""
    return read_document(Result, data)


def read_run(data: bytes) -> Run:
    """Return the Run in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none of this version."""
    return read_document(Run, data)


def read_placement(data: bytes) -> Placement:
    """Return the Placement in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none of this version."""
    return read_document(Placement, data)


def read_node_fault(data: bytes) -> NodeFault:
    """Return the NodeFault in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none of this version."""
    return read_document(NodeFault, data)


def read_raw_removal(data: bytes) -> RawRemoval:
    """Return the RawRemoval in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none of this version."""
    return read_document(RawRemoval, data)


def read_suspicion(data: bytes) -> Suspicion:
    """Return the Suspicion in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none of this version."""
    return read_document(Suspicion, data)


def read_decision(data: bytes) -> Decision:
    """Return the Decision in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none of this version."""
    return read_document(Decision, data)


def read_notice(data: bytes) -> Notice:
    """Return the Notice in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none of this version."""
    return read_document(Notice, data)


def read_document(kind: type[DocumentT], data: bytes) -> DocumentT:
    """Return the document of the given kind in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none."""
    try:
        check_amounts(data, PLAN_AMOUNTS if issubclass(kind, Run) else DOCUMENT_AMOUNTS)
        if len(data) > LARGE_BYTES:
            _check_members(kind, read_members(data))
            try:
                return kind.model_validate_json(data)
            finally:
                release_freed_memory()  # Pydantic's tree of the JSON: 160 MB of a plan of 100,000 cells
        document = kind.model_validate_json(data)
        if not _is_as_written(document, data):
            check_keys(data)
        return document
    except ValidationError as error:
        raise InvalidDocumentError(_describe_validation_error(kind, error)) from None
    except ForeignJsonError as error:
        raise InvalidDocumentError(_shorten(str(error))) from None


def _check_members(kind: type[Document], members: Mapping[str, object]) -> None:
    """Raise InvalidDocumentError as pydantic's errors would: each of its own holds a copy of all that was read."""
    version = members.get("schema_version", SCHEMA_VERSION)
    if type(version) is not int or version != SCHEMA_VERSION:
        raise InvalidDocumentError(_describe_version(version))
    for name, field in kind.model_fields.items():
        if field.is_required() and name not in members:
            raise InvalidDocumentError(f"no {kind.__name__}: {name}: Field required")
    for name in members.keys() - kind.model_fields.keys():
        raise InvalidDocumentError(_shorten(f"no {kind.__name__}: {name}: Extra inputs are not permitted"))


def _describe_version(version: object) -> str:
    return _shorten(f"schema_version is {repr(version)[:MAX_REASON_CHARACTERS]}, this version reads {SCHEMA_VERSION}")


def _is_as_written(document: Document, data: bytes) -> bool:
    """Return whether `Document.to_json` writes these bytes, which have no key twice then.

    Pydantic takes the last of two equal keys and cannot tell. To write a Result takes 50 microseconds, a third of the
    time that Python's decoder takes to go through its keys; to read it as a document 150.
    """
    unsigned, _ = split_signature(data)
    return document.__pydantic_serializer__.to_json(document, indent=1, exclude_unset=True) == unsigned


def _describe_validation_error(kind: type[Document], error: ValidationError) -> str:
    """Return that the text is no JSON, or its version, or the first of its errors and how many more there are."""
    errors = error.errors(include_url=False, include_context=False)
    first = errors[0]
    if first["type"] == "json_invalid":
        return _shorten(f"no JSON: {first['msg'].removeprefix('Invalid JSON: ')}")
    for item in errors:  # before all others: of another version nearly every field can be wrong
        if item["loc"] == ("schema_version",):
            return _describe_version(item["input"])
    place = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return _shorten(f"no {kind.__name__}: {place + ': ' if place else ''}{first['msg']}{more}")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON_CHARACTERS else line[: MAX_REASON_CHARACTERS - 1] + "…"
