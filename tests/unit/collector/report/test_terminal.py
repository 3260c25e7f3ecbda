"""The table that a run prints at its end, in terminals of any width."""

import io
from dataclasses import replace

import pandas as pd
import pytest
from rich.console import Console

from bench.schema import Verdict
from collector.report.terminal import make_terminal_table, print_table
from collector.tables.columns import CELL, number_column, text_column
from collector.tables.table import Table, make_table
from collector.units import MILLISECOND, THROUGHPUT
from factories import make_cell, make_environment, make_failed_result, make_result, make_validity
from measured_runs import Collect, make_repeats

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


def read_row(table: Table, number: int = 0) -> dict[str, str]:
    return dict(zip(table.headings, table.format_rows()[number], strict=True))


def test_a_pipe_gets_every_column_on_one_line_however_wide() -> None:
    header, row = render(make_small_table(), width=40, terminal=False).splitlines()
    assert header.split("  ")[0].strip() == "cell"
    assert [name in header for name in ("step time, ms", "spread of steps, ms", "samples/s")] == [True] * 3
    assert row.split()[-3:] == ["52.1", "1.23", "303.0"]


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (80, ["cell", "step time, ms", "spread of steps, ms", "samples/s"]),
        (54, ["cell", "step time, ms", "samples/s"]),
        (44, ["cell", "step time, ms"]),
    ],
)
def test_a_narrow_terminal_drops_columns_by_priority_before_it_breaks_lines(width: int, headings: list[str]) -> None:
    header, row = render(make_small_table(), width=width, terminal=True).splitlines()
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


def test_words_are_aligned_to_the_left_and_numbers_to_the_right() -> None:
    rows = pd.DataFrame({"label": ["a", "long name"], "verdict": ["valid", "not valid"], "seconds": [0.001, 1.0]})
    columns = [CELL, number_column("time", "seconds", MILLISECOND), text_column("verdict", "verdict")]
    header, first, second = render(make_table("", columns, rows), width=80, terminal=True).splitlines()
    assert first.index("valid") == second.index("not valid") == header.index("verdict")
    assert first.index("1.00") + len("1.00") == second.index("1,000") + len("1,000")


def test_a_name_in_brackets_is_printed_as_it_is(collect: Collect) -> None:
    results = [make_result(repeat=1), make_result(repeat=2, environment=make_environment(num_threads=1))]
    table = make_terminal_table(collect(*results, repeats=2))
    names = [row[0] for row in table.format_rows()]
    assert all("[" in name for name in names)
    for terminal in (True, False):
        text = render(table, width=400, terminal=terminal)
        assert [name in text for name in names] == [True, True]


def test_times_are_in_ms_and_memory_in_gib(collect: Collect) -> None:
    table = make_terminal_table(collect(*make_repeats(make_cell(), 0.1, 0.1, 0.1)))
    assert read_row(table) == {
        "cell": "conv6 train, CPU, batch 64, 32 px, PyTorch eager",
        "step time, ms": "100",
        "95 % interval, ms": "100 to 100",
        "IQR of steps, ms": "100 to 100",
        "samples/s": "640.0",
        "peak RSS, GiB": "1.00",
        "repeats ok": "3 of 3",
        "verdict": "valid",
    }


def test_a_cell_that_failed_is_shown_with_dashes(collect: Collect) -> None:
    row = read_row(make_terminal_table(collect(make_failed_result(), repeats=1)))
    assert (row["step time, ms"], row["95 % interval, ms"], row["repeats ok"]) == ("–", "–", "0 of 1")


def test_repeats_that_are_not_valid_are_counted_and_noted(collect: Collect) -> None:
    verdicts: tuple[Verdict, ...] = ("throttled", "noisy", "noisy")
    results = [
        make_result(repeat=number, validity=make_validity(verdict)) for number, verdict in enumerate(verdicts, start=1)
    ]
    row = read_row(make_terminal_table(collect(*results)))
    assert row["verdict"] == "2 of 3 count; 1 throttled, 2 noisy"
    assert row["note"].startswith("figures from 2 of 3 ok")
