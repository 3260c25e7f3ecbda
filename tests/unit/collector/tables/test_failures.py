"""Repeats that did not end ok: those that ended alike share a row, whichever cell they are of."""

from collector.analysis import analyze_run
from collector.tables.cells import make_failures_table
from factories import make_cell, make_failed_result, make_result
from measured_runs import Collect


def test_repeats_that_ended_alike_share_one_row_with_the_cells_and_one_output(collect: Collect) -> None:
    first, second = make_cell(batch_size=1), make_cell(batch_size=2)
    results = [
        make_result(first, repeat=1),
        make_failed_result(first, repeat=2),
        make_failed_result(second, repeat=1, stderr_tail="line 31"),
        make_failed_result(second, repeat=2, status="oom", message="3 GiB asked for"),
    ]
    table = make_failures_table(analyze_run(collect(*results, repeats=4)))
    assert table is not None
    names = ["conv6 train, CPU, batch 1, 32 px, PyTorch eager", "conv6 train, CPU, batch 2, 32 px, PyTorch eager"]
    rows = [(row[0], *row[2:]) for row in table.format_rows()]
    assert rows == [
        ("missing", "4", f"{names[0]}, repeats 3 and 4; {names[1]}, repeats 3 and 4", ""),
        ("failed", "2", f"{names[0]}, repeat 2; {names[1]}, repeat 1", f"{names[1]}, repeat 1:\nline 31"),
        ("oom", "1", f"{names[1]}, repeat 2", ""),
    ]
    assert table.format_rows()[1][1] == "RuntimeError: it broke (kind exception)"
