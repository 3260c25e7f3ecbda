"""The figures by question: what is drawn of which cells, where lines break, and what files for papers are like."""

import re
from pathlib import Path
from typing import Any, get_args

import altair as alt
import pandas as pd
import pytest

from bench.errors import UserError
from bench.schema import Shift, Suspicion
from collector.analysis import analyze_run
from collector.changes import ChangeHistory, RecordedChange
from collector.report.figure import ROWS, FigureGroup, show_panels
from collector.report.paper import number_paths, save_figure, set_width
from collector.report.plots.marks import number_segments
from collector.report.question_figures import (
    PLOTS,
    draw_plot,
    show_changes,
    show_costs,
    show_latencies,
    show_memory,
    show_roofline,
    show_speedups,
)
from factories import (
    START,
    make_cell,
    make_environment,
    make_failed_result,
    make_memory,
    make_roofline,
    make_validity,
)
from measured_runs import Collect
from price_tables import make_price, make_price_table
from runner.commands.report import FigureName
from spread_runs import GPU_PYTORCH, make_framework_pair, make_spread

PRICES = make_price_table(make_price("plain", 0.001, cpu="Xeon 2.20GHz"), make_price("card", 0.01, gpu="T4"))


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
    rows = {row["batch_size"]: row for row in list_rows_with(group, "segment")}
    assert {size: round(row["ms"]) for size, row in rows.items()} == {1: 100, 4: 200, 8: 300}
    assert len({row["segment"] for row in rows.values()}) == 3
    assert {size: row["is_sound"] for size, row in rows.items()} == {1: True, 4: True, 8: False}
    crossed = [layer for layer in group.figures[0].spec["layer"] if layer["mark"].get("shape") == "cross"]
    assert len(crossed) == 1
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


def test_a_plot_of_changes_names_them_by_what_is_short_first(collect: Collect) -> None:
    shift = Shift(ratio=1.1, low=1.05, high=1.2, p_value=1e-6, num_nights_before=7, num_nights_after=1)
    cell = make_cell()
    suspicion = Suspicion(
        matrix="smoke",
        change_id="0011aabb",
        night_run_id="night-9",
        direction="slower",
        cell_ids=(cell.cell_id,),
        num_cells=1,
        device="cpu",
        hardware="Xeon",
        first_run_id="night-8",
        seen_at=START,
        shift=shift,
        night_deviation=0.01,
    )
    history = ChangeHistory(changes=(RecordedChange(suspicion=suspicion),))
    (row,) = list_rows_with(show_changes(analyze_run(collect(*make_spread(cell, 0.1)), history=history)), "ratio")
    assert row["name"] == "night-8, not decided: conv6 train, CPU, batch 64, 32 px, PyTorch eager"


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


@pytest.mark.parametrize("name", ["frameworks", "modes", "precisions"])
def test_the_axis_of_a_file_says_what_its_ratio_is_of(name: str, collect: Collect) -> None:
    other = {
        "frameworks": make_cell(framework="tensorflow", mode="graph"),
        "modes": make_cell(mode="compiled"),
        "precisions": make_cell(precision="bf16"),
    }[name]
    environments = [make_environment(versions={"tensorflow": "2.21.0"})] if name == "frameworks" else []
    analysis = analyze_run(collect(*make_spread(make_cell(), 0.1), *make_spread(other, 0.2, *environments)))
    (group,) = draw_plot(name, analysis)
    titles = {layer["encoding"]["x"].get("title") for layer in group.figures[0].spec["layer"]} - {None}
    of = {
        "frameworks": "time of the first / time of the second",
        "modes": "time of the second / time of the first",
        "precisions": "time in fp32 / time in the first",
    }[name]
    assert titles == {f"{of}, log scale"}


def test_cost_and_speedup_are_drawn_of_what_both_devices_do(collect: Collect) -> None:
    results = [*make_spread(make_cell(device="gpu"), 0.0064, GPU_PYTORCH), *make_spread(make_cell(), 0.128)]
    analysis = analyze_run(collect(*results), prices=PRICES)
    costs = {row["machine"]: row for row in list_rows_with(show_costs(analysis), "cost")}
    assert {name: round(row["cost"], 4) for name, row in costs.items()} == {
        "X north plain": 0.002,
        "X north card (T4)": 0.001,
    }
    (speedup,) = list_rows_with(show_speedups(analysis), "finding")
    assert (speedup["name"], round(speedup["ratio"], 2)) == ("conv6 train, batch 64, 32 px, PyTorch eager", 20.0)


def test_a_file_says_how_many_rows_of_its_panel_it_draws() -> None:
    # Of the 42 rows, 41 are of the panel "a", of which 40 are drawn, and one of "b".
    rows = pd.DataFrame({"panel": ["a"] * 41 + ["b"], "row": [*range(41), 0], "name": "cell"})
    rows["name"] += " " + rows["row"].astype(str)

    def plot(shown: pd.DataFrame) -> alt.Chart:
        chart: alt.Chart = alt.Chart(shown).mark_point()
        return chart

    many, one = show_panels(rows, plot, "{name}", question="?", caption="", limit=ROWS).figures
    assert many.note == "Drawn are 40 of 41 rows, the first of the plan."
    assert many.description.startswith("Drawn are 40 of 41 rows, the first of the plan. cell 0; cell 1; ")
    assert (one.note, one.description) == ("", "cell 0")


def test_segments_end_at_missing_values() -> None:
    rows = pd.DataFrame({"series": ["a", "a", "a", "b"], "y": [1.0, None, 2.0, None]})
    assert number_segments(rows, "series", "y").to_list() == ["a / 0", "a / 1", "a / 1", "b / 1"]


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


def test_an_svg_keeps_its_proportions() -> None:
    svg = '<svg class="marks" width="200" height="50" viewBox="0 0 200 50"><g/></svg>'
    assert set_width(svg, 100, "mm") == '<svg class="marks" width="100mm" height="25mm" viewBox="0 0 200 50"><g/></svg>'


def test_files_of_several_panels_are_numbered() -> None:
    assert number_paths(Path("out/x.pdf"), 1) == [Path("out/x.pdf")]
    assert number_paths(Path("out/x.pdf"), 2) == [Path("out/x-1.pdf"), Path("out/x-2.pdf")]


def test_another_ending_is_an_error_of_the_user(collect: Collect, tmp_path: Path) -> None:
    (group,) = draw_plot("frameworks", analyze_run(collect(*make_framework_pair(1.5))))
    with pytest.raises(UserError, match=r"x\.gif: the ending says the format; it takes \.svg, \.png, \.pdf"):
        save_figure(group.figures[0], tmp_path / "x.gif", columns=1, has_title=True)
