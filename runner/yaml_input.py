"""YAML files of users: every value with its file, line and key, and errors that name them.

An error reads `FILE:LINE: KEY: found, expected; remedy`. One document, in which a key stands once; numbers are decimal.
"""

import difflib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from bench.errors import UserError
from bench.schema.document import SMALLEST_POSITIVE
from collector.files import explain_unread, read_input

MAX_SHOWN_CHARACTERS = 60
"""How much of a value a message quotes."""
MAX_SHOWN_WORDS = 20
"""How many values a message lists."""
EXPECTED_MATRIX = "a matrix; give it at least the keys 'name' and 'axes'"
KEY_MARK = "[key]"
"""What pydantic writes behind the key of a mapping if the key itself is refused."""

_PATTERNS = {
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$": "a name of a-z, 0-9 and '-' (no '-' at its ends, at most 63 characters)",
    r"^[A-Z]{3}$": "a currency as three capital letters, such as USD",
}
"""What stands behind "expected" instead of a pattern of a text."""
_WORDS = {"a valid array": "a list", "an object": "keys with values", "a valid string": "a text"}
"""Instead of JSON's words."""
_PREFIX = "tag:yaml.org,2002:"
_DECIMAL_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
T = TypeVar("T")
Schema = Mapping[str, Any]


class YamlError(UserError):
    """An error in a YAML file, shown as `FILE:LINE: KEY: message`; without the line where the file cannot be read."""

    def __init__(self, message: str, *, file: str, line: int | None = None, key: str = "") -> None:
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {key}: {message}" if key else f"{place}: {message}")
        self.message, self.file, self.line, self.key = message, file, line, key


class ExpectedError(ValueError):
    """A text is not what belongs in its place. The message says what does, after the word "expected"."""


Scalar = str | int | float | bool | None
Value = Scalar | list["Node"] | dict[str, "Node"]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One value of a file and where it stands."""

    value: Value
    text: str
    """A scalar as written, without quotes; empty for lists and mappings."""
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

    def list_keys(self) -> list[str]:
        return list(self.value) if isinstance(self.value, dict) else []

    def list_children(self) -> list["Node"]:
        """Return the values of a mapping or a list, in their order; none of a scalar."""
        if isinstance(self.value, dict):
            return list(self.value.values())
        return self.value if isinstance(self.value, list) else []

    def find_nearest(self, path: str) -> "Node":
        """Return the value at a path such as `a.b[0].c`, or the nearest above it that exists."""
        children: dict[str, Node] = self.value if isinstance(self.value, dict) else {}
        if isinstance(self.value, list):
            children = {f"[{number}]": child for number, child in enumerate(self.value)}
        found = [part for part in children if path.startswith(part) and path[len(part) :][:1] in ("", ".", "[")]
        if not found:
            return self
        part = max(found, key=len)
        return children[part].find_nearest(path[len(part) :].removeprefix("."))


def read_yaml(path: Path, file: str, *, expected: str = EXPECTED_MATRIX) -> Node:
    """Return the tree of the one YAML document in `path`; YamlError if it cannot be read.

    `file` is the file's name in messages; `expected` what an empty file should hold.
    """
    return parse_yaml(read_bytes(path, file, file_format="YAML"), file, expected=expected)


def read_bytes(path: Path, file: str, *, file_format: str) -> bytes:
    """Return what a user's file holds; YamlError, which asks for a file of this format, if it cannot be read."""
    try:
        return read_input(path)
    except OSError as error:
        raise YamlError(f"{explain_unread(error)}; give the path of a {file_format} file", file=file) from None


def parse_yaml(content: bytes | str, file: str, *, expected: str = EXPECTED_MATRIX) -> Node:
    """Return the tree of the one YAML document in `content`; YamlError if it is no such document."""
    content = content.encode() if isinstance(content, str) else content
    line = 1
    try:
        root = yaml.compose(content, Loader=yaml.SafeLoader)
        if root is not None:
            return _build(root, file, "")
        message = f"the file is empty, expected {expected}"
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        hint = "indent with spaces" if "'\\t'" in str(error.problem) else "fix the syntax there or in the line above"
        message = f"is not YAML: {error.problem}; {hint}"
        if "another document" in str(error.problem):
            message = "a second document starts; a file holds one document, remove '---'"
    except yaml.reader.ReaderError as error:
        line = content.count(b"\n", 0, error.position) + 1
        message = "is not UTF-8 text; give a YAML file and save it as UTF-8"
    except (RecursionError, ValueError, OverflowError):  # the latter from a number or escape of many digits
        message = "is nested too deep, an alias is inside its own anchor, or a number has too many digits"
    raise YamlError(message, file=file, line=line)


def _build(node: yaml.Node, file: str, key: str) -> Node:
    """Return the tree below a node of PyYAML's, `key` being its place."""
    assert node.start_mark is not None  # PyYAML's parser sets it
    place = Node(value=None, text="", file=file, line=node.start_mark.line + 1, key=key)
    if isinstance(node, yaml.SequenceNode):
        return replace(place, value=[_build(item, file, f"{key}[{index}]") for index, item in enumerate(node.value)])
    if isinstance(node, yaml.ScalarNode):
        return replace(place, value=_read_scalar(node, place), text=node.value)
    entries: dict[str, Node] = {}
    for key_node, value_node in node.value:
        name = replace(place, line=key_node.start_mark.line + 1)
        if not isinstance(key_node, yaml.ScalarNode):
            raise name.error("found a list or mapping as a key; a key is one word")
        path = join_keys(key, key_node.value)
        if key_node.value in entries:
            first = entries[key_node.value].line
            raise name.error(f"the key stands twice, first in line {first}; keep one of the two", key=path)
        entries[key_node.value] = replace(_build(value_node, file, path), line=name.line)
    return replace(place, value=entries)


