"""What every document of the contract shares: the version, the strictness, the types of values, and being read."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

Version = Literal[2]
SCHEMA_VERSION: Version = 2
MAX_REASON_CHARACTERS = 300

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Before this project and all that it measures. A machine without a battery for its clock begins in 1970."""
LATEST = datetime(2100, 1, 1, tzinfo=UTC)
"""Nanoseconds since 1970 fit 64 bits until 2262, so differences and axes around these dates do too."""
MIN_STEP_SECONDS = 1e-9
"""time.perf_counter counts nanoseconds on Linux: what is shorter was not measured."""
MAX_STEP_SECONDS = 86_400.0
"""A day: a benchmark that waits longer for one step says nothing that its first hour did not say."""
MAX_INTEGER = 2**63 - 1
"""Integers fit the 64 bits of a Parquet column."""
MAX_AMOUNT = 1e24
"""Of powers, energies, rates and ratios: a million GPUs of 10^18 operations a second have it. Products of twelve such
numbers stay finite."""
SMALLEST_POSITIVE = 1e-24
"""Of amounts that others are divided by: the inverse, so that a ratio is never more than 1e48."""


# + 0.0 turns -0.0 into 0.0: they are equal, so their cells must have equal ids.
Seconds = Annotated[float, Field(ge=0), AfterValidator(lambda value: value + 0.0)]
PositiveSeconds = Annotated[float, Field(ge=MIN_STEP_SECONDS)]
StepSeconds = Annotated[float, Field(ge=MIN_STEP_SECONDS, le=MAX_STEP_SECONDS)]
"""Of one step, or a mean over steps."""
PositiveAmount = Annotated[float, Field(ge=SMALLEST_POSITIVE, le=MAX_AMOUNT)]
Amount = Annotated[float, Field(ge=0, le=MAX_AMOUNT)]
Bytes = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Number = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Integer = Annotated[int, Field(ge=-MAX_INTEGER - 1, le=MAX_INTEGER)]
Time = Annotated[AwareDatetime, Field(ge=EARLIEST, le=LATEST)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
CellId = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,54}-[0-9a-f]{8}$")]


DocumentT = TypeVar("DocumentT", bound="Document")


class Document(BaseModel):
    """Base of every document: immutable, no unknown field, no silent conversion, no NaN or infinity."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        revalidate_instances="always",  # `model_copy` checks nothing: a part made by it is checked with the whole
        use_attribute_docstrings=True,
    )

    def to_json(self) -> bytes:
        """Return the document as UTF-8 JSON, indented for people."""
        return self.model_dump_json(indent=1).encode()


class CheckedDocument(Document):
    """Base of the documents whose parts have to fit together."""

    def find_contradictions(self) -> Iterator[str]:
        """Yield what does not fit, in words that begin with the field."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _check(self) -> Self:
        for problem in self.find_contradictions():
            raise ValueError(problem)
        return self


_FIELD_SETS: dict[frozenset[str], set[str]] = {}


class PlanDocument(Document):
    """Base of the documents of which a plan has 100,000: they share the names of their fields.

    Pydantic gives each one a set of the names of its fields, 2.2 KB for a Cell read from JSON, to which nothing writes,
    and a dictionary of its own, 832 of 1,190 bytes (https://github.com/pydantic/pydantic-core/issues/1758); attributes
    that are set one by one share their names (https://peps.python.org/pep-0412/), and take 264. A planned cell read
    from JSON takes 0.7 KB so, and 3.8 without.
    """

    def model_post_init(self, context: Any, /) -> None:
        """Share the set of names, and set the fields one by one."""
        names = self.__pydantic_fields_set__
        object.__setattr__(self, "__pydantic_fields_set__", _FIELD_SETS.setdefault(frozenset(names), names))
        values = self.__dict__
        object.__delattr__(self, "__dict__")
        for name, value in values.items():
            object.__setattr__(self, name, value)


class VersionedDocument(Document):
    """Base of the documents that are read by themselves."""

    schema_version: Version = SCHEMA_VERSION


class StoredDocument(VersionedDocument):
    """Base of the documents that the store keeps."""

    signature: str | None = Field(default=None, exclude=True, repr=False)
    """Ignored: earlier versions could sign their documents."""


class AttemptDocument(StoredDocument):
    """Base of what is known of one attempt at one repeat."""

    run_id: Name
    cell_id: CellId
    repeat: Count
    """1, 2, ...: the n-th independent container of the cell."""
    attempt: Name
    """Unique id of the container: on a cluster the pod's uid; the Job's where no pod was seen."""


class InvalidDocumentError(ValueError):
    """A text is no valid document of the expected kind; the message is the reason, in one line without the place.

    Not a UserError: whether a damaged document is skipped, measured again or reported is for the reader to decide.
    """


def read_document(kind: type[DocumentT], data: bytes) -> DocumentT:
    """Return the document of the given kind in `data`, UTF-8 JSON; raise InvalidDocumentError where it holds none."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise InvalidDocumentError(describe_error(error)) from None


def describe_error(error: ValidationError) -> str:
    """Return what is wrong with a document in one line: the first error, where it is, and what was found there."""
    first, *others = errors = error.errors(include_url=False, include_context=False)
    # Before all others: of another version nearly every field can be wrong.
    version = next((item for item in errors if item["loc"] == ("schema_version",)), None)
    if version is not None:
        text = f"schema_version is {version['input']!r:.300}, this version reads {SCHEMA_VERSION}"
    elif first["type"] == "json_invalid":
        text = f"no JSON: {first['msg'].removeprefix('Invalid JSON: ')}"
    else:
        place = ".".join(map(str, first["loc"]))
        is_shown = first["type"] != "value_error" and isinstance(first["input"], str | int | float)
        found = f", found {first['input']!r:.100}" if is_shown else ""
        more = f" (and {len(others)} more)" if others else ""
        text = f"no {error.title}: {place and place + ': '}{first['msg'].removeprefix('Value error, ')}{found}{more}"
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON_CHARACTERS else line[: MAX_REASON_CHARACTERS - 1] + "…"


def hash_text(text: str) -> str:
    """Return the first 8 hex digits of the SHA-256 of `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def bound_time(value: datetime) -> datetime:
    """Return the nearest time that a document can hold."""
    return min(max(value, EARLIEST), LATEST)


def read_time_of_day() -> datetime:
    """Return the time of day by this machine's clock, moved to the nearest that a document can hold."""
    return bound_time(datetime.now(UTC))
