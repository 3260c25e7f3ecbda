"""Reading YAML files: the tree and its places, what is refused, limits."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.yaml_files.composer import MAX_DEPTH
from runner.yaml_files.errors import ErrorKind, YamlError
from runner.yaml_files.node import Node
from runner.yaml_files.reading import MAX_FILE_BYTES, parse_yaml, read_yaml


def simplify(node: Node) -> object:
    if isinstance(node.value, dict):
        return {key: simplify(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [simplify(child) for child in node.value]
    return node.value


def test_values_lists_and_mappings_become_a_tree() -> None:
    text = "a: 1\nb: [x, 'y', 2.5, true, null]\nc:\n  d: {e: f}\n"
    assert simplify(parse_yaml(text, "demo.yaml")) == {"a": 1, "b": ["x", "y", 2.5, True, None], "c": {"d": {"e": "f"}}}


def test_every_node_knows_its_line_and_key() -> None:
    root = parse_yaml(
        "# comment\naxes:\n  model:\n    - conv6\n    - resnet18\ninclude:\n- {mode: graph,\n   seed: 1}\n", "f"
    )
    assert isinstance(root.value, dict)
    axes, include = root.value["axes"], root.value["include"]
    assert isinstance(axes.value, dict)
    assert isinstance(include.value, list)
    entry = include.value[0]
    assert isinstance(entry.value, dict)
    models = axes.value["model"].value
    assert isinstance(models, list)
    found = [(node.key, node.line) for node in (axes, axes.value["model"], *models, entry, *entry.value.values())]
    assert found == [
        ("axes", 2),
        ("axes.model", 3),
        ("axes.model[0]", 4),
        ("axes.model[1]", 5),
        ("include[0]", 7),
        ("include[0].mode", 7),
        ("include[0].seed", 8),
    ]


def test_an_alias_is_its_value_at_the_place_where_it_is_used() -> None:
    root = parse_yaml("a: &sizes [1, 2]\nb: 0\nc: *sizes\n", "f")
    assert isinstance(root.value, dict)
    assert simplify(root) == {"a": [1, 2], "b": 0, "c": [1, 2]}
    assert (root.value["c"].key, root.value["c"].line) == ("c", 3)


def test_an_alias_in_a_list_has_the_line_where_it_is_used() -> None:
    root = parse_yaml("a: &x 1\nb:\n- 0\n- *x\n", "f")
    item = find(root, "b", 1)
    assert (item.value, item.key, item.line) == (1, "b[1]", 4)


def test_an_anchor_that_is_given_again_names_the_later_value() -> None:
    root = parse_yaml("a: &x 1\nb: *x\nc: &x [2]\nd: *x\n", "f")
    assert simplify(root) == {"a": 1, "b": 1, "c": [2], "d": [2]}


def find(node: Node, *parts: str | int) -> Node:
    for part in parts:
        child = node.find_child(part)
        assert child is not None
        node = child
    return node


def test_twenty_levels_are_read_and_one_more_is_not() -> None:
    parse_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH, "f")
    assert catch_error("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)).kind == ErrorKind.TOO_LARGE


def nest_aliases(num_levels: int) -> str:
    """Return a file whose last value has so many levels, the file's own included, by aliases alone."""
    lines = [f"a{level}: &a{level} [*a{level - 1}]\n" for level in range(1, num_levels - 2)]
    return "a0: &a0 [1]\n" + "".join(lines)


def test_levels_behind_aliases_count() -> None:
    parse_yaml(nest_aliases(MAX_DEPTH), "f")
    error = catch_error(nest_aliases(MAX_DEPTH + 1))
    assert (error.line, error.kind) == (MAX_DEPTH - 1, ErrorKind.TOO_LARGE)


def test_dates_and_exponents_without_a_point_stay_text() -> None:
    assert simplify(parse_yaml("a: 2024-13-45\nb: 1e3\nc: =\n", "f")) == {"a": "2024-13-45", "b": "1e3", "c": "="}


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert simplify(parse_yaml("\ufeffa: 1", "f")) == {"a": 1}


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)

