"""A YAML file goes in, the tree of its values comes out, each value with the file, line and key that it stands at.

Only plain values are read: no tags, no merge keys, one document. Built from PyYAML's events, so that an alias shares
the value it names and nothing is ever expanded.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import yaml

from bench.errors import UserError

MAX_FILE_BYTES = 1024 * 1024
MAX_NODES = 250_000
"""Values in a file, those behind an alias counted each time it is used."""
MAX_DEPTH = 20
"""Levels of lists and mappings; a matrix has four, a profile seven."""
MAX_SHOWN_CHARACTERS = 60
"""Of a value quoted in a message."""
EXPECTED_MATRIX = "a matrix; give it at least the keys 'name' and 'axes'"

_PREFIX = "tag:yaml.org,2002:"
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECIMAL_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")

Scalar = str | int | float | bool | None
Value = Scalar | list["Node"] | dict[str, "Node"]
T = TypeVar("T")
_ValueEvent = yaml.ScalarEvent | yaml.CollectionStartEvent


@dataclass(frozen=True, kw_only=True)
class Node:
    """One value of a file and where it stands."""

    value: Value
    text: str
    """A scalar as written, without quotes; empty for lists and mappings."""
    is_quoted: bool
    source: str
    """The file, as shown to the user."""
    line: int
    """Counted from 1: the line of the key in a mapping, of the item in a list."""
    key: str
    """The way to the value from the top, as in `include[0].mode`; empty at the top."""

    def fault(self, message: str, *, key: str | None = None) -> UserError:
        """Return the error `FILE:LINE: KEY: message`; `key` replaces the node's own."""
        return make_fault(self.source, self.line, self.key if key is None else key, message)


