"""The programs of docs/ print their help when they are asked for it, and refuse what they do not know."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PROGRAMS = sorted(path for path in DOCS.glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))


def read_changes() -> dict[Path, int]:
    """Return when each file of the docs, and README.md, was last written."""
    pages = (path for path in DOCS.rglob("*.*") if "__pycache__" not in path.parts)
    return {path: path.stat().st_mtime_ns for path in (DOCS.parent / "README.md", *pages)}


def test_the_programs_are_found() -> None:
    assert {path.name for path in PROGRAMS} >= {"build_site.py", "make_results.py", "make_tables.py"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize(("option", "code", "words"), [("--help", 0, "usage: .*--help"), ("--chek", 2, "unrecognized")])
def test_a_program_writes_nothing_when_it_is_asked_for_help_or_does_not_know_an_option(
    program: Path, option: str, code: int, words: str
) -> None:
    before = read_changes()
    ended = subprocess.run([sys.executable, program, option], capture_output=True, text=True, check=False)
    assert ended.returncode == code
    assert re.search(words, ended.stdout + ended.stderr, re.DOTALL)
    assert read_changes() == before
