"""The table of sustained speed."""

from bench.schema import SustainedRun
from collector.analysis import analyze_run
from collector.tables.cells import make_sustained_table
from factories import make_cell, make_result
from measured_runs import Collect


def make_sustained(*window_step_seconds: float, flat_after_seconds: float | None) -> SustainedRun:
    return SustainedRun(
        window_step_seconds=window_step_seconds,
        seconds=5.0 * len(window_step_seconds),
        flat_after_seconds=flat_after_seconds,
    )


def test_first_and_settled_speed_stand_beside_each_other(collect: Collect) -> None:
    flat = make_sustained(0.1, 0.11, *(0.12,) * 7, flat_after_seconds=10.0)
    cells = [make_cell(sustain_seconds=60.0), make_cell(sustain_seconds=60.0, batch_size=8), make_cell(batch_size=2)]
    results = [
        make_result(cells[0], sustained=flat),
        make_result(cells[1], sustained=make_sustained(0.1, 0.2, flat_after_seconds=None)),
        make_result(cells[2]),
    ]
    table = make_sustained_table(analyze_run(collect(*results, repeats=1)))
    assert table is not None
    assert table.headings[1:] == ["step at first, ms", "step at last, ms", "last / first", "flat after"]
    assert [row[1:] for row in table.format_rows()] == [
        ("100", "200", "2.00", "not within 10.0 s"),
        ("100", "120", "1.20", "10.0 s, of 45.0 s"),
    ]
