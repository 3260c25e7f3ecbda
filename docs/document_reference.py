"""Describe the documents for docs/reference/documents.md: every field, from the JSON Schemas of the code."""

import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from typing import Any, cast, get_args, get_type_hints

from collector.access.scenario import Scenario
from runner.commands.schema import schema as print_schema

HEADINGS = {
    "stored": "Documents in the store",
    "compare": "What `benchmatrix compare --json` prints",
    "cost": "What `benchmatrix cost --json` prints",
}
"""Of the schemas; a kind without a heading of its own is named after itself."""
Node = Mapping[str, Any]
BOUNDS = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}


def describe_documents() -> str:
    """Return a section for each schema, with a table for each kind of document and of part of one."""
    sections = [
        _describe_schema(load_schema(kind), HEADINGS.get(kind, f"What `benchmatrix schema {kind}` describes"))
        for kind in list_kinds()
    ]
    scenario = _describe_schema(Scenario.model_json_schema(), "Scenarios of `benchmatrix access`")
    return "\n\n".join([*sections, scenario])


def list_kinds() -> tuple[str, ...]:
    """Return what `benchmatrix schema` can print: the module's KINDS, or else the values that the argument allows."""
    named: tuple[str, ...] = getattr(sys.modules[print_schema.__module__], "KINDS", ())
    return named or get_args(get_type_hints(print_schema)["kind"])


def load_schema(kind: str) -> dict[str, Any]:
    """Return what `benchmatrix schema KIND` prints."""
    with redirect_stdout(io.StringIO()) as printed:
        cast(Callable[[str], None], print_schema)(kind)
    found: dict[str, Any] = json.loads(printed.getvalue())
    return found


def _describe_schema(schema: dict[str, Any], heading: str) -> str:
    parts = dict(sorted(schema.get("$defs", {}).items()))
    if "properties" in schema:
        parts = {schema["title"]: schema} | parts
    sections = [f"## {heading}", *(_describe_part(name, part) for name, part in parts.items())]
    return "\n\n".join(sections)


def _describe_part(name: str, part: Node) -> str:
    lines = [f"### {name}", "", _flatten(part.get("description", "")), ""]
    if "properties" not in part:
        return "\n".join([*lines, _name_type(part)])
    lines += ["| field | type | default | meaning |", "|---|---|---|---|"]
    for field, node in part["properties"].items():
        default = "needed" if field in part.get("required", ()) else f"`{json.dumps(node.get('default'))}`"
        meaning = _flatten(node.get("description", "")).replace("|", "\\|")
        lines.append(f"| `{field}` | {_name_type(node)} | {default} | {meaning} |")
    return "\n".join(lines)


def _flatten(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")


def _name_type(node: Node) -> str:
    """Return a node's type in words: `integer, at least 1`, `list of [Gpu](#gpu)`."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    alternatives = node.get("anyOf") or node.get("oneOf")
    if alternatives:
        return " or ".join(_name_type(found) for found in alternatives)
    if "const" in node:
        return f"`{json.dumps(node['const'])}`"
    if "enum" in node:
        return ", ".join(f"`{choice}`" for choice in node["enum"])
    return _name_structure(node)


def _name_structure(node: Node) -> str:
    kind = node.get("type", "anything")
    if kind == "array":
        items = node.get("prefixItems")
        return f"list of {' and '.join(map(_name_type, items)) if items else _name_type(node.get('items', {}))}"
    if kind == "object":
        values = node.get("additionalProperties")
        return f"object, {_name_type(values)} by name" if isinstance(values, Mapping) else "object"
    return ", ".join([str(node.get("format", kind)), *_list_bounds(node)])


def _list_bounds(node: Node) -> Iterator[str]:
    """Yield the bounds that say something: not those of all numbers that the schema allows."""
    for key, words in BOUNDS.items():
        if key in node and abs(node[key]) <= 10**12:
            yield f"{words} {node[key]:,}"
