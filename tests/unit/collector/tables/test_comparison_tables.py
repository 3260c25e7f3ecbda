"""The tables of comparisons."""

from pathlib import Path

import pytest

from collector.analysis import analyze_run
from collector.comparisons import COMPARISONS, DEVICES, FRAMEWORKS, Comparison
from collector.tables.comparisons import HEADINGS, make_comparison_table
from collector.tables.table import Table
from factories import make_cell, make_validity
from measured_runs import collect_results, make_repeats


def read_first_row(table: Table | None) -> dict[str, str]:
    assert table is not None
    return dict(zip(table.headings, table.format_rows()[0], strict=True))


def test_comparisons_for_people_hold_ratio_verdict_and_hardware(tmp_path: Path) -> None:
    results = [
        *make_repeats(make_cell(), 0.4, 0.4),
        *make_repeats(make_cell(framework="tensorflow"), 0.5, 0.5),
        *make_repeats(make_cell(device="gpu"), 0.01, 0.01),
    ]
    analysis = analyze_run(collect_results(tmp_path, *results, repeats=2))
    tables = [make_comparison_table(comparison, analysis) for comparison in (FRAMEWORKS, DEVICES)]
    frameworks, devices = map(read_first_row, tables)
    remarks = [table.remark for table in tables if table is not None]
    assert remarks[0].endswith(" Hardware: Intel(R) Xeon(R) CPU @ 2.20GHz, 2 threads.")
    assert remarks[1].endswith(" GPU: Tesla T4. CPU: Intel(R) Xeon(R) CPU @ 2.20GHz, 2 threads.")
    assert [frameworks[name] for name in ("time ratio", "second, ms", "first, ms")] == ["1.25", "400.0", "500.0"]
    assert devices["speedup"] == "40.0"
    assert "Measured on: one machine." in remarks[0]
    assert "Measured on: one card and its host." in remarks[1]
    assert frameworks["verdict"].startswith("TensorFlow eager takes 25")


def test_a_comparison_says_how_many_ratios_it_has_and_how_many_differences_remain(tmp_path: Path) -> None:
    results = [
        *make_repeats(make_cell(), 0.4, 0.4),
        *make_repeats(make_cell(framework="tensorflow"), 0.5, 0.5),
    ]
    table = make_comparison_table(FRAMEWORKS, analyze_run(collect_results(tmp_path, *results, repeats=2)))
    assert table is not None
    assert table.remark == (
        "1 ratio was tested: it differs from 1. Measured on: one machine. "
        "Hardware: Intel(R) Xeon(R) CPU @ 2.20GHz, 2 threads."
    )


def test_pairs_that_are_left_out_have_no_row(tmp_path: Path) -> None:
    throttled = make_repeats(make_cell(framework="tensorflow"), 0.2, 0.2, validity=make_validity("throttled"))
    collection = collect_results(tmp_path, *make_repeats(make_cell(), 0.1, 0.1), *throttled, repeats=2)
    assert make_comparison_table(FRAMEWORKS, analyze_run(collection)) is None
    included = make_comparison_table(FRAMEWORKS, analyze_run(collection, include_invalid=True))
    assert read_first_row(included)["time ratio"] == "2.00"


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda comparison: comparison.name)
def test_every_comparison_has_a_heading(comparison: Comparison) -> None:
    assert HEADINGS[comparison.name].caption
