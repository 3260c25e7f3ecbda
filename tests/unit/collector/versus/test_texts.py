"""The terminal and Markdown show the interval that each verdict of `compare` is read from."""

from pathlib import Path

import pytest

from collector.versus.document import CompareDocument
from collector.versus.method_texts import list_method_lines
from collector.versus.texts import list_group_lines, make_cell_table
from factories import make_cell
from two_runs import EVEN, INFER, TRAIN, compare_runs, put_run, scale, select_sides

TENSORFLOW = make_cell(framework="tensorflow", mode="graph")
SIDES = ["framework=pytorch", "mode=eager"], ["framework=tensorflow", "mode=graph"]


def read_intervals(document: CompareDocument) -> list[dict[str, str]]:
    """Return what the table shows of each cell, by heading."""
    table = make_cell_table(document, document.cells)
    return [dict(zip(table.headings, row, strict=True)) for row in table.format_rows()]


def test_of_two_runs_both_intervals_stand_beside_the_verdict(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN, INFER: EVEN})
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 1.5), INFER: scale(EVEN, 1.01)})
    document = compare_runs(tmp_path)
    differs, same = read_intervals(document)
    for row, cell in zip((differs, same), document.cells, strict=True):
        assert cell.joint_low is not None
        assert cell.ratio_low is not None
        # The default noise between runs is wider than these repeats.
        assert [float(row[title].split(" to ")[0]) for title in ("95 % interval", "this ratio alone")] == [
            pytest.approx(low, rel=5e-3) for low in (cell.joint_low, cell.ratio_low)
        ]
    assert (differs["verdict"].partition(":")[0], same["verdict"]) == ("slower", "within the floor")
    assert float(differs["95 % interval"].split(" to ")[0]) > 1
    low, high = map(float, same["this ratio alone"].split(" to "))
    assert 1 / 1.087 < low < high < 1.087
    lines = " ".join(list_method_lines(document))
    assert "Verdicts on 2 cells and 1 group of cells together: by their 95 % intervals, which hold together" in lines
    assert "allows for what identical runs differ by" in lines
    assert "B is called slower or faster where the 95 % interval excludes 1 and the ratio is beyond the floor" in lines
    (group,) = list_group_lines(document)
    assert "; this ratio alone 1.2" in group


def test_of_one_run_there_is_one_interval(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN, TENSORFLOW: scale(EVEN, 1.2)})
    document = select_sides(tmp_path, ["a"], *SIDES)
    (row,) = read_intervals(document)
    assert "this ratio alone" not in row
    assert document.cells[0].joint_low == pytest.approx(document.cells[0].ratio_low)  # a family of one
    lines = " ".join(list_method_lines(document))
    assert "B is called slower or faster where the 95 % interval excludes 1." in lines
    assert "identical runs differ by." not in lines
