"""Build the report's figures of what was measured: per question a caption and its plots."""

import pandas as pd

from collector.analysis import Analysis
from collector.report.figure import MAX_PANELS, FigureGroup, count_omitted, make_panels, split_panels
from collector.report.plots.measurements import (
    DURATION_PIXELS,
    MAX_CIRCLES,
    MAX_REPEATS,
    STEP_TIME_PIXELS,
    choose_repeats,
    plot_durations,
    plot_step_series,
    plot_step_times,
    thin_series,
)
from collector.report.question_figures import build_question_groups
from collector.report.ratio_figures import show_comparisons
from collector.results.collection import Collection
from collector.results.frames import Row, list_rows
from collector.tables.durations import DURATION_TITLES
from collector.units import MILLISECOND, SECOND, format_interval, format_number

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
        _show_step_series(analysis.collection, measured),
    )
    return tuple(group for group in groups if group.figures)


def _show_step_times(collection: Collection, measured: pd.DataFrame) -> FigureGroup:
    repeats = collection.results[collection.results["status"] == "ok"]
    keys = ["cell_id", "environment_id"]
    repeats = repeats.merge(measured[[*keys, "workload", "variant"]], on=keys)
    max_circles = min(MAX_CIRCLES, max(MIN_CIRCLES, MAX_ALL_CIRCLES // max(1, len(measured))))
    descriptions = {
        str(workload): _describe_step_times(rows) for workload, rows in measured.groupby("workload", sort=False)
    }
    chart = plot_step_times(measured, repeats, max_circles=max_circles) if descriptions else None
    return FigureGroup(
        question="How fast is each cell?",
        caption="Dot: step time, the geometric mean of the repeats. Line: its 95 % interval. Circles below: the step "
        "time of each repeat, also of those that do not count. Every panel starts at zero and has its own scale.",
        figures=() if chart is None else (make_panels(chart, descriptions, row_pixels=STEP_TIME_PIXELS),),
        omitted=_count_omitted_repeats(measured, max_circles, "results.csv has"),
    )


def _show_durations(measured: pd.DataFrame) -> FigureGroup:
    panels = split_panels(measured, measured["label"].to_list())
    rows = pd.concat([own for _, own in panels]) if panels else measured
    descriptions = {
        title: "; ".join(f"{row['rest']}: {_describe_durations(row)}" for row in list_rows(own))
        for title, own in panels
    }
    return FigureGroup(
        question="Where does the time of a repeat go?",
        caption="Medians over the repeats of each part. Only the timed window enters the step times.",
        figures=(make_panels(plot_durations(rows), descriptions, row_pixels=DURATION_PIXELS),) if panels else (),
    )


def _show_step_series(collection: Collection, measured: pd.DataFrame) -> FigureGroup:
    points, descriptions = _thin_widest(collection, measured)
    return FigureGroup(
        question="Is the measurement steady?",
        caption="Every step in its order; grey: the warm-up, which enters no figure. Each panel has its own scale and "
        "does not start at zero. Long series are drawn as medians of neighbouring steps with a bar over their range.",
        figures=() if points.empty else (make_panels(plot_step_series(points), descriptions),),
        omitted=_join(
            count_omitted(
                len(measured), MAX_PANELS, "cells, the widest intervals first", source="the details of each cell have"
            ),
            _count_omitted_repeats(measured, MAX_REPEATS, "samples.parquet has"),
        ),
    )


def _thin_widest(collection: Collection, measured: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the points of the cells whose intervals are the widest, and what each panel says in words."""
    if len(measured) > MAX_PANELS:
        measured = measured.sort_values("log_standard_error", ascending=False, kind="stable").head(MAX_PANELS)
    results = collection.results
    ok = results.loc[results["status"] == "ok", ["cell_id", "repeat", "environment_id"]]
    wanted = set(measured["cell_id"])
    # Of a cell with tenants, the steps of its first one: those of the others have the same numbers.
    pieces = [piece[(piece["tenant"] == 0) & piece["cell_id"].isin(wanted)] for piece in collection.steps.tabulate()]
    samples = pd.concat(pieces).merge(ok, on=["cell_id", "repeat"])
    by_row = {key: rows for key, rows in samples.groupby(["cell_id", "environment_id"])}
    descriptions, points = {}, [pd.DataFrame()]
    for row in list_rows(measured):
        own = by_row[row["cell_id"], row["environment_id"]]
        own = thin_series(own[own["repeat"].isin(choose_repeats(own))])
        points.append(own.assign(cell_id=row["cell_id"], panel=row["label"]))
        descriptions[row["label"]] = f"Step times in their order: {_describe_step_time(row)}"
    return pd.concat(points, ignore_index=True), descriptions


def _count_omitted_repeats(measured: pd.DataFrame, num_shown: int, source: str) -> str:
    most = int(measured["num_ok"].max()) if len(measured) else 0
    return count_omitted(most, num_shown, "repeats of a cell, from the fastest to the slowest", source=source)


def _join(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _describe_step_times(rows: pd.DataFrame) -> str:
    return "; ".join(_describe_step_time(row) for row in list_rows(rows))


def _describe_step_time(row: Row) -> str:
    center = format_number(row["center_step_seconds"], MILLISECOND)
    interval = format_interval(row["interval_low_seconds"], row["interval_high_seconds"], MILLISECOND)
    return f"{row['variant']}: {center} ms, 95 % interval {interval} ms"


def _describe_durations(row: Row) -> str:
    return ", ".join(f"{title} {format_number(row[name], SECOND)} s" for name, title in DURATION_TITLES.items())
