"""YAML text goes in; the tree, or one message with file and line, must come out."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UserError
from runner.yaml_files.composer import MAX_DEPTH
from runner.yaml_files.node import Node
from runner.yaml_files.reading import MAX_FILE_BYTES, parse_yaml, read_yaml


def simplify(node: Node) -> object:
    if isinstance(node.value, dict):
        return {key: simplify(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [simplify(child) for child in node.value]
    return node.value


def read_fault(text: str) -> str:
    with pytest.raises(UserError) as caught:
        parse_yaml(text, "demo.yaml")
    message = str(caught.value)
    assert "\n" not in message
    return message


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


def test_dates_and_exponents_without_a_point_stay_text() -> None:
    assert simplify(parse_yaml("a: 2024-13-45\nb: 1e3\nc: =\n", "f")) == {"a": "2024-13-45", "b": "1e3", "c": "="}


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert simplify(parse_yaml("\ufeffa: 1", "f")) == {"a": 1}


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)

FAULTS = [
    ("empty", "", 1, "the file is empty"),
    ("only a comment", "# nothing\n", 1, "the file is empty"),
    ("unclosed list", "a: 1\nb: [1,\n", 3, "is not YAML"),
    ("tab as indentation", "a:\n\tb: 1\n", 2, "indent with spaces"),
    ("second colon", "a: b: c\n", 1, "is not YAML: mapping values are not allowed here"),
    ("no YAML at all", "a: 1\n}{ ]]\n", 2, "is not YAML"),
    ("two documents", "a: 1\n---\nb: 2\n", 2, "a second document starts"),
    ("duplicate key", "a: 1\nb: 2\na: 3\n", 3, "a: the key stands twice, first in line 1"),
    ("duplicate key in depth", "a:\n  b: 1\n  'b': 2\n", 3, "a.b: the key stands twice, first in line 2"),
    ("merge key", "a: &x {b: 1}\nc:\n  <<: *x\n", 3, "c.<<: merge keys are not read"),
    ("key that is a list", "a: 1\n? [b]\n: 1\n", 2, "found a list or mapping as a key"),
    (
        "python tag",
        "a: !!python/object:os.system x\n",
        1,
        "a: found the tag 'tag:yaml.org,2002:python/object:os.system'",
    ),
    ("python tag on a mapping", "a: !!python/object/apply:os.system {}\n", 1, "a: found the tag"),
    ("tag on a key", "!!python/name:os.system a: 1\n", 1, "found the tag"),
    ("own tag", "a: !mine 1\n", 1, "a: found the tag '!mine'"),
    ("core tag", "a: !!bool nonsense\n", 1, "a: found the tag 'tag:yaml.org,2002:bool'"),
    ("alias without anchor", "a: *b\n", 1, "a: the alias '*b' has no anchor"),
    ("recursive list", "a: 1\nb: &b [1, *b]\n", 2, "b[1]: the alias '*b' stands inside its own anchor"),
    ("recursive mapping", "&r a: 1\nb: &m {c: {d: *m}}\n", 2, "b.c.d: the alias '*m' stands inside its own anchor"),
    ("exploding aliases", LAUGHS, 6, "more than 250,000 values"),
    ("octal", "a: 010\n", 1, "a: found '010', which YAML 1.1 does not read as a decimal number"),
    ("base 60", "a: 1:30\n", 1, "a: found '1:30', which"),
    ("base 60 with a point", "a: 1:30.5\n", 1, "a: found '1:30.5', which"),
    ("empty binary", "a: 0b_\n", 1, "a: found '0b_', which"),
    ("more digits than Python converts", "a: " + "9" * 5000, 1, "of 5000 digits; write a smaller one"),
    ("escape beyond Unicode", '\na: "\\UFFFFFFFF"\n', 2, "is not YAML: a number is out of range"),
    ("control character", "a: 1\nb: \x00\n", 2, "is not YAML: it holds the character U+0000"),
    ("nested lists", "[" * 100_000, 1, f"nested more than {MAX_DEPTH} levels deep"),
    ("nested mappings", "{a: " * 100, 1, f"nested more than {MAX_DEPTH} levels deep"),
]


@pytest.mark.parametrize(("text", "line", "words"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_a_fault_is_one_line_with_file_and_line(text: str, line: int, words: str) -> None:
    message = read_fault(text)
    assert message.startswith(f"demo.yaml:{line}: ")
    assert words in message


def test_a_long_text_is_cut_in_the_message() -> None:
    assert len(read_fault("a: *" + "b" * 10_000)) < 200


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^shown\.yaml: there is no such file; give the path of a YAML file$"):
        read_yaml(tmp_path / "none.yaml", "shown.yaml")


def test_a_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="^shown: is a directory;"):
        read_yaml(tmp_path, "shown")


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"  # the one refusal that root meets too
    loop.symlink_to(loop)
    with pytest.raises(UserError, match="^shown: cannot be read: Too many levels of symbolic links;"):
        read_yaml(loop, "shown")


def test_a_file_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: 1\nb: Größe\n".encode("latin-1"))
    with pytest.raises(UserError, match="^shown:2: is not UTF-8 text;"):
        read_yaml(path, "shown")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_unicode_encodings_are_refused(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "wide.yaml"
    path.write_bytes("a: 1\n".encode(encoding))
    with pytest.raises(UserError, match="^shown:1: is not UTF-8 text;"):
        read_yaml(path, "shown")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "image.yaml"
    path.write_bytes(b"\x7fELF\x02\x01\x01\x00\x00\x00")
    with pytest.raises(UserError, match=r"^shown:1: is not YAML: it holds the character U\+007F;"):
        read_yaml(path, "shown")


def test_a_file_above_the_size_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("a: 1\n" + "#" * (MAX_FILE_BYTES - 5))
    assert simplify(read_yaml(path, "shown")) == {"a": 1}
    path.write_text("a: 1\n" + "#" * (MAX_FILE_BYTES - 4))
    with pytest.raises(UserError, match="^shown: is larger than 1,048,576 bytes"):
        read_yaml(path, "shown")


YAML_LIKE = st.text(st.sampled_from(list("ab01.:-,&*!%|>'\"\\#?@[]{}<=~ \n\tU\x00\ud800é")), max_size=60)


def parse_or_refuse(text: str) -> Node | UserError:
    try:
        return parse_yaml(text, "demo.yaml")
    except UserError as error:
        return error


@given(YAML_LIKE | st.text(max_size=60))
def test_any_text_gives_a_tree_or_one_line(text: str) -> None:
    outcome = parse_or_refuse(text)
    assert isinstance(outcome, Node) or str(outcome).startswith("demo.yaml:")
    assert isinstance(outcome, Node) or 1 == len(str(outcome).splitlines())
