"""What the page knows of pairs of cells is what its tables say."""

import math
from pathlib import Path

import pytest

from collector.analysis import analyze_run
from collector.answers.fastest_rules import CAPTION as FASTEST_CAPTION
from collector.report.page_cells import list_page_cells
from collector.report.page_pairs import list_judged_tables
from collector.tables.comparisons import HEADINGS
from factories import RUN_ID, make_cell, make_environment
from measured_runs import collect_results, make_repeats


def test_a_pair_that_only_its_own_interval_tells_apart_is_listed_as_not_shown(tmp_path: Path) -> None:
    # Two repeats a side, each exp(0.01) beside their mean: Welch's degrees of freedom are 2, for which
    # p = 1 - t / sqrt(t ** 2 + 2), 0.04 at t = 4.849. Beside another pair Holm makes it 0.08.
    spread, shift = math.exp(0.01), math.exp(4.849 * 0.01 * math.sqrt(2))
    results = []
    for phase, factor in (("train", shift), ("infer", 1.0)):
        eager, compiled = (make_cell(phase=phase, mode=mode) for mode in ("eager", "compiled"))
        results += make_repeats(eager, 0.1 / spread, 0.1 * spread)
        results += make_repeats(compiled, 0.1 * factor / spread, 0.1 * factor * spread)
    analysis = analyze_run(collect_results(tmp_path, *results, repeats=2, run_id=RUN_ID))
    cells = list_page_cells(analysis)
    (modes,) = list_judged_tables(analysis)
    assert (modes["caption"], modes["size"], len(modes["tested"])) == (HEADINGS["modes"].caption, 2, 2)
    pairs = [sorted(cells.loc[pair, "label"]) for pair in modes["unshown"]]
    assert [["train" in label for label in pair] for pair in pairs] == [[True, True]]
    assert analysis.comparisons["modes"]["p_value"].min() == pytest.approx(0.04, abs=1e-4)


def test_a_pair_that_only_the_fastest_are_told_by_is_of_that_table(tmp_path: Path) -> None:
    environment = make_environment(versions={"jax": "0.11.0", "tensorflow": "2.21.0", "torch": "2.11.0"})
    programs = (("jax", "compiled", 0.1), ("tensorflow", "compiled", 0.2), ("pytorch", "compiled", 0.3))
    results = [
        result
        for framework, mode, seconds in programs
        for result in make_repeats(
            make_cell(framework=framework, mode=mode),
            *(seconds * (1 + number / 100) for number in range(3)),
            environment=environment,
        )
    ]
    analysis = analyze_run(collect_results(tmp_path, *results, run_id=RUN_ID))
    cells = list_page_cells(analysis)
    tables = {table["caption"]: table for table in list_judged_tables(analysis)}
    (pair,) = tables[FASTEST_CAPTION]["tested"]
    assert sorted(cells.loc[pair, "framework"]) == ["jax", "tensorflow"]
    assert (tables[FASTEST_CAPTION]["size"], tables[FASTEST_CAPTION]["unshown"]) == (1, [])
    assert len(tables[HEADINGS["frameworks"].caption]["tested"]) == 2
