"""YAML files of users: every value with its file, line and key, and errors that name them.

An error reads `FILE:LINE: KEY: found, expected; remedy`. Only plain values are read: no tags, no merge keys, one
document; numbers are decimal.
"""

import difflib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from bench.errors import UserError
from bench.input_files import explain_unread, read_input
from bench.schema.document import MAX_AMOUNT, SMALLEST_POSITIVE

MAX_SHOWN_CHARACTERS = 60
"""How much of a value a message quotes."""
MAX_SHOWN_WORDS = 20
"""How many values a message lists."""


EXPECTED_MATRIX = "a matrix; give it at least the keys 'name' and 'axes'"
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


_PREFIX = "tag:yaml.org,2002:"
_DECIMAL_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
T = TypeVar("T")


class YamlError(UserError):
    """An error in a YAML file, shown as `FILE:LINE: KEY: message`; without the line where the file cannot be read."""

    def __init__(self, message: str, *, file: str, line: int | None = None, key: str = "") -> None:
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {key}: {message}" if key else f"{place}: {message}")
        self.message, self.file, self.line, self.key = message, file, line, key


Scalar = str | int | float | bool | None
Value = Scalar | list["Node"] | dict[str, "Node"]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One value of a file and where it stands."""

    value: Value
    text: str
    """A scalar as written, without quotes; empty for lists and mappings."""
    is_quoted: bool
    file: str
    """The file's name as shown to the user."""
    line: int
    """Counted from 1: the line of the key in a mapping, of the item in a list."""
    key: str
    """The way to the value from the top, as in `include[0].mode`; empty at the top."""

    def error(self, message: str, *, key: str | None = None) -> YamlError:
        """Return an error that names file, line and key of this value; `key` replaces its own key."""
        return YamlError(message, file=self.file, line=self.line, key=self.key if key is None else key)

    def find_child(self, part: str | int) -> "Node | None":
        """Return the value under a key or at an index, or None if there is none."""
        if isinstance(self.value, dict) and isinstance(part, str):
            return self.value.get(part)
        if isinstance(self.value, list) and isinstance(part, int) and part < len(self.value):
            return self.value[part]
        return None

    def find_nearest(self, path: str) -> "Node":
        """Return the value at a path such as `a.b[0].c`, or the nearest above it that exists."""
        if isinstance(self.value, list):
            children = {f"[{number}]": child for number, child in enumerate(self.value)}
        elif isinstance(self.value, dict):
            children = {key: child for key, child in self.value.items()}
        else:
            return self
        found = [part for part in children if path.startswith(part) and path[len(part) :][:1] in ("", ".", "[")]
        if not found:
            return self
        part = max(found, key=len)
        return children[part].find_nearest(path[len(part) :].removeprefix("."))


def read_yaml(path: Path, file: str, *, expected: str = EXPECTED_MATRIX) -> Node:
    """Return the tree of the one YAML document in `path`; YamlError if it cannot be read.

    `file` is the file's name in messages; `expected` what an empty file should hold.
    """
    content = read_bytes(path, file, file_format="YAML")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise YamlError("is not UTF-8 text; give a YAML file and save it as UTF-8", file=file, line=line) from None
    return parse_yaml(text, file, expected=expected)


def read_bytes(path: Path, file: str, *, file_format: str) -> bytes:
    """Return what a user's file holds; YamlError, which asks for a file of this format, if it cannot be read."""
    try:
        return read_input(path)
    except OSError as error:
        raise YamlError(f"{explain_unread(error)}; give the path of a {file_format} file", file=file) from None


def parse_yaml(text: str, file: str, *, expected: str = EXPECTED_MATRIX) -> Node:
    """Return the tree of the one YAML document in `text`; YamlError if it is no such document."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            raise YamlError(f"the file is empty, expected {expected}", file=file, line=1)
        return _build(root, file, "")
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        if "another document" in str(error.problem):
            message = "a second document starts; a file holds one document, remove '---'"
            raise YamlError(message, file=file, line=line) from None
        hint = "indent with spaces" if "'\\t'" in str(error.problem) else "fix the syntax there or in the line above"
        raise YamlError(f"is not YAML: {error.problem}; {hint}", file=file, line=line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"is not YAML: it holds the character U+{error.character:04X}; give a text file"
        raise YamlError(message, file=file, line=line) from None
    except (ValueError, OverflowError):  # from int() and chr() on an overlong number or escape
        raise YamlError("is not YAML: a number is out of range; write a smaller one", file=file, line=1) from None
    except RecursionError:
        raise YamlError("is nested too deep, or an alias is inside its own anchor", file=file, line=1) from None


def _build(node: yaml.Node, file: str, key: str) -> Node:
    """Return the tree below a node of PyYAML's, `key` being its place."""
    assert node.start_mark is not None  # PyYAML's parser sets it
    place = Node(value=None, text="", is_quoted=False, file=file, line=node.start_mark.line + 1, key=key)
    if not node.tag.startswith(_PREFIX):
        raise place.error(f"found the tag {quote(node.tag)}, expected a value without a tag; remove the tag")
    if isinstance(node, yaml.SequenceNode):
        return replace(place, value=[_build(item, file, f"{key}[{index}]") for index, item in enumerate(node.value)])
    if isinstance(node, yaml.ScalarNode):
        value = _read_scalar(node, place)
        return replace(place, value=value, text=node.value, is_quoted=node.style is not None)
    entries: dict[str, Node] = {}
    for key_node, value_node in node.value:
        name = replace(place, line=key_node.start_mark.line + 1)
        if not isinstance(key_node, yaml.ScalarNode):
            raise name.error("found a list or mapping as a key; a key is one word")
        path = join_keys(key, key_node.value)
        if key_node.tag == f"{_PREFIX}merge":
            raise name.error(
                "merge keys are not read; write the keys out, or, in a matrix, put what is shared under 'defaults'",
                key=path,
            )
        if key_node.value in entries:
            first = entries[key_node.value].line
            raise name.error(f"the key stands twice, first in line {first}; keep one of the two", key=path)
        entries[key_node.value] = replace(_build(value_node, file, path), line=name.line)
    return replace(place, value=entries)


