"""What `compare` says in words: the conclusion, the intervals beside each verdict, and Markdown."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bench.schema import Cell
from collector.versus.question import CompareDocument
from collector.versus.words import (
    escape_comment,
    list_group_lines,
    list_method_lines,
    make_cell_table,
    sort_cells,
    write_markdown,
)
from factories import make_cell, make_environment
from two_runs import EVEN, INFER, TRAIN, compare_runs, put_run, scale, select_sides

EAGER = make_cell()
GRAPH = make_cell(framework="tensorflow", mode="graph")
FRAMEWORKS = ["framework=pytorch"], ["framework=tensorflow"]


def answer(tmp_path: Path, medians: Mapping[Cell, Sequence[float]], a: list[str], b: list[str]) -> CompareDocument:
    put_run(tmp_path, "run", medians)
    return select_sides(tmp_path, ["run"], a, b)


@pytest.mark.parametrize(
    ("graph", "words", "code"),
    [
        (scale(EVEN, 0.8), "faster, 0.800 (0.", 0),
        (scale(EVEN, 1.25), "slower, 1.250 (1.", 1),
        ((0.100, 0.104, 0.099), "no difference shown, 1.010 (0.", 0),
    ],
)
def test_of_one_cell_the_conclusion_has_the_ratio(
    tmp_path: Path, graph: Sequence[float], words: str, code: int
) -> None:
    found = answer(tmp_path, {EAGER: EVEN, GRAPH: graph}, *FRAMEWORKS)
    assert found.exit_code == code
    assert found.conclusion.startswith(f"TensorFlow graph against PyTorch eager (step time, B / A): {words}")
    assert found.conclusion.endswith("No difference shown is not the same.") == ("no difference" in words)


def test_of_several_cells_the_conclusion_counts_them(tmp_path: Path) -> None:
    factors = {8: 0.5, 16: 0.8, 32: 1.0, 64: 1.5}
    medians = {
        cell.model_copy(update={"batch_size": batch}): scale(EVEN, factor if cell is GRAPH else 1.0)
        for batch, factor in factors.items()
        for cell in (EAGER, GRAPH)
    }
    found = answer(tmp_path, medians, *FRAMEWORKS)
    assert "B / A): of 4 cells 1 slower, 2 faster, 1 no difference shown; all 4 CPU cells together" in found.conclusion
    assert found.exit_code == 1


def test_what_is_computed_is_never_inferred(tmp_path: Path) -> None:
    """Who asks for two frameworks did not ask for two batches."""
    larger = GRAPH.model_copy(update={"batch_size": 8})
    with pytest.raises(Exception, match="batch_size is 64 in A, 8 in B"):
        answer(tmp_path, {EAGER: EVEN, larger: EVEN}, *FRAMEWORKS)


def test_batches_are_compared_by_sample_and_the_heading_says_so(tmp_path: Path) -> None:
    small, large = make_cell(batch_size=8), make_cell(batch_size=16)
    found = answer(tmp_path, {small: EVEN, large: scale(EVEN, 1.5)}, ["batch_size=8"], ["batch_size=16"])
    table = make_cell_table(found, sort_cells(found))
    assert [cell.label for cell in found.cells] == ["conv6 train, CPU, 32 px, PyTorch eager"]
    assert table.headings[:3] == ["cell", "A, ms per sample", "B, ms per sample"]
    assert "batch 16 against batch 8 (time per sample, B / A): faster, 0.750 (" in found.conclusion
    assert found.cells[0].value_a == pytest.approx(0.1 / 8, rel=1e-3)


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


def read_intervals(document: CompareDocument) -> list[dict[str, str]]:
    """Return what the table shows of each cell, by heading."""
    table = make_cell_table(document, document.cells)
    return [dict(zip(table.headings, row, strict=True)) for row in table.format_rows()]


def test_of_two_runs_both_intervals_stand_beside_the_verdict(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN, INFER: EVEN})
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 1.5), INFER: scale(EVEN, 1.01)})
    document = compare_runs(tmp_path)
    rows = read_intervals(document)
    for row, cell in zip(rows, document.cells, strict=True):
        joint, alone = (row[title].split(" to ") for title in ("95 % interval", "this ratio alone"))
        assert list(map(float, joint)) == pytest.approx([cell.joint_low, cell.joint_high], rel=5e-3)
        assert list(map(float, alone)) == pytest.approx([cell.ratio_low, cell.ratio_high], rel=5e-3)
    assert [row["verdict"] for row in rows] == ["slower", "within the floor"]
    lines = " ".join(list_method_lines(document))
    assert "which allows for what identical runs differ by, excludes 1 and the ratio is beyond the floor; " in lines
    assert "These intervals hold together, all of them." in lines
    (group,) = list_group_lines(document)
    assert "; this ratio alone 1.2" in group


def test_of_one_run_there_is_one_interval(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN, GRAPH: scale(EVEN, 1.2)})
    document = select_sides(tmp_path, ["a"], *FRAMEWORKS)
    (row,) = read_intervals(document)
    assert "this ratio alone" not in row
    assert document.cells[0].joint_low == pytest.approx(document.cells[0].ratio_low)  # a family of one
    lines = " ".join(list_method_lines(document))
    assert "B is called slower or faster where the 95 % interval excludes 1 (docs/compare.md)." in lines


def test_the_conclusion_and_what_is_worse_stand_before_what_is_folded(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN, make_cell(batch_size=8): EVEN})
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 1.5), make_cell(batch_size=8): EVEN})
    page = write_markdown(compare_runs(tmp_path))
    top, *folded = page.split("<details>")
    assert top.startswith("**❌ B is worse: of 2 cells 1 slower, 1 within the floor")
    assert "| conv6 train, CPU, batch 64, 32 px, PyTorch eager | 100 | 150 | 1.500 |" in top
    assert "batch 8" not in top
    assert "batch 8" in folded[0]
    assert page.count("<details>") == page.count("</details>")


def test_nothing_that_was_measured_is_read_as_markup(tmp_path: Path) -> None:
    hostile = "</details><b>|*@ada #12 `x` [y](http://z) &lt; ~~no~~"
    put_run(tmp_path, "a", {TRAIN: EVEN})
    put_run(tmp_path, "b", {TRAIN: EVEN}, environment=make_environment(hostname=hostile))
    page = write_markdown(compare_runs(tmp_path))
    for markup in ("</details><b>", "@ada", "#12", " `x`", "[y](", "http://z", "~~no", " &lt; "):
        assert markup not in page
    assert escape_comment("a|b\nc") == "a\\|b c"


def test_a_comment_stays_below_the_limit_of_github(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN})
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 2)})
    document = compare_runs(tmp_path)
    page = write_markdown(document.model_copy(update={"cells": 400 * document.cells}))
    assert "300 cells more; --json has all" in page.replace("\\", "")
    assert len(page) < 65_536
