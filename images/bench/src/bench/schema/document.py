"""What every document of the contract shares: the version, the strictness, and the types of single values."""

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

SCHEMA_VERSION: Literal[2] = 2

# Whoever reads a document must be able to compute with it. Integers fit the 64 bits of a Parquet column. Products and
# ratios of several floats stay finite, and none of the bounds is near anything that can be measured: in seconds, the
# age of the universe is 4e17. Times can be held in nanoseconds since 1970.
MAX_INTEGER = 2**63 - 1
SMALLEST_POSITIVE = 1e-30
MAX_AMOUNT = 1e30
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2262, 1, 1, tzinfo=UTC)


def check_version(value: object) -> object:
    """Return the version of a document; ValueError where it is none that this program reads."""
    if type(value) is not int or value != SCHEMA_VERSION:
        raise ValueError(f"this program reads version {SCHEMA_VERSION} of its documents, not {value!r}")
    return value


def check_time(value: datetime) -> datetime:
    """Return `value`; ValueError where it lies before EARLIEST or after LATEST."""
    if not EARLIEST <= value <= LATEST:
        raise ValueError(f"{value.isoformat()} is not between {EARLIEST.isoformat()} and {LATEST.isoformat()}")
    return value


def check_positive(value: float) -> float:
    """Return `value`, above 0; ValueError where it is too near to 0 to divide by."""
    if value < SMALLEST_POSITIVE:
        raise ValueError(f"{value!r} is less than {SMALLEST_POSITIVE!r}")
    return value


Version = Annotated[Literal[2], BeforeValidator(check_version)]
# + 0.0 turns -0.0 into 0.0: they are equal, so their cells must have equal ids.
Seconds = Annotated[float, Field(ge=0, le=MAX_AMOUNT), AfterValidator(lambda value: value + 0.0)]
PositiveAmount = Annotated[float, Field(gt=0, le=MAX_AMOUNT), AfterValidator(check_positive)]
PositiveSeconds = PositiveAmount
Amount = Annotated[float, Field(ge=0, le=MAX_AMOUNT)]
Bytes = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Number = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Integer = Annotated[int, Field(ge=-MAX_INTEGER - 1, le=MAX_INTEGER)]
Time = Annotated[AwareDatetime, AfterValidator(check_time)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
CellId = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,54}-[0-9a-f]{8}$")]


_FIELD_SETS: dict[frozenset[str], set[str]] = {}


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

    def model_post_init(self, context: Any, /) -> None:
        """Have all documents with the same fields set share one set of their names.

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


class SignableDocument(Document):
    """Base of the documents that are signed where signatures are asked for."""

    signature: Annotated[str, Field(max_length=200)] | None = Field(default=None, exclude=True)
    """Of the document without this member, its key in the store and its run's plan: `ed25519`, the key's id, Base64.
    None: not signed. It is checked where public keys are given (`--verify`), and always the last member."""


def hash_text(text: str) -> str:
    """Return the first 8 hex digits of the SHA-256 of `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]