def read_yaml(path: Path, source: str, *, expected: str = EXPECTED_MATRIX) -> Node:
    """Return the tree of the one YAML document in `path`; UserError where there is none that can be read.

    `source` is the file's name in messages; `expected` what an empty file should hold.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise UserError(f"{source}: there is no such file; give the path of a YAML file") from None
    except IsADirectoryError:
        raise UserError(f"{source}: is a directory; give the path of a YAML file in it") from None
    except OSError as error:
        raise UserError(f"{source}: cannot be read: {error.strerror}; give a file that can be opened") from None
    if len(content) > MAX_FILE_BYTES:
        raise UserError(f"{source}: is larger than {MAX_FILE_BYTES:,} bytes, the limit; split the file")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise make_fault(source, line, "", "is not UTF-8 text; give a YAML file and save it as UTF-8") from None
    return parse_yaml(text, source, expected=expected)


def parse_yaml(text: str, source: str, *, expected: str = EXPECTED_MATRIX) -> Node:
    """Return the tree of the one YAML document in `text`; UserError where it is no such document."""
    return _TreeBuilder(text, source, expected).build_document()


def make_fault(source: str, line: int, key: str, message: str) -> UserError:
    """Return the error `FILE:LINE: KEY: message`."""
    return UserError(f"{source}:{line}: {key}: {message}" if key else f"{source}:{line}: {message}")


def quote(text: str) -> str:
    """Return `text` in quotes for a message: one line, no control characters, cut where it is long."""
    return repr(text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "...")


class _TreeBuilder:
    """Builds the tree of one document from the events of PyYAML's parser."""

    def __init__(self, text: str, source: str, expected: str) -> None:
        self.source = source
        self.expected = expected
        self.text = text
        self.loader: yaml.SafeLoader = self._guard(lambda: yaml.SafeLoader(text))
        self._resolve: Callable[[type[yaml.Node], str, tuple[bool, bool]], str] = self.loader.resolve
        self.num_nodes = 0
        # By anchor: the node and how many values it stands for; None while it is being built.
        self.anchors: dict[str, tuple[Node, int] | None] = {}

    def build_document(self) -> Node:
        """Return the root of the document; UserError where the file holds none or several."""
        self._next_event()  # start of the stream
        start = self._next_event()
        if isinstance(start, yaml.StreamEndEvent):
            raise make_fault(self.source, 1, "", f"the file is empty, expected {self.expected}")
        root = self._build_node(self._next_event(), key="", depth=1)
        self._next_event()  # end of the document
        after = self._next_event()
        if isinstance(after, yaml.DocumentStartEvent):
            raise self._fault_at(after, "", "a second document starts; a file holds one document, remove '---'")
        return root

    def _build_node(self, event: yaml.Event, *, key: str, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._follow_alias(event, key)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)  # no other event starts a value
        if depth > MAX_DEPTH:
            raise self._fault_at(event, key, f"nested more than {MAX_DEPTH} levels deep; write it flatter")
        if event.tag is not None:
            message = f"found the tag {quote(event.tag)}, expected a value without a tag; remove the tag"
            raise self._fault_at(event, key, message)
        num_before = self.num_nodes
        self._count_nodes(event, key, 1)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        node = Node(
            value=self._build_value(event, key, depth),
            text=event.value if isinstance(event, yaml.ScalarEvent) else "",
            is_quoted=isinstance(event, yaml.ScalarEvent) and event.style is not None,
            source=self.source,
            line=_line_of(event),
            key=key,
        )
        if event.anchor is not None:
            self.anchors[event.anchor] = (node, self.num_nodes - num_before)
        return node

    def _build_value(self, event: _ValueEvent, key: str, depth: int) -> Value:
        if isinstance(event, yaml.ScalarEvent):
            return self._read_scalar(event, key)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._build_items(key, depth)
        return self._build_entries(key, depth)

    def _build_items(self, key: str, depth: int) -> list[Node]:
        items: list[Node] = []
        while not isinstance(event := self._next_event(), yaml.SequenceEndEvent):
            items.append(self._build_node(event, key=f"{key}[{len(items)}]", depth=depth + 1))
        return items

    def _build_entries(self, key: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while not isinstance(event := self._next_event(), yaml.MappingEndEvent):
            name = self._read_key(event, key, depth)
            line, path = _line_of(event), _join_keys(key, name)
            if name in entries:
                message = f"the key stands twice, first in line {entries[name].line}; keep one of the two"
                raise make_fault(self.source, line, path, message)
            entries[name] = replace(self._build_node(self._next_event(), key=path, depth=depth + 1), line=line)
        return entries

    def _read_key(self, event: yaml.Event, parent: str, depth: int) -> str:
        node = self._build_node(event, key=parent, depth=depth + 1)
        if isinstance(node.value, list | dict):
            raise self._fault_at(event, parent, "found a list or mapping as a key; a key is one word")
        if node.text == "<<" and not node.is_quoted:
            message = (
                "merge keys are not read; write the keys out, or, in a matrix, put what is shared under 'defaults'"
            )
            raise self._fault_at(event, _join_keys(parent, "<<"), message)
        return node.text

    def _follow_alias(self, event: yaml.AliasEvent, key: str) -> Node:
        assert event.anchor is not None  # the grammar gives every alias a name
        name = quote("*" + event.anchor)
        if event.anchor not in self.anchors:
            message = f"the alias {name} has no anchor before it; write the value out"
            raise self._fault_at(event, key, message)
        anchored = self.anchors[event.anchor]
        if anchored is None:
            message = f"the alias {name} stands inside its own anchor; write the value out"
            raise self._fault_at(event, key, message)
        node, num_nodes = anchored
        self._count_nodes(event, key, num_nodes)
        return replace(node, line=_line_of(event), key=key)

    def _read_scalar(self, event: yaml.ScalarEvent, key: str) -> Scalar:
        if _SURROGATE.search(event.value):
            message = f"found half a character in {quote(event.value)}; write the character itself, no \\u escapes"
            raise self._fault_at(event, key, message)
        tag = self._resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag in (_PREFIX + "int", _PREFIX + "float"):
            return self._read_number(event, key, tag)
        if tag in (_PREFIX + "bool", _PREFIX + "null"):
            value: bool | None = self.loader.construct_object(yaml.ScalarNode(tag, event.value))
            return value
        return event.value

    def _read_number(self, event: yaml.ScalarEvent, key: str, tag: str) -> int | float:
        """What YAML 1.1 reads in base 2, 8, 16 or 60 (`010` is 8, `1:30` is 90) is refused: mostly a slip."""
        is_decimal = ":" not in event.value if tag == _PREFIX + "float" else _DECIMAL_INTEGER.fullmatch(event.value)
        if not is_decimal:
            message = f"found {quote(event.value)}, which YAML 1.1 does not read as a decimal number"
            raise self._fault_at(event, key, f"{message}; write it without leading zeros, prefix or colon, or quote it")
        try:
            number: int | float = self.loader.construct_object(yaml.ScalarNode(tag, event.value))
        except ValueError:  # more digits than Python converts
            message = f"found the number {quote(event.value)} of {len(event.value)} digits; write a smaller one"
            raise self._fault_at(event, key, message) from None
        return number

    def _count_nodes(self, event: yaml.Event, key: str, num_nodes: int) -> None:
        self.num_nodes += num_nodes
        if self.num_nodes > MAX_NODES:
            message = f"more than {MAX_NODES:,} values, each alias counted with all that it names; write less"
            raise self._fault_at(event, key, message)

    def _next_event(self) -> yaml.Event:
        event: yaml.Event = self._guard(self.loader.get_event)
        return event

    def _fault_at(self, event: yaml.Event, key: str, message: str) -> UserError:
        return make_fault(self.source, _line_of(event), key, message)

    def _guard(self, read: Callable[[], T]) -> T:
        """Call PyYAML's scanner and parser; what they refuse becomes one line."""
        try:
            return read()
        except yaml.MarkedYAMLError as error:
            line = 1 if error.problem_mark is None else error.problem_mark.line + 1
            is_tab = "'\\t'" in str(error.problem)
            mend = "indent with spaces" if is_tab else "mend the syntax there or in the line above"
            message = f"is not YAML: {error.problem}; {mend}"
            raise make_fault(self.source, line, "", message) from None
        except yaml.reader.ReaderError as error:
            line = self.text.count("\n", 0, error.position) + 1
            message = f"is not YAML: it holds the character U+{error.character:04X}; give a text file"
            raise make_fault(self.source, line, "", message) from None
        except (ValueError, OverflowError):  # from int() and chr() on an overlong version or escape
            line = self.loader.line + 1
            message = "is not YAML: a number is out of range; mend the escape or directive there"
            raise make_fault(self.source, line, "", message) from None


def _line_of(event: yaml.Event) -> int:
    assert event.start_mark is not None  # PyYAML's parser sets it
    return event.start_mark.line + 1


def _join_keys(parent: str, name: str) -> str:
    shown = name if re.fullmatch(r"[\w<-]{1,60}", name) else quote(name)
    return f"{parent}.{shown}" if parent else shown