def _read_scalar(node: yaml.ScalarNode, place: Node) -> Scalar:
    """Return a value; refuse numbers that YAML 1.1 reads in base 2, 8, 16 or 60 (`010` is 8, `1:30` is 90)."""
    kind = node.tag.removeprefix(_PREFIX)
    if (kind == "int" and not _DECIMAL_INTEGER.fullmatch(node.value)) or (kind == "float" and ":" in node.value):
        message = f"found {quote(node.value)}, which YAML 1.1 does not read as a decimal number"
        raise place.error(f"{message}; write it without leading zeros, prefix or colon, or quote it")
    is_text = node.tag.startswith(_PREFIX) and kind not in ("int", "float", "bool", "null")
    value: Scalar = node.value if is_text else yaml.SafeLoader("").construct_object(node)
    return value


def join_keys(parent: str, name: str) -> str:
    """Return the key path of an entry, its name quoted if it is not a plain word."""
    shown = name if re.fullmatch(r"[\w<-]{1,60}", name) else quote(name)
    return f"{parent}.{shown}" if parent else shown


@dataclass(frozen=True)
class NodeValidator(Generic[T]):
    """Checks the value of a node, and all that is below it, against a type."""

    adapter: TypeAdapter[T]
    documentation: str = ""
    """The page that lists the keys, for messages."""
    keeps_null: bool = False
    """Whether a key with null has that value, and is not as if it were not there."""

    @cached_property
    def _schema(self) -> Schema:
        return self.adapter.json_schema()

    def validate(self, node: Node) -> T:
        """Return the checked value; YamlError for the first error in it."""
        try:
            return self.adapter.validate_json(json.dumps(_to_plain(node, self.keeps_null)))
        except ValidationError as error:
            raise self._explain(node, error.errors(include_url=False)[0]) from None

    def _explain(self, node: Node, error: Any) -> YamlError:
        loc, kind, context = [*error["loc"]], error["type"], error.get("ctx", {})
        rest = list(loc)
        while rest and (child := node.find_child(rest[0])) is not None:
            node, rest = child, rest[1:]
        reason = context["error"] if kind == "value_error" else None
        if kind == "extra_forbidden":
            return unknown_key_error(node, str(loc[-1]), _list_keys(self._schema, loc[:-1]))
        if kind == "missing":
            key = ".".join(filter(None, [node.key, *map(str, rest)]))
            return node.error(f"is missing; {self.documentation} says what it takes", key=key)
        if reason is not None and not isinstance(reason, ExpectedError):
            return _point_at_part(node, str(reason))
        if "pattern" in context:
            expected = _PATTERNS.get(context["pattern"], "a text of other characters")
        elif context.get("ge") == SMALLEST_POSITIVE:
            expected = "above 0"
        else:  # pydantic says "Input should be ...", "List should have ..."
            words = str(reason or error["msg"].partition(" should ")[2].partition(" ")[2])
            expected = _WORDS.get(words, words).replace(" after validation", "")
        choices = re.findall(r"'([^']*)'", expected) if kind == "literal_error" else []
        found, word = describe_found(node), node.text
        if rest == [KEY_MARK]:
            word = str(loc[-2])
            found = f"the key {word if choices and word.isidentifier() else quote(word)}"
        advice = suggest_near_word(word, choices) if choices and word else ""
        return node.error(f"found {found}, expected {expected}" + (f"; {advice}" if advice else ""))


def _to_plain(node: Node, keeps_null: bool) -> Any:
    if isinstance(node.value, dict):
        items = node.value.items()
        return {key: _to_plain(child, keeps_null) for key, child in items if keeps_null or child.value is not None}
    return [_to_plain(child, keeps_null) for child in node.value] if isinstance(node.value, list) else node.value


def unknown_key_error(node: Node, word: str, known: list[str]) -> YamlError:
    """Return the error for a value whose key is none of the known ones."""
    return node.error(f"unknown key; {suggest_word(word, known)}")


def _list_keys(schema: Schema, loc: Sequence[str | int]) -> list[str]:
    """Return the keys that the mapping at `loc`, a place as pydantic writes it, takes."""

    def resolve(part: Any) -> Schema:
        options = [option for option in part.get("anyOf", ()) if option.get("type") != "null"]
        found: Schema = options[0] if options else part
        return schema["$defs"][found["$ref"].rpartition("/")[2]] if "$ref" in found else found

    found = resolve(schema)
    for part in loc:
        others: Any = found.get("additionalProperties") or next(iter(found.get("patternProperties", {}).values()), {})
        found = resolve(found["items"] if isinstance(part, int) else found.get("properties", {}).get(part, others))
    return list(found.get("properties", ()))


def _point_at_part(node: Node, message: str) -> YamlError:
    """Return the error of a whole, whose message begins with the key of the part that has to be fixed."""
    part, colon, words = message.partition(": ")
    if not colon:  # of a value by itself
        return node.error(message)
    child = node.find_child(part)
    key = child.key if child is not None else f"{node.key}.{part}".removeprefix(".")
    return (child or node.find_nearest(part)).error(words, key=key)


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
