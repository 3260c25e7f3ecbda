"""A hypothesis strategy that changes valid documents: values replaced, removed, renamed, moved; bytes cut or put in."""

import copy
from collections.abc import Sequence
from typing import Any

import yaml
from hypothesis import strategies as st

from hostile_texts import HOSTILE_TEXTS

Path = tuple[str | int, ...]

TEXTS = (*HOSTILE_TEXTS, "\x1b]0;pwned\x07\x1b[31m", "\u202egpj.exe", "a\x00b", "A" * 5000, "", " ", "/", "*", "NaN")
NUMBERS = (0, -1, 1, 2, 10**9, 2**63, 10**30, 0.0, -1.5, 1e-9, 1e308, float("inf"), float("nan"))
ODD_VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(NUMBERS),
    st.sampled_from([None, True, False, [], {}, [None], {"": None}, [[]]]).map(copy.deepcopy),
    st.text(max_size=8),
    st.integers(-(2**70), 2**70),
    st.floats(),
)
ODD_BYTES = (
    b"\x00",
    b"\xff\xfe",
    b"\x1b[2J",
    b"\t",
    b'"',
    b"&a [*a]",
    b"<<: *a\n",
    b"---\n",
    b"[" * 2000,
    b": ",
    b"1e400",
)


def list_paths(tree: Any, path: Path = ()) -> list[Path]:
    """Return the paths of all values in a tree; of a list, those in its first element."""
    paths = [path] if path else []
    if isinstance(tree, dict):
        return paths + [found for key, value in tree.items() for found in list_paths(value, (*path, key))]
    return paths + (list_paths(tree[0], (*path, 0)) if isinstance(tree, list) and tree else [])


@st.composite
def draw_documents(draw: st.DrawFn, trees: Sequence[Any]) -> bytes:
    """Draw one of the trees as YAML with one or two changes; one in five has its bytes garbled besides."""
    tree = copy.deepcopy(draw(st.sampled_from(trees)))
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        paths = list_paths(tree)
        if paths:
            _change(draw, tree, draw(st.sampled_from(paths)))
    data = yaml.safe_dump(tree, allow_unicode=True, sort_keys=False).encode(errors="replace")
    if draw(st.integers(0, 4)) == 0:
        start = draw(st.integers(0, len(data)))
        end = start + draw(st.sampled_from([0, 1, 40, 10**9]))
        data = data[:start] + draw(st.sampled_from(ODD_BYTES)) + data[end:]
    return data


def _change(draw: st.DrawFn, tree: Any, path: Path) -> None:
    parent, key = tree, path[-1]
    for step in path[:-1]:
        parent = parent[step]
    action = draw(st.sampled_from(["replace", "replace", "remove", "rename", "double"]))
    if action == "replace":
        parent[key] = draw(ODD_VALUES)
    elif action == "remove":
        del parent[key]
    elif isinstance(parent, list):
        parent.append(copy.deepcopy(parent[0]))
    else:
        parent[draw(st.sampled_from(TEXTS) | st.text(max_size=8))] = (
            parent[key] if action == "double" else parent.pop(key)
        )
