"""Strategies from the JSON Schemas of pydantic models: documents that have any field, with values at its bounds."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import strategies as st
from pydantic import TypeAdapter

from fuzz.markers import TEXTS
from fuzz.mutations import Path, TreeStrategy

MAX_DEPTH = 7
Schema = dict[str, Any]


@cache
def _read_schema(kind: Any) -> Schema:
    return TypeAdapter(kind).json_schema()


def list_fields(kind: Any) -> list[Path]:
    """Return the paths of all fields of a model and of the models in it; of lists, those of the first element."""
    root = _read_schema(kind)
    return sorted(set(_list_fields(root, root, (), 0)), key=str)


def _list_fields(root: Schema, schema: Schema, path: Path, depth: int) -> Iterator[Path]:
    if depth > MAX_DEPTH:
        return
    for option in _list_options(root, schema):
        for name, inner in option.get("properties", {}).items():
            yield (*path, name)
            yield from _list_fields(root, inner, (*path, name), depth + 1)
        for inner in (option.get("items"), *option.get("prefixItems", ())[:1]):
            if isinstance(inner, dict):
                yield from _list_fields(root, inner, (*path, 0), depth + 1)


def _list_options(root: Schema, schema: Schema) -> list[Schema]:
    """Return the schemas that a value may follow, without references."""
    if "$ref" in schema:
        return _list_options(root, root["$defs"][schema["$ref"].rpartition("/")[2]])
    options = schema.get("anyOf") or schema.get("oneOf")
    return [found for option in options for found in _list_options(root, option)] if options else [schema]


def draw_documents(kind: Any) -> TreeStrategy:
    """Draw trees that follow a model's JSON Schema; the checks that the schema does not tell may refuse them."""
    root = _read_schema(kind)
    values = _draw_values(root, root, 0)

    @st.composite  # without arguments: hypothesis writes them out wherever it names a strategy
    def draw_document(draw: st.DrawFn) -> Any:
        return draw(values)

    return draw_document()


def _draw_values(root: Schema, schema: Schema, depth: int) -> TreeStrategy:
    return st.deferred(lambda: st.one_of(*[_draw_option(root, found, depth) for found in _list_options(root, schema)]))


def _draw_option(root: Schema, schema: Schema, depth: int) -> TreeStrategy:
    if "const" in schema or "enum" in schema:
        return st.sampled_from([schema["const"]] if "const" in schema else schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        return _draw_object(root, schema, depth)
    if kind == "array":
        return _draw_array(root, schema, depth)
    if kind in ("integer", "number"):
        return _draw_number(schema)
    if kind == "string":
        return _draw_text(schema)
    return st.booleans() if kind == "boolean" else st.none() if kind == "null" else st.sampled_from(["x", 1, None])


def _draw_object(root: Schema, schema: Schema, depth: int) -> TreeStrategy:
    properties, required = schema.get("properties", {}), set(schema.get("required", ()))
    inner = {name: _draw_values(root, found, depth + 1) for name, found in properties.items()}
    if not properties:
        values = schema.get("additionalProperties")
        drawn = _draw_values(root, values, depth + 1) if isinstance(values, dict) else st.just("x")
        return st.dictionaries(st.sampled_from(["a", "gpu", "cpu", "pytorch", "x/y"]), drawn, max_size=2)
    optional = {} if depth > MAX_DEPTH else {name: inner[name] for name in inner if name not in required}
    return st.fixed_dictionaries({name: inner[name] for name in inner if name in required}, optional=optional)


def _draw_array(root: Schema, schema: Schema, depth: int) -> TreeStrategy:
    if "prefixItems" in schema:
        return st.tuples(*[_draw_values(root, found, depth + 1) for found in schema["prefixItems"]]).map(list)
    items = schema.get("items")
    least = schema.get("minItems", 0)
    drawn = _draw_values(root, items, depth + 1) if isinstance(items, dict) else st.just("x")
    return st.lists(drawn, min_size=least, max_size=max(least, 1 if depth > MAX_DEPTH else 3))


def _draw_number(schema: Schema) -> TreeStrategy:
    """Draw a number in the bounds, often one of them."""
    low, high = (
        schema.get("minimum", schema.get("exclusiveMinimum")),
        schema.get("maximum", schema.get("exclusiveMaximum")),
    )
    if schema["type"] == "integer":
        bounds = st.sampled_from([bound for bound in (low, high, 1, 2, 64) if bound is not None])
        return bounds | st.integers(None if low is None else int(low), None if high is None else int(high))
    usual = st.sampled_from([bound for bound in (low, high, 0.5, 1.0, 1e-9, 1e9) if bound is not None])
    return usual | st.floats(low, high, allow_nan=False, allow_infinity=False)


def _draw_text(schema: Schema) -> TreeStrategy:
    if schema.get("format") in ("date-time", "date"):
        is_date = schema["format"] == "date"
        days = ("2026-03-01", "2000-01-01", "2100-12-31", "1970-01-01")
        return st.sampled_from(days if is_date else [f"{day}T12:00:00Z" for day in days])
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True)
    texts = [text for text in TEXTS if len(text) >= schema.get("minLength", 0)]
    return st.sampled_from(texts[: schema.get("maxLength", len(texts)) and len(texts)]) | st.just("some text")
