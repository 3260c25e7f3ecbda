"""The figures: what is drawn of which cells, where lines break, and what files for papers are like."""

import re
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest

from bench.schema import Result
from collector.analysis import analyze_run
from collector.report.charts import number_paths, plot_ratios, save_figure, set_width, to_spec
from collector.report.figures import (
    PLOTS,
    ROWS,
    FigureGroup,
    draw_plot,
    show_latencies,
    show_memory,
    show_panels,
    show_roofline,
)
from factories import make_cell, make_failed_result, make_memory, make_result, make_roofline, make_validity
from measured_runs import Collect, make_framework_pair, make_repeats, make_spread
from runner.commands.report import FigureName
from shared_runs import SEVEN_OF_EIGHT, TRAINING, make_fallen_result, make_gpu_cell, make_tenants_result


def list_rows_with(group: FigureGroup, column: str) -> list[dict[str, Any]]:
    """Return the rows of the first figure's data that have a column, each once."""
    (spec,) = [figure.spec for figure in group.figures[:1]]
    return list({str(row): row for rows in spec["datasets"].values() for row in rows if column in row}.values())


def test_a_line_breaks_at_a_batch_without_a_figure_and_an_unsound_one_is_crossed(collect: Collect) -> None:
    cells = {size: make_cell(batch_size=size) for size in (1, 2, 4, 8)}
    results = [
        *make_spread(cells[1], 0.1),
        make_failed_result(cells[2], status="oom"),
        *make_spread(cells[4], 0.2),
        *make_spread(cells[8], 0.3, validity=make_validity("contaminated")),
    ]
    group = show_latencies(analyze_run(collect(*results)))
    rows = {row["batch_size"]: row for row in list_rows_with(group, "line")}
    points, line = ({size: row[name] and round(row[name]) for size, row in rows.items()} for name in ("ms", "line"))
    assert points == {1: 100, 2: None, 4: 200, 8: 300}
    assert line == {1: 100, 2: None, 4: 200, 8: None}
    (crosses,) = [layer for layer in group.figures[0].spec["layer"] if layer["mark"].get("shape") == "cross"]
    assert crosses["transform"] == [{"filter": "datum.is_sound === false"}]
    assert {size: row["is_sound"] for size, row in rows.items()} == {1: True, 2: False, 4: True, 8: False}
    (panel,) = group.figures
    assert "PyTorch eager, fp32, batch 4: 200 ms" in panel.description


def test_the_roofline_is_intensity_against_rate_under_the_roof_of_the_device(collect: Collect) -> None:
    # Inference: 19.7 GFLOP over 9.84 MB are 2,002 FLOP/byte. A peak of 4 TFLOP/s and 1,000 GB/s meet at 4.
    roofline = make_roofline(
        flops_per_step=19_696_779_264,
        min_bytes_per_step=9_839_400,
        achieved_flops_per_second=19_696_779_264 / 0.0098,
        peak_flops_per_second=4e12,
        peak_bytes_per_second=1e12,
    )
    cell = make_cell(device="gpu", phase="infer")
    group = show_roofline(analyze_run(collect(*make_spread(cell, 0.0098, roofline=roofline))))
    (point,) = list_rows_with(group, "name")
    assert (point["intensity"], point["tera"]) == pytest.approx((2000, 2), rel=0.01)
    corners = sorted((row["intensity"], row["tera"]) for row in list_rows_with(group, "roof"))
    assert corners == [pytest.approx(corner) for corner in [(1, 1), (4, 4), (25 * 19_696_779_264 / 9_839_400, 4)]]
    assert [figure.title for figure in group.figures] == ["Tesla T4"]


def test_memory_is_drawn_under_what_cards_leave_for_tensors(collect: Collect) -> None:
    cells = [make_cell(device="gpu", batch_size=size) for size in (8, 16)]
    results = [
        result
        for number, cell in enumerate(cells, start=1)
        for result in make_spread(cell, 0.1, memory=make_memory(peak_memory_allocated_bytes=number * 2**30))
    ]
    group = show_memory(analyze_run(collect(*results)))
    assert sorted(row["gib"] for row in list_rows_with(group, "batch_size")) == [1.0, 2.0]
    # 15,360 MiB of a T4, less 616 of the driver and 768 of the context.
    limits = {row["card"]: row["gib"] for row in list_rows_with(group, "card")}
    assert limits["T4, 16 GB: 13.6 GiB"] == pytest.approx((15_360 - 616 - 768) / 1024)
    assert len(limits) == 5


def test_a_ratio_is_called_different_where_its_interval_excludes_1_and_one_that_is_missing_keeps_its_row() -> None:
    nan = float("nan")
    pairs = pd.DataFrame(
        [
            ("slower", 1.2, 1.1, 1.3, True),
            ("faster", 0.8, 0.7, 0.9, True),
            ("no difference shown", 1.1, 0.9, 1.3, False),
            ("one repeat: no interval", 2.0, nan, nan, True),
            ("one repeat: no interval", nan, nan, nan, True),
        ],
        columns=["name", "ratio", "ratio_low", "ratio_high", "is_sound"],
    ).assign(row=range(5))
    spec = to_spec(plot_ratios(pairs, better="faster", worse="slower", above_is_better=False, of="new / old"))
    rows = [row for rows in spec["datasets"].values() for row in rows if "finding" in row]
    assert [row["finding"] for row in rows] == pairs["name"].to_list()
    (missing,) = [layer for layer in spec["layer"] if layer["encoding"].get("text") == {"value": "not compared"}]
    assert missing["transform"] == [{"filter": "!isValid(datum.ratio)"}]
    (title,) = {layer["encoding"]["x"].get("title") for layer in spec["layer"] if "x" in layer["encoding"]} - {None}
    assert title == "new / old, log scale"


