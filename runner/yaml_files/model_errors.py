"""What a model refused of a YAML file in, one message out: file, line, key, what was found and what was expected."""

from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from bench.errors import UserError
from runner.kubernetes.syntax import ExpectedError
from runner.matrix.values import describe_found, suggest_word
from runner.yaml_files.source import Node, quote

# By pydantic's name of the fault: https://docs.pydantic.dev/latest/errors/validation_errors/
_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "finite_number": "a whole number",
    "bool_type": "true or false",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "model_attributes_type": "keys with values",
    "tuple_type": "a list",
}
_BOUNDS = {"greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most")}
_IS_KEY = "[key]"
"""What pydantic writes behind the key of a mapping that is itself refused."""


def explain_fault(error: ValidationError, tree: Node, model: type[BaseModel]) -> UserError:
    """Return the first fault that `model` found in the values of `tree` as `FILE:LINE: KEY: message`."""
    first = error.errors(include_url=False)[0]
    node, rest = _walk(tree, list(first["loc"]))
    match first["type"]:
        case "extra_forbidden":
            word = str(first["loc"][-1])
            known = list(_find_model(model, first["loc"][:-1]).model_fields)
            return node.fault(f"unknown key; {suggest_word(word, known)}")
        case "missing":
            return _explain_missing(node, rest)
        case "too_long" | "too_short":
            return _explain_length(node, first["ctx"])
        case "value_error" if not isinstance(first["ctx"]["error"], ExpectedError):
            return _point_at_part(node, str(first["ctx"]["error"]))
    if rest == [_IS_KEY]:
        word = node.key.rpartition(".")[2] if first["type"] == "literal_error" else quote(_name_last(first["loc"]))
        return node.fault(f"found the key {word}, expected {_expect(first)}{_suggest(word, first)}")
    return node.fault(f"found {describe_found(node)}, expected {_expect(first)}{_advise(node, first)}")


def _expect(fault: Any) -> str:
    """Return the words after "expected"."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return str(context["expected"])
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"a whole number, {words} {context[name]}"
    return _EXPECTED.get(kind, "something else; docs/profiles.md lists what")


def _advise(node: Node, fault: Any) -> str:
    """Return how to mend a value, or nothing where what was expected says it already."""
    if fault["type"] == "literal_error":
        return _suggest(node.text, fault)
    if fault["type"] == "string_type" and not isinstance(node.value, list | dict | None):
        return "; put it in quotes"
    if fault["type"] == "int_type" and node.is_quoted and node.text.isdecimal() and node.text.isascii():
        return f"; write {node.text[:20]} without quotes"
    return ""


def _suggest(word: str, fault: Any) -> str:
    if fault["type"] != "literal_error":
        return ""
    near = suggest_word(word, [part.strip("' ") for part in fault["ctx"]["expected"].replace(" or ", ",").split(",")])
    return f"; {near}" if near.endswith("?") else ""


def _explain_missing(node: Node, rest: list[str | int]) -> UserError:
    if rest and isinstance(rest[0], int):
        return node.fault(f"found a list of {rest[0]}, expected one more value")
    key = ".".join(filter(None, [node.key, *map(str, rest)]))
    return node.fault("is missing; docs/profiles.md says what it takes", key=key)


def _explain_length(node: Node, context: Any) -> UserError:
    wanted = context.get("max_length", context.get("min_length"))
    bound = "at most" if "max_length" in context else "at least"
    return node.fault(f"found a list of {context['actual_length']}, expected {bound} {wanted}")


def _point_at_part(node: Node, message: str) -> UserError:
    """Return the fault of a whole, whose message begins with the key of the part that is to be mended."""
    part, _, words = message.partition(": ")
    child = _find_child(node, part)
    if child is not None:
        return child.fault(words)
    return node.fault(words, key=f"{node.key}.{part}" if node.key else part)


def _walk(tree: Node, loc: list[str | int]) -> tuple[Node, list[str | int]]:
    """Return the value that a fault is about, or the nearest above it and the way from there."""
    node, rest = tree, loc
    while rest and (child := _find_child(node, rest[0])) is not None:
        node, rest = child, rest[1:]
    return node, rest


def _find_child(node: Node, part: str | int) -> Node | None:
    if isinstance(node.value, dict) and isinstance(part, str):
        return node.value.get(part)
    if isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
        return node.value[part]
    return None


def _name_last(loc: tuple[str | int, ...]) -> str:
    return str([part for part in loc if part != _IS_KEY][-1])


def _find_model(model: type[BaseModel], loc: tuple[str | int, ...]) -> type[BaseModel]:
    """Return the model of the value at `loc`."""
    found = model
    for part in loc:
        if isinstance(part, str) and part in found.model_fields:
            found = _find_model_in(found.model_fields[part].annotation) or found
    return found


def _find_model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a type is, or is a list, a mapping or an optional value of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _find_model_in(part))), None)
