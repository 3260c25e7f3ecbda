"""Build the report's figures of what was measured: per question a caption and its plots."""

from collections.abc import Iterator

import pandas as pd

from collector.analysis import Analysis
from collector.report.figure import MAX_PANELS, MAX_ROWS, Figure, FigureGroup, count_omitted, make_figure
from collector.report.plots.measurements import (
    MAX_CIRCLES,
    MAX_REPEATS,
    plot_durations,
    plot_step_series,
    plot_step_times,
)
from collector.report.question_figures import build_question_groups
from collector.report.ratio_figures import show_comparisons
from collector.results.collection import Collection
from collector.results.frames import Row, list_rows
from collector.tables.durations import DURATION_TITLES
from collector.units import MILLISECOND, SECOND, format_interval, format_number


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
    workloads = list(measured["workload"].unique())
    figures = tuple(
        make_figure(
            plot_step_times(rows, repeats[repeats["workload"] == workload]), _describe_step_times(rows), title=workload
        )
        for workload in workloads[:MAX_PANELS]
        for rows in [measured[measured["workload"] == workload].head(MAX_ROWS)]
    )
    return FigureGroup(
        question="How fast is each cell?",
        caption="Dot: step time, the geometric mean of the repeats. Line: its 95 % interval. Circles below: the step "
        "time of each repeat, also of those that do not count. Every panel starts at zero and has its own scale.",
        figures=figures,
        omitted=_join(
            count_omitted(len(workloads), MAX_PANELS, "workloads"),
            _count_omitted_repeats(measured, MAX_CIRCLES, "results.csv has"),
        ),
    )


def _show_durations(measured: pd.DataFrame) -> FigureGroup:
    shown = measured.head(MAX_ROWS)
    description = "; ".join(f"{row['label']}: {_describe_durations(row)}" for row in list_rows(shown))
    return FigureGroup(
        question="Where does the time of a repeat go?",
        caption="Medians over the repeats of each part. Only the timed window enters the step times.",
        figures=() if shown.empty else (make_figure(plot_durations(shown), description),),
        omitted=count_omitted(len(measured), MAX_ROWS, "cells"),
    )


def _show_step_series(collection: Collection, measured: pd.DataFrame) -> FigureGroup:
    return FigureGroup(
        question="Is the measurement steady?",
        caption="Every step in its order; grey: the warm-up, which enters no figure. Each panel has its own scale and "
        "does not start at zero. Long series are drawn as medians of neighbouring steps with a bar over their range.",
        figures=tuple(_draw_series(collection, measured)),
        omitted=_join(
            count_omitted(len(measured), MAX_PANELS, "cells, the widest intervals first", source="samples.parquet has"),
            _count_omitted_repeats(measured, MAX_REPEATS, "samples.parquet has"),
        ),
    )


def _draw_series(collection: Collection, measured: pd.DataFrame) -> Iterator[Figure]:
    if len(measured) > MAX_PANELS:
        measured = measured.sort_values("log_standard_error", ascending=False, kind="stable").head(MAX_PANELS)
    results = collection.results
    ok = results.loc[results["status"] == "ok", ["cell_id", "repeat", "environment_id"]]
    samples = collection.samples
    # Of a cell with tenants, the steps of its first one: those of the others have the same numbers.
    samples = samples[samples["tenant"] == 0].merge(ok, on=["cell_id", "repeat"])
    by_row = {key: rows for key, rows in samples.groupby(["cell_id", "environment_id"])}
    for row in list_rows(measured):
        chart = plot_step_series(by_row[row["cell_id"], row["environment_id"]])
        yield make_figure(chart, f"Step times in their order: {_describe_step_time(row)}", title=row["label"])


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