def test_a_file_says_how_many_rows_of_its_panel_it_draws() -> None:
    names = [f"cell {number}" for number in range(42)]
    rows = pd.DataFrame({"panel": ["a"] * 41 + ["b"], "name": names, "ratio": 1.0, "ratio_low": 0.9, "ratio_high": 1.1})

    def plot(shown: pd.DataFrame) -> Any:
        return plot_ratios(shown, better="", worse="", above_is_better=True, of="")

    many, one = show_panels(rows, plot, "{name}", question="?", caption="", value="ratio", limit=ROWS).figures
    assert many.note == "Drawn are 40 of 41 rows, the first of the plan."
    assert many.description.startswith("Drawn are 40 of 41 rows, the first of the plan. cell 0; cell 1; ")
    assert (one.note, one.description) == ("", "cell 41")


def test_the_command_knows_every_plot() -> None:
    assert get_args(FigureName) == tuple(PLOTS)


def test_a_figure_for_a_paper_is_as_wide_as_a_column_and_a_pdf_has_its_fonts(collect: Collect, tmp_path: Path) -> None:
    (group,) = draw_plot("frameworks", analyze_run(collect(*make_framework_pair(1.5))))
    (figure,) = group.figures
    for name in ("x.svg", "x.pdf"):
        save_figure(figure, tmp_path / name, columns=1, has_title=True)
    svg = (tmp_path / "x.svg").read_text()
    assert "<svg xmlns" in svg
    assert 'width="88.9mm"' in svg
    assert "TensorFlow graph / PyTorch eager" in svg
    pdf = (tmp_path / "x.pdf").read_bytes()
    assert b"/FontFile" in pdf
    assert re.search(rb"/MediaBox \[0 0 25[12]", pdf)  # points: 88.9 mm are 3.5 inches of 72


def test_an_svg_keeps_its_proportions_and_files_of_several_panels_are_numbered() -> None:
    svg = '<svg class="marks" width="200" height="50" viewBox="0 0 200 50"><g/></svg>'
    assert set_width(svg, 100, "mm") == '<svg class="marks" width="100mm" height="25mm" viewBox="0 0 200 50"><g/></svg>'
    assert number_paths(Path("out/x.pdf"), 1) == [Path("out/x.pdf")]
    assert number_paths(Path("out/x.pdf"), 2) == [Path("out/x-1.pdf"), Path("out/x-2.pdf")]


ALONE = make_gpu_cell()


def share(tenants: int, sharing: str, seconds: float) -> list[Result]:
    """Return two repeats of a cell whose tenants' steps take so long, 1 % apart."""
    cell = make_gpu_cell(tenants=tenants, sharing=sharing)
    times = enumerate((seconds, 1.01 * seconds), start=1)
    return [make_tenants_result(cell, *([time],) * tenants, repeat=number) for number, time in times]


def show(collect: Collect, *results: Result) -> tuple[FigureGroup, ...]:
    return draw_plot("tenants", analyze_run(collect(*make_repeats(ALONE, 0.1, 0.1), *results)))


def list_points(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the chart that are tenants, with whatever is drawn of each."""
    rows = [row for rows in spec["datasets"].values() for row in rows if row.get("ratio") and "series" in row]
    return sorted(
        {(row["series"], row["tenants"]): row for row in rows}.values(), key=lambda row: (row["series"], row["tenants"])
    )


def test_points_are_the_ratios_from_the_cell_alone_on_and_cells_have_panels_of_their_own(collect: Collect) -> None:
    infer, fallen = make_gpu_cell(phase="infer"), make_fallen_result(make_gpu_cell(tenants=8), *SEVEN_OF_EIGHT)
    shared = [*share(2, "time-slicing", 0.2), *share(4, "time-slicing", 0.5), *share(2, "mps", 0.16)]
    others = [make_result(infer), make_tenants_result(make_gpu_cell(phase="infer", tenants=2), [0.2], [0.2])]
    (together,) = (group.figures for group in show(collect, *shared, *others, fallen))
    names = [f"conv6 {phase}, GPU, batch 64, 32 px, PyTorch eager" for phase in ("train", "infer")]
    assert [figure.title for figure in together] == names
    expected = [("MPS", 2, 1.25), ("time-slicing", 1, 1.0), ("time-slicing", 2, 1.0), ("time-slicing", 4, 0.8)]
    found = [(row["series"], row["tenants"], row["ratio"]) for row in list_points(together[0].spec)]
    assert [(by, tenants) for by, tenants, _ in found] == [(by, tenants) for by, tenants, _ in expected]
    assert [ratio for *_, ratio in found] == pytest.approx([ratio for *_, ratio in expected], rel=0.01)
    assert "4 tenants by time-slicing: together 0.796 times one alone" in together[0].description


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
