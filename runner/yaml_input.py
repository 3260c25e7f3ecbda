"""YAML files of users: every value with its file, line and key, and errors that name them.

An error reads `FILE:LINE: KEY: found, expected; remedy`. A file holds one document, in which a key stands once.
"""

import difflib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from bench.errors import UserError
from bench.schema.document import SMALLEST_POSITIVE
from collector.files import explain_unread, read_input

MAX_SHOWN_CHARACTERS, MAX_SHOWN_WORDS = 60, 20
"""How much of a value a message quotes, and how many values it lists."""
PERCENT_PATTERN = r"^[0-9]+(\.[0-9]+)? *%$"
_PATTERNS = {
    r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$": "a name of a-z, 0-9 and '-' (no '-' at its ends, at most 63 characters)",
    PERCENT_PATTERN: "a share in percent, such as 2%",
    r"^[A-Z]{3}$": "a currency as three capital letters, such as USD",
}
"""What stands behind "expected" instead of a pattern of a text."""
_WORDS = {"a valid array": "a list", "an object": "keys with values", "a valid string": "a text"}
"""Instead of JSON's words."""
T = TypeVar("T")


class YamlError(UserError):
    """An error in a YAML file, shown as `FILE:LINE: KEY: message`; without the line where the file cannot be read."""

    def __init__(self, message: str, *, file: str, line: int | None = None, key: str = "") -> None:
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {key}: {message}" if key else f"{place}: {message}")
        self.message, self.file, self.line, self.key = message, file, line, key


Value = str | int | float | bool | None | list["Node"] | dict[str, "Node"]


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

    @property
    def children(self) -> Mapping[Any, "Node"]:
        """The values of a mapping by their keys, of a list by their numbers; none of a scalar."""
        if isinstance(self.value, dict):
            return self.value
        return dict(enumerate(self.value)) if isinstance(self.value, list) else {}

    def find_nearest(self, path: str) -> "Node":
        """Return the value at a path such as `a.b[0].c`, or the nearest above it that exists."""
        children = {f"[{name}]" if isinstance(name, int) else name: child for name, child in self.children.items()}
        found = [name for name in children if path.startswith(name) and path[len(name) :][:1] in ("", ".", "[")]
        if not found:
            return self
        name = max(found, key=len)
        return children[name].find_nearest(path[len(name) :].removeprefix("."))


def read_yaml(path: Path, file: str, *, expected: str) -> Node:
    """Return the tree of the YAML document in `path`; messages name it `file`, and say what is `expected` in it."""
    try:
        content = read_input(path)
    except OSError as error:
        raise YamlError(f"{explain_unread(error)}; give the path of a YAML file", file=file) from None
    return parse_yaml(content, file, expected=expected)


_SCALARS = {
    "tag:yaml.org,2002:null": r"~|null|Null|NULL|",
    "tag:yaml.org,2002:bool": r"true|True|TRUE|false|False|FALSE",
    "tag:yaml.org,2002:int": r"[-+]?(0|[1-9][0-9_]*)",
    "tag:yaml.org,2002:float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
}


class _Loader(yaml.SafeLoader):
    """Reads words as YAML 1.2 does: `on` and `1:30` are texts, `1e3` is a number."""

    yaml_implicit_resolvers = {None: [(tag, re.compile(f"(?:{words})$")) for tag, words in _SCALARS.items()]}  # noqa: RUF012


def parse_yaml(content: bytes, file: str, *, expected: str) -> Node:
    """Return the tree of the one YAML document in `content`, a mapping; YamlError if it is no such document."""
    line = 1
    try:
        root = yaml.compose(content, Loader=_Loader)
        if isinstance(root, yaml.MappingNode):
            return _build(root, file, "")
        message = f"{'the file is empty' if root is None else 'found no keys'}, expected {expected}"
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        said = " ".join(filter(None, [error.context, error.problem]))
        message = f"is not YAML: {said}; fix the syntax there or in the line above"
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
        if node.tag not in (*_SCALARS, "tag:yaml.org,2002:str"):
            raise place.error(f"found the tag {quote(node.tag)}; leave it out")
        try:
            value: Value = _Loader("").construct_object(node)
        except (ValueError, KeyError):
            raise place.error(f"found {quote(node.value)}, which is not what its tag says; leave the tag out") from None
        return replace(place, value=value, text=node.value)
    entries: dict[str, Node] = {}
    for key_node, value_node in node.value:
        name = replace(place, line=key_node.start_mark.line + 1)
        if not isinstance(key_node, yaml.ScalarNode):
            raise name.error("found a list or mapping as a key; a key is one word")
        word = key_node.value
        shown = word if re.fullmatch(r"[\w<-]{1,60}", word) else quote(word)
        path = f"{key}.{shown}" if key else shown
        if word in entries:
            raise name.error(f"the key stands twice, first in line {entries[word].line}; keep one of the two", key=path)
        entries[word] = replace(_build(value_node, file, path), line=name.line)
    return replace(place, value=entries)


