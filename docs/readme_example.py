"""Make the example of README.md: what a run prints at its end, from a run that is stored under docs/results."""

import io
import re
from pathlib import Path

from rich.console import Console

from bench.store import Store
from collector.analysis import analyze_run
from collector.report.tables import print_summary
from collector.results.load import load_run

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
STORE, RUN_ID = ROOT / "docs" / "results" / "2026-11-23-h200", "study"
# Of a page on the web, where a longer line is not broken but scrolled.
TERMINAL_WIDTH = 100
BEGIN, END = "<!-- example: made by `make results` -->", "<!-- end -->"


def make_readme(text: str) -> str:
    """Return README.md with its example between the markers."""
    if text.count(BEGIN) != 1:
        raise AssertionError(f"{README.name}: expected the line {BEGIN} once")
    example = f"{BEGIN}\n```text\n{print_example()}\n```\n{END}"
    return re.sub(f"{re.escape(BEGIN)}.*?{END}", lambda _: example, text, count=1, flags=re.DOTALL)


def print_example() -> str:
    """Return what the run prints at its end."""
    console = Console(file=io.StringIO(), width=TERMINAL_WIDTH, force_terminal=True, color_system=None)
    print_summary(console, analyze_run(load_run(Store.open(STORE.resolve().as_uri()), RUN_ID)))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())
