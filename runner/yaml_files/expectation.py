"""What a JSON schema expects of a value, in words, and how a value that it refuses can be fixed."""

import re
from collections.abc import Callable
from typing import Any

from bench.schema.document import MAX_AMOUNT, SMALLEST_POSITIVE
from runner.yaml_files.node import Node, Scalar
from runner.yaml_files.wording import MAX_SHOWN_CHARACTERS, quote, suggest_near_word

Schema = dict[str, Any]

LARGE_BOUND = 10**10
"""From here on a bound is written with an exponent."""

KEY_MARK = "[key]"
"""What pydantic writes behind the key of a mapping if the key itself is refused."""

_KINDS = {
    "integer": "a whole number",
    "number": "a finite number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "keys with values",
}
_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "string": (str,)}
_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", lambda value, bound: value >= bound),
    "exclusiveMinimum": ("above", lambda value, bound: value > bound),
    "maximum": ("at most", lambda value, bound: value <= bound),
    "exclusiveMaximum": ("below", lambda value, bound: value < bound),
}
_NAME_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
_PATTERNS = {
    _NAME_PATTERN: "a name of a-z, 0-9 and '-' (no '-' at its ends, at most 63 characters)",
    r"^[A-Z]{3}$": "a currency as three capital letters, such as USD",
}


def find_schema(root: Schema, loc: list[str | int]) -> Schema:
    """Return the schema of the value at `loc`, a place as pydantic writes it; empty if there is none."""
    schema = _resolve(root, root)
    for index, part in enumerate(loc):
        if part == KEY_MARK:
            continue
        if loc[index + 1 : index + 2] == [KEY_MARK]:
            schema = schema.get("propertyNames", {})
        elif isinstance(part, int):
            fixed = schema.get("prefixItems", [])
            schema = fixed[part] if part < len(fixed) else schema.get("items", {})
        else:
            schema = schema.get("properties", {}).get(part) or _find_value_schema(schema)
        schema = _resolve(schema if isinstance(schema, dict) else {}, root)
    return schema


def _find_value_schema(schema: Schema) -> Schema:
    """Return the schema of the values of a mapping with any keys; pydantic puts it under the pattern of the keys."""
    by_pattern = list(schema.get("patternProperties", {}).values())
    found = by_pattern[0] if by_pattern else schema.get("additionalProperties")
    return found if isinstance(found, dict) else {}


def _resolve(schema: Schema, root: Schema) -> Schema:
    """Return what a schema refers to, and of one that takes null too the rest, marked as nullable."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    others = [part for part in schema.get("anyOf", []) if part.get("type") != "null"]
    if len(others) == 1:
        return _resolve(others[0], root) | {"nullable": True}
    return schema


def list_choices(schema: Schema) -> list[str]:
    """Return the words that a schema takes; none if it takes more than words of a list."""
    return [str(word) for word in ([schema["const"]] if "const" in schema else schema.get("enum", []))]


def describe_expected(schema: Schema) -> str:
    """Return the words behind "expected"."""
    choices = list_choices(schema)
    words = " or ".join(map(repr, choices)) if choices else _describe_kind(schema)
    return f"{words}, or null" if schema.get("nullable") else words


def _describe_kind(schema: Schema) -> str:
    if schema.get("pattern") in _PATTERNS:
        return _PATTERNS[schema["pattern"]]
    if schema.get("format") == "date":
        return "a day such as 2026-07-30"
    if schema.get("minLength"):
        return "a text that is not empty"
    words = [_KINDS.get(schema.get("type", ""), "something else")]
    for key, (bound, _) in _BOUNDS.items():
        if schema.get(key) == SMALLEST_POSITIVE:
            words.append("above 0")
        elif key in schema and schema[key] != MAX_AMOUNT:
            words.append(f"{bound} {_write_bound(schema[key])}")
    return ", ".join(words)


def _write_bound(bound: float) -> str:
    """Return a bound as people write it: 0.5, 86400, 1e+12."""
    is_plain = float(bound).is_integer() and abs(bound) < LARGE_BOUND
    return str(int(bound)) if is_plain else f"{bound:g}"


def describe_found(node: Node) -> str:
    """Return the value in the file, as the words after "found"."""
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


def advise(node: Node, schema: Schema) -> str:
    """Return how to fix a refused value; empty if what is expected says it already."""
    choices = list_choices(schema)
    is_scalar = bool(choices) or schema.get("type") in ("integer", "number", "string", "boolean")
    if isinstance(node.value, list | dict):
        return "write one value" if is_scalar else ""
    if choices:
        return suggest_near_word(node.text, choices)
    if isinstance(node.value, bool | int | float) and _fits(node.text, schema):
        return "put it in quotes"
    for read_number in (int, _read_integral, float):
        try:
            number = read_number(node.text)
        except (ValueError, OverflowError):
            continue
        if _fits(number, schema):
            return f"write {number}" + (" without quotes" if node.is_quoted else "")
    return ""


def _fits(value: Scalar, schema: Schema) -> bool:
    if not isinstance(value, _TYPES.get(schema.get("type", ""), ())):
        return False
    if isinstance(value, str):
        return bool(re.search(schema.get("pattern", ""), value))
    return all(is_met(value, schema[key]) for key, (_, is_met) in _BOUNDS.items() if key in schema)


def _read_integral(text: str) -> int:
    """Return the whole number that is written with a point or an exponent; ValueError or OverflowError if none is."""
    number = float(text)
    if number != int(number):
        raise ValueError
    return int(number)
