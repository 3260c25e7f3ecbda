"""What every document of the contract shares: the version, the strictness, and the types of single values."""

import hashlib
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
)

SCHEMA_VERSION: Literal[2] = 2

# Whoever reads a document computes with it: sums, squares, ratios and logarithms of its numbers, columns of tables,
# axes of plots. The bounds keep all of these finite and exact enough, and nothing that can be measured lies beyond one.
# What this tool itself measures outside of them, `bench.measured_bounds` keeps from losing the record.
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Before this project and all that it measures. A machine without a battery for its clock begins in 1970."""
LATEST = datetime(2100, 1, 1, tzinfo=UTC)
"""Nanoseconds since 1970 fit 64 bits until 2262, so differences and axes around these dates do too."""
MIN_STEP_SECONDS = 1e-9
"""time.perf_counter counts nanoseconds on Linux: what is shorter was not measured. No step is: a call of Python takes
thirty. Ratios of two steps stay below 1e14, and so do logarithms far from their ends."""
MAX_STEP_SECONDS = 86_400.0
"""A day: a benchmark that waits longer for one step says nothing that its first hour did not say."""
MAX_SECONDS = 100 * 366 * 86_400.0
"""A century, as long as the dates reach: of windows, waits, limits and readings of a clock that counts since the boot.
In nanoseconds it fits 64 bits three times over."""
MAX_BYTES = 2**60 - 1
"""Just below an exbibyte. Linux addresses 2^52 bytes of memory at most (docs.kernel.org, 5-level paging), and eight
such numbers can be added in 64 bits."""
MAX_NUMBER = 2**53
"""The largest integer up to which floats, and the page's JavaScript, hold every one exactly."""
MAX_INTEGER = 2**63 - 1
"""Of signed integers, and of operations: they fit the 64 bits of a Parquet column."""
MAX_AMOUNT = 1e24
"""Of powers, energies, rates and ratios: a million GPUs of 10^18 operations a second have it. Products of twelve such
numbers stay finite."""
SMALLEST_POSITIVE = 1e-24
"""Of amounts that others are divided by: the inverse, so that a ratio is never more than 1e48."""


def check_version(value: object) -> object:
    """Return the version of a document; ValueError where it is none that this program reads."""
    if type(value) is not int or value != SCHEMA_VERSION:
        raise ValueError(f"this program reads version {SCHEMA_VERSION} of its documents, not {value!r}")
    return value


def check_day(value: date) -> date:
    """Return `value`; ValueError where it lies before EARLIEST or after LATEST."""
    if not EARLIEST.date() <= value <= LATEST.date():
        raise ValueError(f"{value.isoformat()} is not between {EARLIEST.date()} and {LATEST.date()}")
    return value


def check_time(value: datetime) -> datetime:
    """Return `value`; ValueError where it lies before EARLIEST or after LATEST."""
    if not EARLIEST <= value <= LATEST:
        raise ValueError(f"{value.isoformat()} is not between {EARLIEST.isoformat()} and {LATEST.isoformat()}")
    return value


Version = Annotated[Literal[2], BeforeValidator(check_version)]
# + 0.0 turns -0.0 into 0.0: they are equal, so their cells must have equal ids.
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS), AfterValidator(lambda value: value + 0.0)]
PositiveSeconds = Annotated[float, Field(ge=MIN_STEP_SECONDS, le=MAX_SECONDS)]
StepSeconds = Annotated[float, Field(ge=MIN_STEP_SECONDS, le=MAX_STEP_SECONDS)]
"""Of one step, or a mean over steps."""
PositiveAmount = Annotated[float, Field(ge=SMALLEST_POSITIVE, le=MAX_AMOUNT)]
Amount = Annotated[float, Field(ge=0, le=MAX_AMOUNT)]
Bytes = Annotated[int, Field(ge=0, le=MAX_BYTES)]
Number = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
Operations = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
"""Floating-point operations of a step: 64 GPUs of 2 PFLOP/s take over a minute for the most of them."""
Integer = Annotated[int, Field(ge=-MAX_INTEGER - 1, le=MAX_INTEGER)]
Time = Annotated[AwareDatetime, AfterValidator(check_time)]
Day = Annotated[date, AfterValidator(check_day)]
"""Of a row of a table that people write."""
Price = Annotated[float, Field(ge=1e-6, le=1e12)]
"""Of an hour, a machine or a budget, in any currency: a machine that costs a million dollars, in a currency of which a
dollar buys a million."""
Watts = Annotated[float, Field(ge=0, le=1e6)]
"""Of one chip or machine, as a table states it: a rack takes a tenth of the most."""
Count = Annotated[int, Field(ge=1, le=10**9)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
CellId = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,54}-[0-9a-f]{8}$")]


_FIELD_SETS: dict[frozenset[str], set[str]] = {}


def _end_at_first_error(schema: Any) -> None:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if part.get("type") in ("list", "tuple", "set", "frozenset"):
                part["fail_fast"] = True
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part


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

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> Any:
        """Return the schema, by which a list ends at its first error: a million of them took gigabytes."""
        schema = handler(source)
        _end_at_first_error(schema)
        return schema

    def model_post_init(self, context: Any, /) -> None:
        """Share one set of names among all documents with the same fields set.

        Pydantic gives every document a set of its own, which nothing reads here: 2.2 KB for a Cell read from JSON,
        three times as much as the cell itself. A run may plan 100,000 of them.
        """
        names = frozenset(self.__pydantic_fields_set__)
        shared = _FIELD_SETS.setdefault(names, self.__pydantic_fields_set__)
        object.__setattr__(self, "__pydantic_fields_set__", shared)

    def to_json(self) -> bytes:
        """Return the document as UTF-8 JSON, indented for people."""
        return self.model_dump_json(indent=1).encode()


class PlanDocument(Document):
    """Base of the documents of which a plan has 100,000: they share the names of their fields, as other objects do.

    Pydantic gives each one a dictionary of its own, which takes 832 of the 1,190 bytes of a Cell
    (https://github.com/pydantic/pydantic-core/issues/1758); attributes that are set one by one share their names
    (https://peps.python.org/pep-0412/), and take 264.
    """

    def model_post_init(self, context: Any, /) -> None:
        """Set the fields one by one."""
        super().model_post_init(context)
        values = self.__dict__
        object.__delattr__(self, "__dict__")
        for name, value in values.items():
            object.__setattr__(self, name, value)


class StoredDocument(Document):
    """Base of the documents that the store keeps."""

    signature: str | None = Field(default=None, exclude=True, repr=False)
    """Ignored: earlier versions could sign their documents."""


def hash_text(text: str) -> str:
    """Return the first 8 hex digits of the SHA-256 of `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]
