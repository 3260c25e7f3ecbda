"""A pair of one run has one ratio, interval and verdict: in the tables of its report and by `compare`."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.schema import Cell, Result
from bench.store import Store
from collector.analysis import analyze_run
from collector.results.load import load_run
from collector.versus.question import CompareDocument
from factories import make_cell, make_environment, make_result
from measured_runs import make_repeats
from two_runs import compare_runs, put_run, scale, select_sides

CELLS = tuple(
    make_cell(framework=framework, mode=mode, precision=precision, phase=phase)
    for framework, mode in (("pytorch", "eager"), ("tensorflow", "graph"))
    for precision in ("fp32", "bf16")
    for phase in ("train", "infer")
)
SIDES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "frameworks": (["framework=pytorch", "mode=eager"], ["framework=tensorflow", "mode=graph"]),
    "precisions": (["precision=fp32"], ["precision=bf16"]),
}
# Around what two or three repeats can show: some ratios differ by themselves and not after the adjustment.
REPEATS = st.lists(st.floats(-0.1, 0.1), min_size=2, max_size=3).map(lambda logs: [0.1 * math.exp(log) for log in logs])
RUNS = st.tuples(
    *(st.tuples(REPEATS, st.sampled_from([1.0, 1.1, 1.2, 1.4])).map(lambda pair: scale(*pair)) for _ in CELLS)
)


def put_cells(directory: Path, medians: Sequence[Sequence[float]], cells: Sequence[Cell] = CELLS) -> None:
    put_run(directory, "a", dict(zip(cells, medians, strict=True)))


def load_table(directory: Path, name: str) -> dict[tuple[str, str], dict[Any, Any]]:
    """Return the rows of a comparison of the report by the ids of subject and reference."""
    rows: pd.DataFrame = analyze_run(load_run(Store.open(f"file://{directory}"), "a")).comparisons[name]
    return {(row["cell_id_subject"], row["cell_id_reference"]): row for row in rows.to_dict("records")}


@settings(max_examples=4, deadline=None)
@given(medians=RUNS, is_turned=st.booleans())
def test_a_pair_of_one_run_has_one_ratio_interval_and_verdict(
    medians: Sequence[Sequence[float]], is_turned: bool
) -> None:
    with TemporaryDirectory() as folder:
        directory = Path(folder)
        put_cells(directory, medians)
        for name, sides in SIDES.items():
            document, table = (
                select_sides(directory, ["a"], *sides[:: -1 if is_turned else 1]),
                load_table(directory, name),
            )
            check_table(document, table, name)


def check_table(document: CompareDocument, table: Mapping[tuple[str, str], dict[Any, Any]], name: str) -> None:
    assert len(document.cells) == len(table) == len(CELLS) // 2
    for cell in document.cells:
        row = table.get((cell.cell_id_b, cell.cell_id_a)) or table[cell.cell_id_a, cell.cell_id_b]
        figures = [row["ratio"], row["joint_low"], row["joint_high"]]
        if (row["cell_id_subject"] == cell.cell_id_b) != (name == "frameworks"):  # the table has A over B
            figures = [1 / figures[0], 1 / figures[2], 1 / figures[1]]
        assert [cell.ratio, cell.joint_low, cell.joint_high] == pytest.approx(figures, rel=1e-9)
        assert cell.p_adjusted == pytest.approx(row["p_adjusted"], rel=1e-9)
        assert (cell.verdict == "undecided") == (row["decision"] == "undecided")


def test_the_mean_of_the_cells_of_one_run_is_judged_by_itself(tmp_path: Path) -> None:
    def count_families(document: CompareDocument) -> list[float]:
        ratios = (document.cells[0], document.together[0])
        return [round((one.p_adjusted or 0) / (one.p_value or 1)) for one in ratios]

    rough = (0.08, 0.1, 0.12)
    other = [scale(rough, 2 if cell.framework == "pytorch" else 1) for cell in CELLS]
    put_cells(tmp_path, other)
    assert count_families(select_sides(tmp_path, ["a"], *SIDES["frameworks"])) == [4, 1]
    put_run(tmp_path, "b", {cell: scale(medians, 3) for cell, medians in zip(CELLS, other, strict=True)}, day=1)
    assert count_families(compare_runs(tmp_path)) == [9, 9]


def repeat(cell: Cell, run_id: str, steps: Sequence[Sequence[float]]) -> list[Result]:
    return [
        make_result(cell, repeat=number, step_seconds=tuple(times), run_id=run_id)
        for number, times in enumerate(steps, start=1)
    ]


def test_another_run_in_the_store_changes_no_pair_of_one_run(tmp_path: Path) -> None:
    """An earlier run of a cell had steps of two levels, which are summarised by their mean, also beside others."""
    eager, graph = CELLS[0], make_cell(framework="tensorflow", mode="graph")
    some_slower = [(base,) * 32 + (1.5 * base,) * 8 for base in (0.1, 0.1005, 0.0995)]
    even = [(base,) * 40 for base in (0.106, 0.1065, 0.1055)]
    put_run(tmp_path, "a", {}, *repeat(eager, "a", some_slower), *repeat(graph, "a", even))
    (alone,) = select_sides(tmp_path, ["a"], *SIDES["frameworks"]).cells
    levels = [(base,) * 20 + (1.5 * base,) * 20 for base in (0.1, 0.1005, 0.0995)]
    by_mean = {"summarized_by": "mean"}
    earlier = [
        one.model_copy(update={"samples": one.samples and one.samples.model_copy(update=by_mean)})
        for one in repeat(eager, "earlier", levels)
    ]
    put_run(tmp_path, "earlier", {}, *earlier, day=-1)
    (beside,) = select_sides(tmp_path, ["a"], *SIDES["frameworks"]).cells
    assert beside == alone
    (row,) = load_table(tmp_path, "frameworks").values()
    assert beside.ratio == pytest.approx(row["ratio"])


def test_two_machines_of_one_run_give_a_ratio_and_no_verdict(tmp_path: Path) -> None:
    graph = make_cell(framework="tensorflow", mode="graph")
    sides = ((CELLS[0], (0.1, 0.1003, 0.0997), "bench-1"), (graph, (0.103, 0.1033, 0.1027), "bench-2"))
    results = [
        one
        for cell, medians, host in sides
        for one in make_repeats(cell, *medians, run_id="a", environment=make_environment(hostname=host))
    ]
    put_run(tmp_path, "a", {}, *results)
    document = select_sides(tmp_path, ["a"], *SIDES["frameworks"])
    (cell,) = document.cells
    (row,) = load_table(tmp_path, "frameworks").values()
    assert [cell.ratio, cell.ratio_low, cell.ratio_high] == pytest.approx(
        [row["ratio"], row["ratio_low"], row["ratio_high"]]
    )
    assert (cell.verdict, cell.reasons, cell.p_value, document.exit_code) == ("undecided", ("machines",), None, 0)
    assert row["decision"] == "machines differ"
    assert pd.isna(row["p_value"])
