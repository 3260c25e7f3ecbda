"""The limits of size and the rules of names hold for every Python file of the repository.

No Python file is generated, so none is exempt.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("benchmarks", "benchmatrix", "charts", "collector", "docs", "images", "runner", "tests")
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
VAGUE_NAMES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}


def find_long_files(path: Path) -> Iterator[str]:
    """Yield the file's name if it is too long."""
    if len(path.read_text().splitlines()) > MAX_FILE_LINES:
        yield path.name


def find_long_functions(path: Path) -> Iterator[str]:
    """Yield the functions that are too long, from `def` to the last line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            if node.end_lineno - node.lineno >= MAX_FUNCTION_LINES:
                yield f"{path.name}:{node.name}"


def find_unclear_docstrings(path: Path) -> Iterator[str]:
    """Yield the file's name unless its docstring begins with a sentence; "a folder in, a server out" is none."""
    paragraph, *_ = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")
    is_sentence = len(paragraph.split()) > 2 and paragraph.endswith(".")
    if not is_sentence or re.search(r"\bin(, |; ).*\bout\b", paragraph, re.DOTALL):
        yield path.name


def find_vague_names(path: Path) -> Iterator[str]:
    """Yield the file's name if the name of the module or of its folder says nothing about what is in it."""
    if VAGUE_NAMES & {path.stem, path.parent.name}:
        yield path.name


RULES = (find_long_files, find_long_functions, find_unclear_docstrings, find_vague_names)


@pytest.mark.parametrize("find", RULES, ids=lambda find: find.__name__)
def test_every_file_keeps_the_rule(find: Callable[[Path], Iterator[str]]) -> None:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert paths
    assert [f"{path.parent.relative_to(ROOT)}/{name}" for path in paths for name in find(path)] == []