def validate(node: Node, adapter: TypeAdapter[T], documentation: str, *, keeps_null: bool = False) -> T:
    """Return the value of a node, and all that is below it, checked; YamlError for the first error in it.

    `documentation`: the page that lists the keys. `keeps_null`: a key with null has that value, and is not as if it
    were not there.
    """
    try:
        return adapter.validate_json(json.dumps(_to_plain(node, keeps_null)))
    except ValidationError as found:
        error: Any = found.errors(include_url=False)[0]
    loc, kind, context = error["loc"], error["type"], error.get("ctx", {})
    rest = list(loc)
    while rest and rest[0] in node.children:
        node, rest = node.children[rest[0]], rest[1:]
    if kind == "extra_forbidden":
        raise node.error(f"unknown key; {suggest_word(str(loc[-1]), _list_keys(adapter.json_schema(), loc[:-1]))}")
    if kind == "missing":
        key = ".".join(filter(None, [node.key, *map(str, rest)]))
        raise node.error(f"is missing; {documentation} says what it takes", key=key)
    reason = str(context["error"]) if kind == "value_error" else ""
    if reason and not reason.startswith("expected "):
        part, colon, words = reason.partition(": ")  # of a whole: it begins with the key of what is wrong
        key = f"{node.key}.{part}".removeprefix(".")
        raise node.find_nearest(part).error(words, key=key) if colon else node.error(part)
    if "pattern" in context:
        expected = _PATTERNS.get(context["pattern"], "a text of other characters")
    elif context.get("ge") == SMALLEST_POSITIVE:
        expected = "above 0"
    else:  # pydantic says "Input should be ...", "List should have ..."
        words = (reason or error["msg"].partition(" should ")[2]).partition(" ")[2]
        expected = _WORDS.get(words, words).replace(" after validation", "")
    choices = re.findall(r"'([^']*)'", expected) if kind == "literal_error" else []
    found_value, word = describe_found(node), node.text
    if rest == ["[key]"]:  # what pydantic writes behind a key that is refused itself
        word = str(loc[-2])
        found_value = f"the key {word if choices and word.isidentifier() else quote(word)}"
    advice = suggest_near_word(word, choices) if choices and word else ""
    raise node.error(f"found {found_value}, expected {expected}" + (f"; {advice}" if advice else ""))


def _list_keys(schema: Any, loc: Sequence[str | int]) -> list[str]:
    """Return the keys that the mapping at `loc`, a place as pydantic writes it, takes."""

    def resolve(part: Any) -> Any:
        found = next((option for option in part.get("anyOf", ()) if option.get("type") != "null"), part)
        return schema["$defs"][found["$ref"].rpartition("/")[2]] if "$ref" in found else found

    found = resolve(schema)
    for part in loc:
        others: Any = found.get("additionalProperties") or next(iter(found.get("patternProperties", {}).values()), {})
        found = resolve(found["items"] if isinstance(part, int) else found.get("properties", {}).get(part, others))
    return list(found.get("properties", ()))


def _to_plain(node: Node, keeps_null: bool) -> Any:
    if isinstance(node.value, dict):
        items = node.value.items()
        return {key: _to_plain(child, keeps_null) for key, child in items if keeps_null or child.value is not None}
    return [_to_plain(child, keeps_null) for child in node.value] if isinstance(node.value, list) else node.value


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
    """As suggest_word, but an empty text if no word is near."""
    suggestion = suggest_word(word, known)
    return suggestion if suggestion.endswith("?") else ""


def join_words(words: Iterable[object]) -> str:
    shown = [str(word) for word in itertools.islice(words, MAX_SHOWN_WORDS + 1)]
    return ", ".join(shown if len(shown) <= MAX_SHOWN_WORDS else [*shown[:-1], "..."])


def describe_found(node: Node) -> str:
    """Return the value in the file, as the words after "found"."""
    words = {
        dict: "a mapping",
        list: "a list",
        type(None): f"nothing (`{node.text}`)" if node.text else "nothing",
        bool: f"`{node.text}`",
        str: f"the text {quote(node.text)}",
    }
    return words.get(type(node.value), f"the number {node.text[:MAX_SHOWN_CHARACTERS]}")
