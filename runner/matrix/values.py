"""One value of a matrix file goes in, the checked value comes out, or the message that says what was expected there."""

import difflib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from bench.errors import UserError
from bench.registry import MODELS
from bench.schema import Cell, Document, Name, PlannedCell
from runner.yaml_files.source import MAX_SHOWN_CHARACTERS, Node, Scalar, quote

CELL_KEYS = tuple(key for key in Cell.model_fields if key != "schema_version")
EXECUTION_KEYS = tuple(key for key in PlannedCell.model_fields if key != "cell")

MAX_SHOWN_WORDS = 20
"""Of those listed in a message."""

_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
_KINDS = {"integer": "a whole number", "number": "a finite number", "string": "a text", "boolean": "true or false"}
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


@dataclass(frozen=True, kw_only=True)
class _Field:
    """What a key accepts: `adapter` checks it, and `choices` where there are any; `expected` says it in words."""

    adapter: TypeAdapter[Any]
    choices: tuple[str, ...]
    expected: str


def read_value(key: str, node: Node) -> Scalar:
    """Return the value for a key of a cell or of its execution; UserError where it is not one."""
    value: Scalar = _read_field(_FIELDS[key], node)
    return value


def read_name(node: Node) -> str:
    """Return the name of a matrix; UserError where it cannot be one."""
    name: str = _read_field(_NAME, node)
    return name


def read_text(node: Node) -> str:
    """Return a text for people; UserError where the value is none."""
    text: str = _read_field(_TEXT, node)
    return text


def describe_found(node: Node) -> str:
    """Return what stands in the file, as the words after "found"."""
    match node.value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case None:
            return f"nothing (`{node.text}`)" if node.text else "nothing"
        case bool():
            is_plain = node.text.lower() in ("true", "false")
            return f"`{node.text}`" + ("" if is_plain else f", which YAML 1.1 reads as {str(node.value).lower()}")
        case str():
            return f"the text {quote(node.text)}"
        case _:
            return f"the number {node.text[:MAX_SHOWN_CHARACTERS]}"


def suggest_word(word: str, known: Sequence[str]) -> str:
    """Return "did you mean ...?" with the known word nearest to `word`, or the known words where none is near."""
    by_folded = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word[:MAX_SHOWN_CHARACTERS].lower(), by_folded, n=1)
    if near:
        return f"did you mean '{by_folded[near[0]]}'?"
    return f"known are {join_words(known)}"


def join_words(words: Iterable[object]) -> str:
    """Return the words with commas between them, cut after `MAX_SHOWN_WORDS`."""
    shown = [str(word) for word in itertools.islice(words, MAX_SHOWN_WORDS + 1)]
    return ", ".join(shown if len(shown) <= MAX_SHOWN_WORDS else [*shown[:-1], "..."])


def _read_field(field: _Field, node: Node) -> Any:
    try:
        value = field.adapter.validate_python(node.value)
    except ValidationError:
        raise _refuse(field, node) from None
    if field.choices and value not in field.choices:
        raise _refuse(field, node)
    return value


def _refuse(field: _Field, node: Node) -> UserError:
    advice = _advise(field, node)
    return node.fault(f"found {describe_found(node)}, expected {field.expected}" + (f"; {advice}" if advice else ""))


def _advise(field: _Field, node: Node) -> str:
    """Return how to mend a refused value, or nothing where what is expected says it already."""
    if isinstance(node.value, list | dict):
        return "write one value"
    if field.choices:
        near = suggest_word(node.text, field.choices)
        return near if near.endswith("?") else ""
    if _accepts(field, node.text):
        return "put it in quotes"
    for read_number in (int, _read_integral, float):
        try:
            number = read_number(node.text)
        except (ValueError, OverflowError):
            continue
        if _accepts(field, number):
            return f"write {number}" + (" without quotes" if node.is_quoted else "")
    return ""


def _accepts(field: _Field, value: Scalar) -> bool:
    try:
        field.adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def _read_integral(text: str) -> int:
    """Return the whole number that is written with a point or an exponent; ValueError or OverflowError if none is."""
    number = float(text)
    if number != int(number):
        raise ValueError
    return int(number)


def _make_field(document: type[Document], key: str) -> _Field:
    info = document.model_fields[key]
    schema, is_nullable = _look_behind_null(document.model_json_schema()["properties"][key])
    literals = [schema["const"]] if "const" in schema else schema.get("enum", [])
    choices = tuple(MODELS) if key == "model" else tuple(literals)
    annotation: Any = Annotated[info.annotation, info]
    bounds = [f"{words} {schema[bound]}" for bound, words in _BOUNDS.items() if bound in schema]
    words = " or ".join(map(repr, choices)) if choices else ", ".join([_KINDS[schema["type"]], *bounds])
    return _Field(
        adapter=TypeAdapter(annotation, config=_STRICT),
        choices=choices,
        expected=f"{words}, or null" if is_nullable else words,
    )


def _look_behind_null(schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the schema of a field's values that are not null, and whether null is one too."""
    others = [part for part in schema.get("anyOf", []) if part["type"] != "null"]
    return (others[0], True) if others else (schema, False)


_FIELDS = {key: _make_field(Cell, key) for key in CELL_KEYS}
_FIELDS |= {key: _make_field(PlannedCell, key) for key in EXECUTION_KEYS}
_NAME = _Field(
    adapter=TypeAdapter(Name, config=_STRICT),
    choices=(),
    expected="a name of a-z, 0-9 and '-' (no '-' at its ends, at most 63 characters)",
)
_TEXT = _Field(adapter=TypeAdapter(str, config=_STRICT), choices=(), expected="a text")
