"""The table that a run prints at its end, in terminals of any width."""

import io
import re
from dataclasses import replace

import pandas as pd
import pytest
from rich.console import Console

from collector.analysis import analyze_run
from collector.report.tables import print_summary
from collector.tables.table import CELL, Table, make_table, number_column, print_table, text_column
from collector.units import MILLISECOND, THROUGHPUT
from factories import make_cell, make_failed_result
from measured_runs import Collect, make_framework_pair

CELL_NAME = "conv6 train, CPU, batch 16"


def make_small_table() -> Table:
    """One row; the spread is the first column to be dropped, then throughput."""
    rows = pd.DataFrame({"label": [CELL_NAME], "median": [0.0521], "spread": [0.00123], "throughput": [303.0]})
    columns = [
        CELL,
        number_column("step time", "median", MILLISECOND),
        number_column("spread of steps", "spread", MILLISECOND, priority=1),
        number_column("", "throughput", THROUGHPUT, priority=2),
    ]
    return make_table("", columns, rows)


def render(table: Table, *, width: int, terminal: bool) -> str:
    file = io.StringIO()
    print_table(Console(file=file, width=width, force_terminal=terminal, color_system=None), table)
    return file.getvalue()


@pytest.mark.parametrize(
    ("width", "terminal", "headings"),
    [
        (40, False, ["cell", "step time, ms", "spread of steps, ms", "samples/s"]),
        (80, True, ["cell", "step time, ms", "spread of steps, ms", "samples/s"]),
        (54, True, ["cell", "step time, ms", "samples/s"]),
        (44, True, ["cell", "step time, ms"]),
    ],
)
def test_a_narrow_terminal_drops_columns_by_priority_and_a_pipe_gets_all(
    width: int, terminal: bool, headings: list[str]
) -> None:
    header, row = render(make_small_table(), width=width, terminal=terminal).splitlines()
    assert [part.strip() for part in header.split("  ") if part.strip()] == headings
    assert row.startswith(f"{CELL_NAME} ")


def test_a_terminal_too_narrow_for_the_rest_breaks_lines_and_loses_nothing() -> None:
    lines = render(make_small_table(), width=30, terminal=True).splitlines()
    assert max(len(line) for line in lines) <= 30
    assert "52.1" in "".join(lines)


@pytest.mark.parametrize("terminal", [True, False])
def test_notes_stand_below_the_table_each_text_once_and_broken_between_words(terminal: bool) -> None:
    long = "others kept 1.4 of 2 cores busy: the cell's threads were short of cores (2 of 3 repeats)"
    rows = pd.DataFrame({"label": ["a", "b", "c", "d"], "note": [long, "two [levels]", None, long]})
    note = replace(text_column("note", "note"), is_note=True)

    lines = render(make_table("", [CELL, note], rows), width=40, terminal=terminal).splitlines()

    assert [line.split() for line in lines[:5]] == [["cell", "note"], ["a", "[1]"], ["b", "[2]"], ["c"], ["d", "[1]"]]
    notes = lines[5:]
    if not terminal:
        assert notes == [f"[1] {long}", "[2] two [levels]"]
    else:
        assert max(map(len, notes)) <= 40
        assert " ".join(" ".join(notes).split()) == f"[1] {long} [2] two [levels]"


def test_the_end_of_a_run_is_its_grid_in_80_columns_and_a_line_a_cell(collect: Collect) -> None:
    failed, file = make_failed_result(make_cell(phase="infer")), io.StringIO()
    results = [*make_framework_pair(1.2), *make_framework_pair(0.6, batch_size=8), failed]
    print_summary(Console(file=file, width=80, force_terminal=True, color_system=None), analyze_run(collect(*results)))
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 5 + 6
    assert any(re.search(r"TensorFlow graph +120.0 +.*▲ \+20.0 %", line) for line in lines)
    assert "! 1 repeat failed" in " ".join(lines)
