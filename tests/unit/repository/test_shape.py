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


@pytest.mark.parametrize(
    ("num_lines", "offenders"), [(MAX_FILE_LINES, []), (MAX_FILE_LINES + 1, ["cell.py"])], ids=["at", "over"]
)
def test_a_file_over_the_limit_is_found(tmp_path: Path, num_lines: int, offenders: list[str]) -> None:
    path = tmp_path / "cell.py"
    path.write_text("x = 1\n" * num_lines)
    assert list(find_long_files(path)) == offenders


@pytest.mark.parametrize(
    ("num_lines", "offenders"),
    [(MAX_FUNCTION_LINES, []), (MAX_FUNCTION_LINES + 1, ["cell.py:run"])],
    ids=["at", "over"],
)
def test_a_function_over_the_limit_is_found_wherever_it_is(
    tmp_path: Path, num_lines: int, offenders: list[str]
) -> None:
    path = tmp_path / "cell.py"
    path.write_text("class Cell:\n    @property\n    async def run(self):\n" + "        x = 1\n" * (num_lines - 1))
    assert list(find_long_functions(path)) == offenders


@pytest.mark.parametrize(
    ("docstring", "offenders"),
    [
        ("The schema of a cell.\n\nMore of it", []),
        ("The schema of a cell, which is read in from YAML.", []),
        ("", ["cell.py"]),
        ("The schema of a cell", ["cell.py"]),
        ("Cells.", ["cell.py"]),
        ("A Cell in, a Result\nout.", ["cell.py"]),
    ],
)
def test_a_module_whose_docstring_is_no_sentence_is_found(tmp_path: Path, docstring: str, offenders: list[str]) -> None:
    path = tmp_path / "cell.py"
    path.write_text(f'"""{docstring}"""\n')
    assert list(find_unclear_docstrings(path)) == offenders


@pytest.mark.parametrize(
    ("path", "offenders"),
    [("schema/cell.py", []), ("schema/utils.py", ["utils.py"]), ("common/cell.py", ["cell.py"])],
)
def test_a_name_that_says_nothing_is_found(path: str, offenders: list[str]) -> None:
    assert list(find_vague_names(Path(path))) == offenders
