"""Build the report's figures of what was measured: per question a caption and its plots."""

import pandas as pd

from collector.analysis import Analysis
from collector.report.figure import ROWS, FigureGroup, count_omitted, make_panels, name_panels
from collector.report.plots.measurements import (
    DURATION_PIXELS,
    MAX_CIRCLES,
    STEP_TIME_PIXELS,
    plot_durations,
    plot_step_times,
)
from collector.report.question_figures import build_question_groups
from collector.report.ratio_figures import show_comparisons
from collector.results.collection import Collection
from collector.tables.durations import DURATION_TITLES

MAX_ALL_CIRCLES = 20_000
"""Repeats that a page draws as circles, of all cells together; each takes about 10 bytes in it."""
MIN_CIRCLES = 2


def build_figures(analysis: Analysis) -> tuple[FigureGroup, ...]:
    """Return the groups of figures for which the analysis has data."""
    measured = analysis.measured
    groups = (
        _show_step_times(analysis.collection, measured),
        *show_comparisons(analysis.comparisons),
        *build_question_groups(analysis),
        _show_durations(measured),
        _show_steps(measured),
    )
    return tuple(group for group in groups if group.figures or group.draws_steps)


def _show_step_times(collection: Collection, measured: pd.DataFrame) -> FigureGroup:
    repeats = collection.results[collection.results["status"] == "ok"]
    keys = ["cell_id", "environment_id"]
    repeats = repeats.merge(measured[[*keys, "workload", "variant"]], on=keys)
    max_circles = min(MAX_CIRCLES, max(MIN_CIRCLES, MAX_ALL_CIRCLES // max(1, len(measured))))
    panels = list(dict.fromkeys(measured["workload"]))
    chart = plot_step_times(measured, repeats, max_circles=max_circles) if panels else None
    says = "{variant}: {median} ms, 95 % interval {low} to {high} ms"
    most = int(measured["num_ok"].max()) if panels else 0
    return FigureGroup(
        question="How fast is each cell?",
        caption="Dot: step time, the geometric mean of the repeats. Line: its 95 % interval. Circles below: the step "
        "time of each repeat, also of those that do not count. Every panel starts at zero and has its own scale.",
        figures=()
        if chart is None
        else (make_panels(chart, panels, says=says, row_pixels=STEP_TIME_PIXELS, limit=ROWS),),
        omitted=count_omitted(
            most, max_circles, "repeats of a cell, from the fastest to the slowest", source="results.csv has"
        ),
    )


def _show_durations(measured: pd.DataFrame) -> FigureGroup:
    rows = name_panels(measured, measured["label"].to_list())
    panels = list(dict.fromkeys(rows["panel"]))
    parts = ", ".join(f"{title} {{{title}}} s" for title in DURATION_TITLES.values())
    figure = (
        make_panels(plot_durations(rows), panels, says=f"{{name}}: {parts}", row_pixels=DURATION_PIXELS, limit=ROWS)
        if panels
        else None
    )
    return FigureGroup(
        question="Where does the time of a repeat go?",
        caption="Medians over the repeats of each part. Only the timed window enters the step times.",
        figures=(figure,) if figure else (),
    )


def _show_steps(measured: pd.DataFrame) -> FigureGroup:
    return FigureGroup(
        question="Is the measurement steady?",
        caption="Steps in their order; grey: the warm-up, which enters no figure. The cells with the widest intervals "
        "come first. Each panel has its own scale and does not start at zero. Long series are drawn as medians of "
        "neighbouring steps with a bar over their range.",
        figures=(),
        draws_steps=len(measured) > 0,
    )
