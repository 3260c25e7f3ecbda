"""What is said of two sides of one run: which is better, in which cells, and by how much."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bench.schema import Cell
from collector.versus.document import CompareDocument
from collector.versus.texts import make_cell_table, sort_cells
from factories import make_cell
from two_runs import EVEN, put_run, scale, select_sides

EAGER = make_cell()
GRAPH = make_cell(framework="tensorflow", mode="graph")
FRAMEWORKS = ["framework=pytorch"], ["framework=tensorflow"]


def answer(tmp_path: Path, medians: Mapping[Cell, Sequence[float]], a: list[str], b: list[str]) -> CompareDocument:
    put_run(tmp_path, "run", medians)
    return select_sides(tmp_path, ["run"], a, b)


@pytest.mark.parametrize(("factor", "words", "code"), [(0.8, "faster: 0.800", 0), (1.25, "slower: 1.250", 1)])
def test_of_one_cell_the_answer_names_the_side_and_its_ratio(
    tmp_path: Path, factor: float, words: str, code: int
) -> None:
    found = answer(tmp_path, {EAGER: EVEN, GRAPH: scale(EVEN, factor)}, *FRAMEWORKS)
    assert found.exit_code == code
    assert found.conclusion.startswith(f"TensorFlow graph is {words} (")
    assert found.conclusion.endswith(") of the step time of PyTorch eager.")


def test_a_pair_that_is_not_told_apart_is_not_called_the_same(tmp_path: Path) -> None:
    found = answer(tmp_path, {EAGER: EVEN, GRAPH: (0.100, 0.104, 0.099)}, *FRAMEWORKS)
    assert found.conclusion.startswith("No difference shown: step time of TensorFlow graph is 1.010 (")
    assert found.conclusion.endswith("of that of PyTorch eager. That does not say that they are the same.")


def test_of_several_cells_the_answer_says_which_are_faster_and_which_slower(tmp_path: Path) -> None:
    factors = {8: 0.5, 16: 0.8, 32: 1.0, 64: 1.5}
    medians = {
        cell.model_copy(update={"batch_size": batch}): scale(EVEN, factor if cell is GRAPH else 1.0)
        for batch, factor in factors.items()
        for cell in (EAGER, GRAPH)
    }
    found = answer(tmp_path, medians, *FRAMEWORKS)
    faster, slower, same = (f"conv6 train, CPU, batch {batch}, 32 px" for batch in (16, 64, 32))
    assert found.conclusion.startswith("TensorFlow graph against PyTorch eager (step time, B / A): slower in 1 of 4")
    assert f"faster in 2 of 4 cells (ratios 0.500 to 0.800: conv6 train, CPU, batch 8, 32 px; {faster})" in (
        found.conclusion
    )
    assert found.conclusion.partition(" (1.4")[2].partition(": ")[2].startswith(f"{slower}); faster")
    assert f"{same}). That does not say that they are the same." in found.conclusion
    assert found.exit_code == 1


def test_what_is_computed_is_never_inferred(tmp_path: Path) -> None:
    """Who asks for two frameworks did not ask for two batches."""
    larger = GRAPH.model_copy(update={"batch_size": 8})
    with pytest.raises(Exception, match="batch_size is 8 in B"):
        answer(tmp_path, {EAGER: EVEN, larger: EVEN}, *FRAMEWORKS)


def test_batches_are_compared_by_sample_and_the_heading_says_so(tmp_path: Path) -> None:
    small, large = make_cell(batch_size=8), make_cell(batch_size=16)
    found = answer(tmp_path, {small: EVEN, large: scale(EVEN, 1.5)}, ["batch_size=8"], ["batch_size=16"])
    table = make_cell_table(found, sort_cells(found))
    assert [cell.label for cell in found.cells] == ["conv6 train, CPU, 32 px, PyTorch eager"]
    assert table.headings[:3] == ["cell", "A, ms per sample", "B, ms per sample"]
    assert found.conclusion.startswith("batch 16 is faster: 0.750 (")


def test_sides_that_differ_from_pair_to_pair_have_columns_of_their_own(tmp_path: Path) -> None:
    medians = {
        make_cell(phase=phase, batch_size=batch, framework=framework): EVEN
        for phase, batches in (("train", (8, 16)), ("infer", (32, 64)))
        for batch, framework in zip(batches, ("pytorch", "tensorflow"), strict=True)
    }
    sides = ["framework=pytorch", "batch_size=*"], ["framework=tensorflow", "batch_size=*"]
    found = answer(tmp_path, medians, *sides)
    assert make_cell_table(found, sort_cells(found)).headings[1:3] == ["A is", "B is"]
    assert found.conclusion.startswith("B against A (time per sample, B / A): ")


def test_neighbouring_batches_are_a_pair_of_the_report_s_table_of_batches(tmp_path: Path) -> None:
    medians = {make_cell(batch_size=batch): EVEN for batch in (1, 8, 64)}
    inner = answer(tmp_path, medians, ["batch_size=8"], ["batch_size=64"])
    assert [(table.name, table.num_ratios, table.num_common) for table in inner.report_tables] == [("batches", 2, 1)]
    ends = answer(tmp_path, medians, ["batch_size=1"], ["batch_size=64"])
    assert ends.report_tables == ()
