"""Make the example of README.md: what a run prints at its end, from a run that is stored under docs/results."""

import io
import re
from pathlib import Path

from rich.console import Console

from bench.store import Store
from collector.report.terminal import make_terminal_table, print_table
from collector.results.load import load_run
from collector.tables.table import make_table
from results_figures import select

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
STORE, RUN_ID = ROOT / "docs" / "results" / "2026-11-23-h200", "study"
# Enough to show what a row looks like: the training of one model in three frameworks.
SHOWN = {"model": "resnet18", "phase": "train", "device": "gpu", "batch_size": 64, "precision": "fp32"}
# Of a page on the web, where a longer line is not broken but scrolled.
TERMINAL_WIDTH = 120
BEGIN, END = "<!-- example: made by `make results` -->", "<!-- end -->"


def make_readme(text: str) -> str:
    """Return README.md with its example between the markers."""
    if text.count(BEGIN) != 1:
        raise AssertionError(f"{README.name}: expected the line {BEGIN} once")
    example = f"{BEGIN}\n```text\n{print_example()}\n```\n{END}"
    return re.sub(f"{re.escape(BEGIN)}.*?{END}", lambda _: example, text, count=1, flags=re.DOTALL)


def print_example() -> str:
    """Return some rows of the run's table as a terminal shows them."""
    table = make_terminal_table(load_run(Store.open(STORE.resolve().as_uri()), RUN_ID))
    rows = select(table.rows, SHOWN)
    console = Console(file=io.StringIO(), width=TERMINAL_WIDTH, force_terminal=True, color_system=None)
    print_table(console, make_table(table.caption, list(table.columns), rows))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())