# What is wrong: the text, the line and the key that the error names, its kind.
ERRORS = {
    "empty": ("", 1, "", ErrorKind.EMPTY),
    "only a comment": ("# nothing\n", 1, "", ErrorKind.EMPTY),
    "unclosed list": ("a: 1\nb: [1,\n", 3, "", ErrorKind.SYNTAX),
    "tab as indentation": ("a:\n\tb: 1\n", 2, "", ErrorKind.SYNTAX),
    "second colon": ("a: b: c\n", 1, "", ErrorKind.SYNTAX),
    "no YAML at all": ("a: 1\n}{ ]]\n", 2, "", ErrorKind.SYNTAX),
    "two documents": ("a: 1\n---\nb: 2\n", 2, "", ErrorKind.SECOND_DOCUMENT),
    "duplicate key": ("a: 1\nb: 2\na: 3\n", 3, "a", ErrorKind.DUPLICATE),
    "duplicate key in depth": ("a:\n  b: 1\n  'b': 2\n", 3, "a.b", ErrorKind.DUPLICATE),
    "merge key": ("a: &x {b: 1}\nc:\n  <<: *x\n", 3, "c.<<", ErrorKind.MERGE_KEY),
    "key that is a list": ("a: 1\n? [b]\n: 1\n", 2, "", ErrorKind.COMPLEX_KEY),
    "python tag": ("a: !!python/object:os.system x\n", 1, "a", ErrorKind.TAG),
    "python tag on a mapping": ("a: !!python/object/apply:os.system {}\n", 1, "a", ErrorKind.TAG),
    "tag on a key": ("!!python/name:os.system a: 1\n", 1, "", ErrorKind.TAG),
    "own tag": ("a: !mine 1\n", 1, "a", ErrorKind.TAG),
    "core tag": ("a: !!bool nonsense\n", 1, "a", ErrorKind.TAG),
    "alias without anchor": ("a: *b\n", 1, "a", ErrorKind.ALIAS),
    "recursive list": ("a: 1\nb: &b [1, *b]\n", 2, "b[1]", ErrorKind.ALIAS),
    "recursive mapping": ("&r a: 1\nb: &m {c: {d: *m}}\n", 2, "b.c.d", ErrorKind.ALIAS),
    "exploding aliases": (LAUGHS, 6, "a5[1]", ErrorKind.TOO_LARGE),
    "octal": ("a: 010\n", 1, "a", ErrorKind.NUMBER),
    "base 60": ("a: 1:30\n", 1, "a", ErrorKind.NUMBER),
    "base 60 with a point": ("a: 1:30.5\n", 1, "a", ErrorKind.NUMBER),
    "empty binary": ("a: 0b_\n", 1, "a", ErrorKind.NUMBER),
    "more digits than Python converts": ("a: " + "9" * 5000, 1, "a", ErrorKind.NUMBER),
    "escape beyond Unicode": ('\na: "\\UFFFFFFFF"\n', 2, "", ErrorKind.SYNTAX),
    "control character": ("a: 1\nb: \x00\n", 2, "", ErrorKind.SYNTAX),
    "nested lists": ("[" * 100_000, 1, "", ErrorKind.TOO_LARGE),
    "nested mappings": ("{a: " * 100, 1, "", ErrorKind.TOO_LARGE),
}


def catch_error(text: str) -> YamlError:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text, "demo.yaml")
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(("text", "line", "key", "kind"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_file_line_and_key(text: str, line: int, key: str, kind: ErrorKind) -> None:
    error = catch_error(text)
    assert (error.file, error.line, error.key, error.kind) == ("demo.yaml", line, key, kind)


def test_a_long_text_is_cut_in_the_message() -> None:
    assert len(str(catch_error("a: *" + "b" * 10_000))) < 200


def make_missing(path: Path) -> None:
    """Leave the file out."""


def make_loop(path: Path) -> None:
    """Make the one file that root cannot open either."""
    path.symlink_to(path)


FILES: dict[str, tuple[Callable[[Path], object], int | None, ErrorKind]] = {
    "missing": (make_missing, None, ErrorKind.NOT_FOUND),
    "directory": (Path.mkdir, None, ErrorKind.UNREADABLE),
    "cannot be opened": (make_loop, None, ErrorKind.UNREADABLE),
    "latin-1": (lambda path: path.write_bytes("a: 1\nb: Größe\n".encode("latin-1")), 2, ErrorKind.UNREADABLE),
    "utf-16": (lambda path: path.write_bytes("a: 1\n".encode("utf-16")), 1, ErrorKind.UNREADABLE),
    "utf-32": (lambda path: path.write_bytes("a: 1\n".encode("utf-32")), 1, ErrorKind.UNREADABLE),
    "binary": (lambda path: path.write_bytes(b"\x7fELF\x02\x01\x01\x00\x00\x00"), 1, ErrorKind.SYNTAX),
    "one byte too large": (
        lambda path: path.write_text("a: 1\n" + "#" * (MAX_FILE_BYTES - 4)),
        None,
        ErrorKind.TOO_LARGE,
    ),
}


@pytest.mark.parametrize(("make", "line", "kind"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_read_is_named_as_the_user_knows_it(
    tmp_path: Path, make: Callable[[Path], object], line: int | None, kind: ErrorKind
) -> None:
    make(tmp_path / "demo.yaml")
    with pytest.raises(YamlError) as caught:
        read_yaml(tmp_path / "demo.yaml", "shown.yaml")
    error = caught.value
    assert (error.file, error.line, error.key, error.kind) == ("shown.yaml", line, "", kind)


def test_a_file_at_the_size_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("a: 1\n" + "#" * (MAX_FILE_BYTES - 5))
    assert simplify(read_yaml(path, "shown")) == {"a": 1}


YAML_LIKE = st.text(st.sampled_from(list("ab01.:-,&*!%|>'\"\\#?@[]{}<=~ \n\tU\x00\ud800é")), max_size=60)


def parse_or_refuse(text: str) -> Node | YamlError:
    try:
        return parse_yaml(text, "demo.yaml")
    except YamlError as error:
        return error


@given(YAML_LIKE | st.text(max_size=60))
def test_any_text_gives_a_tree_or_one_line(text: str) -> None:
    outcome = parse_or_refuse(text)
    assert isinstance(outcome, Node) or (outcome.file == "demo.yaml" and outcome.line is not None)
    assert isinstance(outcome, Node) or len(str(outcome).splitlines()) == 1