def _read_scalar(node: yaml.ScalarNode, place: Node) -> Scalar:
    """Return a value; refuse numbers that YAML 1.1 reads in base 2, 8, 16 or 60 (`010` is 8, `1:30` is 90)."""
    kind = node.tag.removeprefix(_PREFIX)
    if kind not in ("int", "float", "bool", "null"):
        return str(node.value)
    if (kind == "int" and not _DECIMAL_INTEGER.fullmatch(node.value)) or (kind == "float" and ":" in node.value):
        message = f"found {quote(node.value)}, which YAML 1.1 does not read as a decimal number"
        raise place.error(f"{message}; write it without leading zeros, prefix or colon, or quote it")
    try:
        value: Scalar = yaml.SafeLoader("").construct_object(node)
    except ValueError:  # more digits than Python converts
        digits = len(node.value)
        raise place.error(f"found the number {quote(node.value)} of {digits} digits; write a smaller one") from None
    return value


def join_keys(parent: str, name: str) -> str:
    """Return the key path of an entry, its name quoted if it is not a plain word."""
    shown = name if re.fullmatch(r"[\w<-]{1,60}", name) else quote(name)
    return f"{parent}.{shown}" if parent else shown


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
        if rest == [KEY_MARK]:
            return _explain_key(node, loc, expected, schema)
        advice = "" if error["type"] == "value_error" else advise(node, schema)
        return node.error(f"found {describe_found(node)}, expected {expected}" + (f"; {advice}" if advice else ""))

    def _explain_missing(self, node: Node, rest: list[str | int]) -> YamlError:
        if rest and isinstance(rest[0], int):
            message = f"found a list of {rest[0]}, expected one more value"
            return node.error(message)
        key = ".".join(filter(None, [node.key, *map(str, rest)]))
        return node.error(f"is missing; {self.documentation} says what it takes", key=key)


def unknown_key_error(node: Node, word: str, known: list[str]) -> YamlError:
    """Return the error for a value whose key is none of the known ones."""
    return node.error(f"unknown key; {suggest_word(word, known)}")


def _explain_key(node: Node, loc: list[str | int], expected: str, schema: Schema) -> YamlError:
    word, choices = str(loc[-2]), list_choices(schema)
    near = suggest_near_word(word, choices) if choices else ""
    shown = word if choices and word.isidentifier() else quote(word)
    return node.error(f"found the key {shown}, expected {expected}" + (f"; {near}" if near else ""))


def _explain_length(node: Node, context: Any) -> YamlError:
    wanted = context.get("max_length", context.get("min_length"))
    bound = "at most" if "max_length" in context else "at least"
    message = f"found a list of {context['actual_length']}, expected {bound} {wanted}"
    return node.error(message)


def _point_at_part(node: Node, message: str) -> YamlError:
    """Return the error of a whole, whose message begins with the key of the part that has to be fixed."""
    part, colon, words = message.partition(": ")
    if not colon:  # of a value by itself
        return node.error(message)
    child = node.find_child(part)
    if child is not None:
        return child.error(words)
    key = f"{node.key}.{part}" if node.key else part
    return node.find_nearest(part).error(words, key=key)


def _walk(tree: Node, loc: list[str | int]) -> tuple[Node, list[str | int]]:
    node, rest = tree, loc
    while rest and (child := node.find_child(rest[0])) is not None:
        node, rest = child, rest[1:]
    return node, rest


def quote(text: str) -> str:
    """Return `text` in quotes for a message: one line, no control characters, cut if it is long."""
    return repr(text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "...")


def suggest_word(word: str, known: Sequence[str]) -> str:
    """Return "did you mean ...?" with the known word nearest to `word`, or the known words if none is near."""
    by_folded = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word[:MAX_SHOWN_CHARACTERS].lower(), by_folded, n=1)
    if near:
        return f"did you mean '{by_folded[near[0]]}'?"
    return f"known are {join_words(known)}"


def suggest_near_word(word: str, known: Sequence[str]) -> str:
    """Return "did you mean ...?" with the known word nearest to `word`, or an empty text if none is near."""
    suggestion = suggest_word(word, known)
    return suggestion if suggestion.endswith("?") else ""


def join_words(words: Iterable[object]) -> str:
    """Return the words with commas between them, cut after `MAX_SHOWN_WORDS`."""
    shown = [str(word) for word in itertools.islice(words, MAX_SHOWN_WORDS + 1)]
    return ", ".join(shown if len(shown) <= MAX_SHOWN_WORDS else [*shown[:-1], "..."])


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
