"""Strategies that change valid documents: values swapped, taken away, doubled, made extreme; bytes cut and replaced."""

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

import yaml
from hypothesis import strategies as st

from fuzz.cases import Content, Special
from fuzz.markers import HTML, NUMBERS, RAW_NUMBERS, TEXTS, make_raw, nest

Path = tuple[str | int, ...]
Dump = Callable[[Any], bytes]
TreeStrategy = st.SearchStrategy[Any]

# Copies, since a later change of the same document may change them: a case could not be drawn again.
odd_values: TreeStrategy = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(NUMBERS),
    st.sampled_from([make_raw(index) for index in range(len(RAW_NUMBERS))]),
    st.sampled_from([None, True, False, [], {}, [None], {"": None}, [[]]]).map(copy.deepcopy),
    st.text(max_size=8),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([15, 40, 200]).map(nest),
    st.sampled_from([list(range(300)), {f"k{number}": number for number in range(300)}, ["x"] * 300]).map(
        copy.deepcopy
    ),
)
odd_keys = st.sampled_from([key for key in TEXTS if "\ud800" not in key]) | st.text(max_size=8)
# Bytes that mean something to a parser of JSON, YAML, CSV or Parquet, or to a decoder of text.
ODD_BYTES = (
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[2J", b"\xed\xa0\x80", b"\r\n", b"\t", b"\n\n", b",", b'"', b"'"),
    *(b"&a [*a]", b"<<: *a\n", b"!!python/object/apply:os.system ['true']\n", b"---\n", b"...\n", b"%YAML 9.9\n---\n"),
    *(b"{", b"}", b"[" * 2000, b'{"a":' * 2000, b"- " * 2000, b": ", b"#", b"PAR1", b"\xe2\x80\xa8", HTML.encode()),
    *(b'"schema_version": 2, ', b"1e400", b"NaN", b"-", b"\\ud800", b"x" * 5000),
)


def list_paths(tree: Any, path: Path = ()) -> list[Path]:
    """Return the paths of all values in a tree; of a list, those in its first and last elements."""
    paths = [path] if path else []
    if isinstance(tree, dict):
        return paths + [found for key, value in tree.items() for found in list_paths(value, (*path, key))]
    if isinstance(tree, list):
        indexes = sorted({0, len(tree) - 1}) if tree else []
        return paths + [found for index in indexes for found in list_paths(tree[index], (*path, index))]
    return paths


def draw_changed(trees: Sequence[Any], extra_paths: Sequence[Path] = ()) -> TreeStrategy:
    """Draw one of the trees with one to four changes, mostly one; `extra_paths`: of fields that none of them has."""

    @st.composite  # without arguments: hypothesis writes them out, pages of them, wherever it names a strategy
    def draw_tree(draw: st.DrawFn) -> Any:
        base = draw(st.sampled_from(trees))
        tree, paths = copy.deepcopy(base), [*list_paths(base), *extra_paths]
        for _ in range(draw(st.sampled_from([1, 1, 1, 2, 2, 4]))):
            _change(draw, tree, base, draw(st.sampled_from(paths)))
        return tree

    return draw_tree()


def _change(draw: st.DrawFn, tree: Any, base: Any, path: Path) -> None:
    """Change the value at a path; nothing where an earlier change took the path away."""
    parent: Any = _find(tree, path[:-1])
    key: Any = path[-1]
    if not isinstance(parent, dict | list):
        return
    if isinstance(parent, list) and (not isinstance(key, int) or key >= len(parent)):
        return
    if isinstance(parent, dict) and key not in parent:
        parent[key] = draw(odd_values)
        return
    action = draw(
        st.sampled_from(["replace", "replace", "replace", "swap", "remove", "double", "rename", "add", "mark"])
    )
    if action == "replace":
        parent[key] = draw(odd_values)
    elif action == "mark" and isinstance(parent[key], str):
        parent[key] += draw(st.sampled_from(TEXTS))
    elif action == "swap":
        parent[key] = copy.deepcopy(_find(base, draw(st.sampled_from(list_paths(base)))))
    elif action == "remove":
        del parent[key]
    elif isinstance(parent, list):
        parent[:] = parent * draw(st.sampled_from([2, 2, 20]))
    elif action == "rename":
        parent[draw(odd_keys)] = parent.pop(key)
    else:
        parent[draw(odd_keys)] = draw(odd_values)


def _find(tree: Any, path: Path) -> Any:
    for key in path:
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def draw_garbled(documents: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Draw a document with bytes cut out, put in, doubled or in another encoding."""

    @st.composite
    def draw_bytes(draw: st.DrawFn) -> bytes:
        data = draw(documents)
        for _ in range(draw(st.sampled_from([1, 1, 2, 3]))):
            data = _garble(draw, data)
        return data

    return draw_bytes()


def _garble(draw: st.DrawFn, data: bytes) -> bytes:
    start = draw(st.integers(0, len(data)))
    end = min(len(data), start + draw(st.sampled_from([0, 0, 1, 3, 40, 10**9])))
    action = draw(st.sampled_from(["put", "put", "cut", "double", "encode"]))
    if action == "put":
        return data[:start] + draw(st.sampled_from(ODD_BYTES) | st.binary(max_size=6)) + data[end:]
    if action == "cut":
        return data[:start] + data[end:]
    if action == "double":
        return data[:end] + data[start:]
    return data.decode(errors="replace").encode(draw(st.sampled_from(["utf-16", "utf-32", "utf-8-sig"])))


def draw_contents(
    trees: TreeStrategy, dump: Dump, more: st.SearchStrategy[Content] | None = None
) -> st.SearchStrategy[Content]:
    """Draw contents of a file: mostly a changed document, now and then garbled bytes or no file at all."""
    changed: st.SearchStrategy[Content] = trees.map(dump)
    garbled: st.SearchStrategy[Content] = draw_garbled(trees.map(dump))
    special: st.SearchStrategy[Content] = st.sampled_from(list(Special))
    rest = [] if more is None else [more, more]
    return st.one_of(*[changed] * 7, *[garbled] * 2, special, *rest)


def dump_json(tree: Any) -> bytes:
    """Return a tree as JSON, with numbers that JSON does not have where the tree has them."""
    return _put_raw(json.dumps(tree, ensure_ascii=_has_half_characters(tree)), '"').encode()


def dump_yaml(tree: Any) -> bytes:
    """Return a tree as YAML; as JSON, which is YAML too, where PyYAML cannot write it."""
    try:
        text = yaml.dump(tree, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False)
        return _put_raw(text, "").encode()
    except (yaml.YAMLError, RecursionError, UnicodeEncodeError):
        return dump_json(tree)


def dump_csv(tree: Any) -> bytes:
    """Return a list of rows as CSV, as a careless program writes it; of what is no list of rows, its JSON."""
    if not isinstance(tree, list):
        return dump_json(tree)
    rows = [row if isinstance(row, list) else [row] for row in tree]
    lines = [",".join(_write_cell(cell) for cell in row) for row in rows]
    return _put_raw("\n".join(lines) + "\n", "").encode("utf-8", "surrogatepass")


def _write_cell(cell: Any) -> str:
    text = "" if cell is None else cell if isinstance(cell, str) else json.dumps(cell)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n\r') else text


def _put_raw(text: str, quote: str) -> str:
    for index, number in enumerate(RAW_NUMBERS):
        text = text.replace(f"{quote}{make_raw(index)}{quote}", number)
    return text


def _has_half_characters(tree: Any) -> bool:
    try:
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
