"""What the page knows of pairs of cells is what its tables say."""

from pathlib import Path

from collector.analysis import analyze_run
from collector.answers.batch_rules import CAPTION as BATCHES_CAPTION
from collector.answers.fastest_rules import CAPTION as FASTEST_CAPTION
from collector.report.page_cells import list_page_cells
from collector.report.page_pairs import list_judged_tables
from collector.tables.comparisons import HEADINGS
from factories import RUN_ID, make_cell, make_environment
from measured_runs import collect_results, make_repeats


def test_the_pairs_of_a_table_come_with_how_many_it_tests_together(tmp_path: Path) -> None:
    results = []
    for phase in ("train", "infer"):
        results += make_repeats(make_cell(phase=phase, mode="eager"), 0.1, 0.102)
        results += make_repeats(make_cell(phase=phase, mode="compiled"), 0.08, 0.081)
    analysis = analyze_run(collect_results(tmp_path, *results, repeats=2, run_id=RUN_ID))
    cells = list_page_cells(analysis)
    (modes,) = list_judged_tables(analysis)
    assert (modes["caption"], modes["size"], modes["alone"]) == (HEADINGS["modes"].caption, 2, [])
    tested = [sorted(cells.loc[pair, "mode"]) for pair in modes["tested"]]
    assert tested == [["compiled", "eager"], ["compiled", "eager"]]


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
    assert tables[FASTEST_CAPTION]["size"] == 1
    assert len(tables[HEADINGS["frameworks"].caption]["tested"]) == 2


def test_neighbouring_batches_are_the_pairs_of_their_table(tmp_path: Path) -> None:
    seconds = {1: 0.01, 8: 0.02, 64: 0.1}
    results = [
        result
        for batch_size, own in seconds.items()
        for result in make_repeats(make_cell(batch_size=batch_size), own, own * 1.01)
    ]
    analysis = analyze_run(collect_results(tmp_path, *results, repeats=2, run_id=RUN_ID))
    cells = list_page_cells(analysis)
    (batches,) = list_judged_tables(analysis)
    assert (batches["caption"], batches["size"], batches["alone"]) == (BATCHES_CAPTION, 2, [])
    found = [cells.loc[pair, "batch_size"].to_list() for pair in batches["tested"]]
    assert found == [[8, 1], [64, 8]]
