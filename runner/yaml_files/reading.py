"""Read YAML files that users write into trees whose values know their file, line and key.

Only plain values are read: no tags, no merge keys, one document. An alias shares the value that it names; nothing is
ever expanded.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import yaml

from bench.foreign_files import FileProblem, ForeignFileError, read_foreign_file
from runner.yaml_files.composer import MAX_DEPTH, MAX_NODES, AliasNode, Composer, LimitError, line_of
from runner.yaml_files.errors import ErrorKind, YamlError
from runner.yaml_files.node import Node, Scalar, Value, join_keys
from runner.yaml_files.wording import quote

MAX_FILE_BYTES = 1024 * 1024
EXPECTED_MATRIX = "a matrix; give it at least the keys 'name' and 'axes'"

_KINDS = {FileProblem.MISSING: ErrorKind.NOT_FOUND, FileProblem.TOO_LARGE: ErrorKind.TOO_LARGE}
_ADVICE = {
    FileProblem.MISSING: "give the path of a {format} file",
    FileProblem.DIRECTORY: "give the path of a {format} file in it",
    FileProblem.NOT_REGULAR: "give the path of a {format} file",
    FileProblem.TOO_LARGE: "split the file",
    FileProblem.UNREADABLE: "give a file that can be opened",
}
_PREFIX = "tag:yaml.org,2002:"
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECIMAL_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
T = TypeVar("T")


def read_yaml(path: Path, file: str, *, expected: str = EXPECTED_MATRIX) -> Node:
    """Return the tree of the one YAML document in `path`; YamlError if it cannot be read.

    `file` is the file's name in messages; `expected` what an empty file should hold.
    """
    content = read_bytes(path, file, file_format="YAML")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = "is not UTF-8 text; give a YAML file and save it as UTF-8"
        raise YamlError(message, kind=ErrorKind.UNREADABLE, file=file, line=line) from None
    return parse_yaml(text, file, expected=expected)


def parse_yaml(text: str, file: str, *, expected: str = EXPECTED_MATRIX) -> Node:
    """Return the tree of the one YAML document in `text`; YamlError if it is no such document."""
    composer, root = _compose(text, file)
    if root is None:
        raise YamlError(f"the file is empty, expected {expected}", kind=ErrorKind.EMPTY, file=file, line=1)
    return _TreeBuilder(composer, file).build(root, key="", depth=1)


def read_bytes(path: Path, file: str, *, file_format: str) -> bytes:
    """Return what a user's file holds; YamlError, which asks for a file of this format, if it cannot be read."""
    try:
        return read_foreign_file(path, max_bytes=MAX_FILE_BYTES)
    except ForeignFileError as error:
        kind = _KINDS.get(error.problem, ErrorKind.UNREADABLE)
        raise YamlError(f"{error}; {_ADVICE[error.problem].format(format=file_format)}", kind=kind, file=file) from None


def _compose(text: str, file: str) -> tuple[Composer, yaml.Node | None]:
    """Return PyYAML's nodes of the document; whatever PyYAML refuses becomes one YamlError."""
    composer = _guard(lambda: Composer(text), text, file, line=1)
    try:
        return composer, _guard(composer.get_single_node, text, file, line=lambda: composer.line + 1)
    except yaml.composer.ComposerError as error:  # aliases and anchors raise none in our composer
        message = "a second document starts; a file holds one document, remove '---'"
        raise YamlError(message, kind=ErrorKind.SECOND_DOCUMENT, file=file, line=_find_line(error)) from None
    except LimitError as error:
        raise YamlError(error.message, kind=ErrorKind.TOO_LARGE, file=file, line=error.line) from None


def _guard(read: Callable[[], T], text: str, file: str, line: int | Callable[[], int]) -> T:
    """Call PyYAML; what its reader, scanner and parser refuse becomes one line."""
    try:
        return read()
    except (yaml.scanner.ScannerError, yaml.parser.ParserError) as error:
        is_tab = "'\\t'" in str(error.problem)
        hint = "indent with spaces" if is_tab else "fix the syntax there or in the line above"
        found, place = f"{error.problem}; {hint}", _find_line(error)
    except yaml.reader.ReaderError as error:
        found = f"it holds the character U+{error.character:04X}; give a text file"
        place = text.count("\n", 0, error.position) + 1
    except (ValueError, OverflowError):  # from int() and chr() on an overlong version or escape
        found = "a number is out of range; fix the escape or directive there"
        place = line if isinstance(line, int) else line()
    raise YamlError(f"is not YAML: {found}", kind=ErrorKind.SYNTAX, file=file, line=place)


def _find_line(error: yaml.MarkedYAMLError) -> int:
    return 1 if error.problem_mark is None else error.problem_mark.line + 1


@dataclass(frozen=True, kw_only=True)
class _Built:
    """A finished part of the tree, which aliases may name."""

    node: Node
    num_values: int
    height: int


