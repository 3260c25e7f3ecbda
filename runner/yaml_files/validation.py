"""Check values of a YAML file against a type; what is refused becomes one error with file, line and key."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from runner.yaml_files.errors import ErrorKind, YamlError
from runner.yaml_files.expectation import (
    KEY_MARK,
    Schema,
    advise,
    describe_expected,
    describe_found,
    find_schema,
    list_choices,
)
from runner.yaml_files.node import Node, Scalar
from runner.yaml_files.wording import quote, suggest_near_word, suggest_word

T = TypeVar("T")

# By pydantic's name of the error: https://docs.pydantic.dev/latest/errors/validation_errors/
_KINDS = {
    "literal_error": ErrorKind.NOT_A_CHOICE,
    "greater_than": ErrorKind.OUT_OF_RANGE,
    "greater_than_equal": ErrorKind.OUT_OF_RANGE,
    "less_than": ErrorKind.OUT_OF_RANGE,
    "less_than_equal": ErrorKind.OUT_OF_RANGE,
    "finite_number": ErrorKind.OUT_OF_RANGE,
    "int_parsing_size": ErrorKind.OUT_OF_RANGE,
    "string_pattern_mismatch": ErrorKind.WRONG_FORMAT,
    "string_too_short": ErrorKind.WRONG_FORMAT,
    "string_too_long": ErrorKind.WRONG_FORMAT,
    "value_error": ErrorKind.WRONG_FORMAT,
    "date_from_datetime_parsing": ErrorKind.WRONG_FORMAT,
    "date_parsing": ErrorKind.WRONG_FORMAT,
    "too_long": ErrorKind.WRONG_LENGTH,
    "too_short": ErrorKind.WRONG_LENGTH,
}


class ExpectedError(ValueError):
    """A text is not what belongs in its place. The message says what does, after the word "expected"."""


@dataclass(frozen=True)
class NodeValidator(Generic[T]):
    """Checks the value of a node, and all that is below it, against a type."""

    adapter: TypeAdapter[T]
    is_null_absent: bool = False
    """A key with null counts as not there, so that its default holds."""
    documentation: str = ""
    """The page that lists the keys, for messages."""

    @cached_property
    def _schema(self) -> Schema:
        return self.adapter.json_schema()

    def validate(self, node: Node) -> T:
        """Return the checked value; YamlError for the first error in it."""
        try:
            return self.adapter.validate_json(json.dumps(self._to_plain(node)))
        except ValidationError as error:
            raise self._explain(node, error.errors(include_url=False)[0]) from None

    def _to_plain(self, node: Node) -> Any:
        if isinstance(node.value, dict):
            entries = node.value.items()
            return {
                key: self._to_plain(child)
                for key, child in entries
                if not (self.is_null_absent and child.value is None)
            }
        if isinstance(node.value, list):
            return [self._to_plain(child) for child in node.value]
        scalar: Scalar = node.value
        return scalar

    def _explain(self, tree: Node, error: Any) -> YamlError:
        loc: list[str | int] = list(error["loc"])
        node, rest = _walk(tree, loc)
        match error["type"]:
            case "extra_forbidden":
                known = list(find_schema(self._schema, loc[:-1]).get("properties", {}))
                return unknown_key_error(node, str(loc[-1]), known)
            case "missing":
                return self._explain_missing(node, rest)
            case "too_long" | "too_short":
                return _explain_length(node, error["ctx"])
            case "value_error" if not isinstance(error["ctx"]["error"], ExpectedError):
                return _point_at_part(node, str(error["ctx"]["error"]))
        schema = find_schema(self._schema, loc)
        expected = str(error["ctx"]["error"]) if error["type"] == "value_error" else describe_expected(schema)
        kind = _KINDS.get(error["type"], ErrorKind.WRONG_TYPE)
        if rest == [KEY_MARK]:
            return _explain_key(node, loc, kind, expected, schema)
        advice = "" if error["type"] == "value_error" else advise(node, schema)
        return node.error(
            kind, f"found {describe_found(node)}, expected {expected}" + (f"; {advice}" if advice else "")
        )

    def _explain_missing(self, node: Node, rest: list[str | int]) -> YamlError:
        if rest and isinstance(rest[0], int):
            message = f"found a list of {rest[0]}, expected one more value"
            return node.error(ErrorKind.WRONG_LENGTH, message)
        key = ".".join(filter(None, [node.key, *map(str, rest)]))
        return node.error(ErrorKind.MISSING_KEY, f"is missing; {self.documentation} says what it takes", key=key)


def unknown_key_error(node: Node, word: str, known: list[str]) -> YamlError:
    """Return the error for a value whose key is none of the known ones."""
    return node.error(ErrorKind.UNKNOWN_KEY, f"unknown key; {suggest_word(word, known)}")


def _explain_key(node: Node, loc: list[str | int], kind: ErrorKind, expected: str, schema: Schema) -> YamlError:
    word, choices = str(loc[-2]), list_choices(schema)
    near = suggest_near_word(word, choices) if choices else ""
    shown = word if choices and word.isidentifier() else quote(word)
    return node.error(kind, f"found the key {shown}, expected {expected}" + (f"; {near}" if near else ""))


def _explain_length(node: Node, context: Any) -> YamlError:
    wanted = context.get("max_length", context.get("min_length"))
    bound = "at most" if "max_length" in context else "at least"
    message = f"found a list of {context['actual_length']}, expected {bound} {wanted}"
    return node.error(ErrorKind.WRONG_LENGTH, message)


def _point_at_part(node: Node, message: str) -> YamlError:
    """Return the error of a whole, whose message begins with the key of the part that has to be fixed."""
    part, colon, words = message.partition(": ")
    if not colon:  # of a value by itself
        return node.error(ErrorKind.OUT_OF_RANGE, message)
    child = node.find_child(part)
    if child is not None:
        return child.error(ErrorKind.CONFLICT, words)
    key = f"{node.key}.{part}" if node.key else part
    return node.find_nearest(part).error(ErrorKind.CONFLICT, words, key=key)


def _walk(tree: Node, loc: list[str | int]) -> tuple[Node, list[str | int]]:
    """Return the value that an error is about, or the nearest above it and the way from there."""
    node, rest = tree, loc
    while rest and (child := node.find_child(rest[0])) is not None:
        node, rest = child, rest[1:]
    return node, rest
