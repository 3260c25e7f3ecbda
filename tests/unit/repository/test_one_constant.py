"""Words of the contract that stand in one place of the code, and are imported everywhere else."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("images/bench/src/bench", "runner", "collector", "benchmatrix")


def list_homes(word: str) -> list[str]:
    """Return the modules that have the word as a text of its own."""
    return [
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if any(isinstance(node, ast.Constant) and node.value == word for node in ast.walk(ast.parse(path.read_text())))
    ]


@pytest.mark.parametrize(("word", "home"), [("in-cluster", "images/bench/src/bench/cluster_contexts.py")])
def test_a_word_has_one_home(word: str, home: str) -> None:
    assert list_homes(word) == [home]