class _TreeBuilder:
    """Turns the nodes of PyYAML into a tree, and refuses what a file of ours must not hold."""

    def __init__(self, composer: Composer, file: str) -> None:
        self.composer = composer
        self.file = file
        self.num_values = 0
        self.deepest = 0
        self.built: dict[int, _Built | None] = {}
        """By `id` of PyYAML's node; None while it is being built."""

    def build(self, node: yaml.Node, *, key: str, depth: int) -> Node:
        """Return the tree below a node, `key` being its place."""
        if isinstance(node, AliasNode):
            return self._follow_alias(node, key, depth)
        tag = self.composer.explicit_tags.get(id(node))
        if tag is not None:
            message = f"found the tag {quote(tag)}, expected a value without a tag; remove the tag"
            raise self._error_at(node, key, ErrorKind.TAG, message)
        self.built[id(node)] = None
        num_before, deepest_before = self.num_values, self.deepest
        self.deepest = depth
        self._count(node, key, 1)
        made = Node(
            value=self._build_value(node, key, depth),
            text=node.value if isinstance(node, yaml.ScalarNode) else "",
            is_quoted=isinstance(node, yaml.ScalarNode) and node.style is not None,
            file=self.file,
            line=line_of(node),
            key=key,
        )
        self.built[id(node)] = _Built(
            node=made, num_values=self.num_values - num_before, height=self.deepest - depth + 1
        )
        self.deepest = max(self.deepest, deepest_before)
        return made

    def _build_value(self, node: yaml.Node, key: str, depth: int) -> Value:
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, key=f"{key}[{index}]", depth=depth + 1) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._build_entries(node, key, depth)
        assert isinstance(node, yaml.ScalarNode)  # there is no other kind
        return self._read_scalar(node, key)

    def _build_entries(self, node: yaml.MappingNode, key: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        for key_node, value_node in node.value:
            name = self._read_key(key_node, key, depth)
            line, path = line_of(key_node), join_keys(key, name)
            if name in entries:
                message = f"the key stands twice, first in line {entries[name].line}; keep one of the two"
                raise self._error_at(key_node, path, ErrorKind.DUPLICATE, message)
            entries[name] = replace(self.build(value_node, key=path, depth=depth + 1), line=line)
        return entries

    def _read_key(self, key_node: yaml.Node, parent: str, depth: int) -> str:
        node = self.build(key_node, key=parent, depth=depth + 1)
        if isinstance(node.value, list | dict):
            message = "found a list or mapping as a key; a key is one word"
            raise self._error_at(key_node, parent, ErrorKind.COMPLEX_KEY, message)
        if node.text == "<<" and not node.is_quoted:
            message = (
                "merge keys are not read; write the keys out, or, in a matrix, put what is shared under 'defaults'"
            )
            raise self._error_at(key_node, join_keys(parent, "<<"), ErrorKind.MERGE_KEY, message)
        return node.text

    def _follow_alias(self, alias: AliasNode, key: str, depth: int) -> Node:
        name = quote("*" + alias.name)
        if alias.target is None:
            message = f"the alias {name} has no anchor before it; write the value out"
            raise self._error_at(alias, key, ErrorKind.ALIAS, message)
        built = self.built[id(alias.target)]  # an anchor stands before its aliases, so it is being built at least
        if built is None:
            message = f"the alias {name} is inside its own anchor; write the value out"
            raise self._error_at(alias, key, ErrorKind.ALIAS, message)
        self._count(alias, key, built.num_values)
        self.deepest = max(self.deepest, depth + built.height - 1)
        if self.deepest > MAX_DEPTH:
            message = f"nested more than {MAX_DEPTH} levels deep with what the alias {name} names; write it flatter"
            raise self._error_at(alias, key, ErrorKind.TOO_LARGE, message)
        return replace(built.node, line=line_of(alias), key=key)

    def _read_scalar(self, node: yaml.ScalarNode, key: str) -> Scalar:
        if _SURROGATE.search(node.value):
            message = f"found half a character in {quote(node.value)}; write the character itself, no \\u escapes"
            raise self._error_at(node, key, ErrorKind.CHARACTER, message)
        if node.tag in (_PREFIX + "int", _PREFIX + "float"):
            return self._read_number(node, key)
        if node.tag in (_PREFIX + "bool", _PREFIX + "null"):
            value: bool | None = self.composer.construct_object(node)
            return value
        text: str = node.value
        return text

    def _read_number(self, node: yaml.ScalarNode, key: str) -> int | float:
        """Return a number; refuse what YAML 1.1 reads in base 2, 8, 16 or 60 (`010` is 8, `1:30` is 90)."""
        is_float = node.tag == _PREFIX + "float"
        is_decimal = ":" not in node.value if is_float else _DECIMAL_INTEGER.fullmatch(node.value)
        if not is_decimal:
            message = f"found {quote(node.value)}, which YAML 1.1 does not read as a decimal number"
            hint = "write it without leading zeros, prefix or colon, or quote it"
            raise self._error_at(node, key, ErrorKind.NUMBER, f"{message}; {hint}")
        try:
            number: int | float = self.composer.construct_object(node)
        except ValueError:  # more digits than Python converts
            message = f"found the number {quote(node.value)} of {len(node.value)} digits; write a smaller one"
            raise self._error_at(node, key, ErrorKind.NUMBER, message) from None
        return number

    def _count(self, node: yaml.Node, key: str, num_values: int) -> None:
        self.num_values += num_values
        if self.num_values > MAX_NODES:
            message = f"more than {MAX_NODES:,} values, each alias counted with all that it names; write less"
            raise self._error_at(node, key, ErrorKind.TOO_LARGE, message)

    def _error_at(self, node: yaml.Node, key: str, kind: ErrorKind, message: str) -> YamlError:
        return YamlError(message, kind=kind, file=self.file, line=line_of(node), key=key)
