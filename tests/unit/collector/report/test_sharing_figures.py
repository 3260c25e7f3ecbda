"""The figures of shared devices: every point with its interval, one panel for each cell, and each way of sharing."""

from typing import Any

import pytest

from bench.schema import Result
from collector.analysis import analyze_run
from collector.report.figure import FigureGroup
from collector.report.question_figures import draw_plot
from factories import make_result
from measured_runs import Collect, make_repeats
from shared_runs import SEVEN_OF_EIGHT, TRAINING, make_fallen_result, make_gpu_cell, make_tenants_result

ALONE = make_gpu_cell()
TOGETHER = 0


def share(tenants: int, sharing: str, seconds: float) -> list[Result]:
    """Return two repeats of a cell whose tenants' steps take so long, 1 % apart."""
    cell = make_gpu_cell(tenants=tenants, sharing=sharing)
    times = (seconds, 1.01 * seconds)
    return [
        make_tenants_result(cell, *([time],) * tenants, repeat=number) for number, time in enumerate(times, start=1)
    ]


def show(collect: Collect, *results: Result) -> tuple[FigureGroup, ...]:
    return draw_plot("tenants", analyze_run(collect(*make_repeats(ALONE, 0.1, 0.1), *results)))


def list_points(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the chart that are tenants, with whatever is drawn of each."""
    rows = [row for rows in spec["datasets"].values() for row in rows if "series" in row]
    return sorted(
        {(row["series"], row["tenants"]): row for row in rows}.values(), key=lambda row: (row["series"], row["tenants"])
    )


def test_points_are_the_ratios_and_the_cell_alone_is_where_they_begin(collect: Collect) -> None:
    results = [*share(2, "time-slicing", 0.2), *share(4, "time-slicing", 0.5), *share(2, "mps", 0.16)]
    groups = show(collect, *results)
    assert len(groups) == 2
    (together,), (slowdown,) = (group.figures for group in groups)
    assert together.title == slowdown.title == "conv6 train, GPU, batch 64, 32 px, PyTorch eager"
    expected = [("MPS", 2, 1.25), ("time-slicing", 1, 1.0), ("time-slicing", 2, 1.0), ("time-slicing", 4, 0.8)]
    found = [(row["series"], row["tenants"], row["ratio"]) for row in list_points(together.spec)]
    assert [(by, tenants) for by, tenants, _ in found] == [(by, tenants) for by, tenants, _ in expected]
    assert [ratio for *_, ratio in found] == pytest.approx([ratio for *_, ratio in expected], rel=0.01)
    ratios = [row["ratio"] for row in list_points(slowdown.spec)]
    assert ratios == pytest.approx([1.6, 1.0, 2.0, 5.0], rel=0.01)
    assert "4 tenants by time-slicing: each 5.02 times slower" in slowdown.description


def test_cells_have_panels_of_their_own_and_those_out_of_memory_none(collect: Collect) -> None:
    infer = make_gpu_cell(phase="infer")
    others = [make_result(infer), make_tenants_result(make_gpu_cell(phase="infer", tenants=2), [0.2], [0.2])]
    fallen = make_fallen_result(make_gpu_cell(tenants=8), *SEVEN_OF_EIGHT)
    groups = show(collect, *share(2, "mps", 0.2), *others, fallen)
    titles = [[figure.title for figure in group.figures] for group in groups]
    names = [f"conv6 {phase}, GPU, batch 64, 32 px, PyTorch eager" for phase in ("train", "infer")]
    assert titles == [names, names]
    panel, _ = groups[TOGETHER].figures
    assert [row["tenants"] for row in list_points(panel.spec)] == [2, 1]


def test_what_a_neighbour_does_to_each_percentile_is_drawn(collect: Collect) -> None:
    infer, train = make_gpu_cell(phase="infer", batch_size=1), make_gpu_cell(batch_size=32)
    mixed = make_gpu_cell(phase="infer", batch_size=1, tenants=2, neighbour=TRAINING)
    results = [
        result
        for repeat, factor in ((1, 1.0), (2, 1.01))
        for result in (
            make_result(infer, repeat=repeat, step_seconds=(0.01,) * 20),
            make_result(train, repeat=repeat, step_seconds=(0.05,) * 20),
            make_tenants_result(mixed, [0.04 * factor] * 20, [0.1] * 20, repeat=repeat),
        )
    ]
    (group,) = show(collect, *results)
    assert group.question == "What does a neighbour do to the latency?"
    (figure,) = group.figures
    rows = [row for rows in figure.spec["datasets"].values() for row in rows if "ratio_low" in row]
    names = [row["name"].partition(",")[0] for row in rows]
    assert names == ["p50", "p95"]  # 20 steps are too few for p99
    assert [row["ratio"] for row in rows] == pytest.approx([4.02, 4.02], rel=0.001)
    assert {row["finding"] for row in rows} == {"longer"}
