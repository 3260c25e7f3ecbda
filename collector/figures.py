"""Summary, comparisons and samples come in, the report's figures go out: per question a caption and its plots."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from collector.collection import Collection
from collector.forecast import Forecast, describe_forecast
from collector.frames import Row, list_rows
from collector.labels import label_pairs
from collector.plots.forecast import plot_forecast
from collector.plots.measurements import plot_phases, plot_ratios, plot_step_series, plot_step_times
from collector.plots.style import AnyChart, to_spec
from collector.presentation import PHASE_TITLES
from collector.units import MILLISECOND, SECOND, format_interval, format_number, format_significant

# A report must open on a phone: beyond these the tables have the rest, and the caption says so.
MAX_PANELS = 24
MAX_ROWS = 40


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One plot: a heading (may be empty), its content in words, and its Vega-Lite document."""

    title: str
    description: str
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class FigureGroup:
    """The plots that answer one question, and how to read them."""

    question: str
    caption: str
    figures: tuple[Figure, ...]
    omitted: str = ""
    """What is not drawn, in words."""


def build_figures(
    collection: Collection, summary: pd.DataFrame, frameworks: pd.DataFrame, devices: pd.DataFrame
) -> tuple[FigureGroup, ...]:
    """Return the groups that the data can fill. `summary` has labels; the others are the two comparisons."""
    measured = summary[summary["num_ok"] > 0]
    groups = (
        _show_step_times(collection, measured),
        _show_framework_ratios(frameworks[frameworks["ratio_low"].notna()]),
        _show_speedups(devices[devices["ratio_low"].notna()]),
        _show_phases(measured),
        _show_step_series(collection, measured),
    )
    return tuple(group for group in groups if group.figures)


def draw_forecast(forecast: Forecast) -> Figure:
    """Return the plot of a forecast with its answers in words."""
    return _make_figure(plot_forecast(forecast), " ".join(describe_forecast(forecast)))


def _show_step_times(collection: Collection, measured: pd.DataFrame) -> FigureGroup:
    repeats = collection.results[collection.results["status"] == "ok"]
    keys = ["cell_id", "environment_id"]
    repeats = repeats.merge(measured[[*keys, "workload", "variant"]], on=keys)
    workloads = list(measured["workload"].unique())
    figures = tuple(
        _make_figure(
            plot_step_times(rows, repeats[repeats["workload"] == workload]), _describe_step_times(rows), title=workload
        )
        for workload in workloads[:MAX_PANELS]
        for rows in [measured[measured["workload"] == workload].head(MAX_ROWS)]
    )
    return FigureGroup(
        question="How fast is each cell?",
        caption="Dot: median step time. Line: its 95 % interval. Circles below: the median of each repeat. Every panel "
        "starts at zero and has its own scale.",
        figures=figures,
        omitted=_count_omitted(len(workloads), MAX_PANELS, "workloads"),
    )


def _show_framework_ratios(pairs: pd.DataFrame) -> FigureGroup:
    return FigureGroup(
        question="Is TensorFlow faster than PyTorch?",
        caption="TensorFlow's median step time over PyTorch's, with its 95 % interval. Left of 1 TensorFlow is faster. "
        "After the colon: TensorFlow's mode and PyTorch's.",
        figures=_show_ratios(pairs, better="TensorFlow faster", worse="TensorFlow slower", above_is_better=False),
        omitted=_count_omitted(len(pairs), MAX_ROWS, "pairs"),
    )


def _show_speedups(pairs: pd.DataFrame) -> FigureGroup:
    return FigureGroup(
        question="What does the GPU gain?",
        caption="The median step time on the CPU over that on the GPU, with its 95 % interval. Right of 1 the GPU is "
        "faster.",
        figures=_show_ratios(pairs, better="GPU faster", worse="GPU slower", above_is_better=True),
        omitted=_count_omitted(len(pairs), MAX_ROWS, "pairs"),
    )


def _show_ratios(pairs: pd.DataFrame, *, better: str, worse: str, above_is_better: bool) -> tuple[Figure, ...]:
    if pairs.empty:
        return ()
    shown = pairs.assign(name=label_pairs(pairs)).head(MAX_ROWS)
    lines = zip(shown["name"], shown["ratio"].map(format_significant), strict=True)
    chart = plot_ratios(shown, better=better, worse=worse, above_is_better=above_is_better)
    return (_make_figure(chart, "; ".join(f"{name}: {ratio}" for name, ratio in lines)),)


def _show_phases(measured: pd.DataFrame) -> FigureGroup:
    shown = measured.head(MAX_ROWS)
    description = "; ".join(f"{row['label']}: {_describe_phases(row)}" for row in list_rows(shown))
    return FigureGroup(
        question="Where does the time of a repeat go?",
        caption="Medians over the repeats of each part. Only the timed window enters the step times.",
        figures=() if shown.empty else (_make_figure(plot_phases(shown), description),),
        omitted=_count_omitted(len(measured), MAX_ROWS, "cells"),
    )


def _show_step_series(collection: Collection, measured: pd.DataFrame) -> FigureGroup:
    return FigureGroup(
        question="Is the measurement steady?",
        caption="Every step in its order; grey: the warm-up, which enters no figure. Each panel has its own scale and "
        "does not start at zero. Long series are drawn as medians of neighbouring steps with a bar over their range.",
        figures=tuple(_draw_series(collection, measured)),
        omitted=_count_omitted(
            len(measured), MAX_PANELS, "cells, the widest intervals first", source="samples.parquet has"
        ),
    )


def _draw_series(collection: Collection, measured: pd.DataFrame) -> Iterator[Figure]:
    if len(measured) > MAX_PANELS:
        measured = measured.sort_values("log_standard_error", ascending=False, kind="stable").head(MAX_PANELS)
    results = collection.results
    ok = results.loc[results["status"] == "ok", ["cell_id", "repeat", "environment_id"]]
    samples = collection.samples.merge(ok, on=["cell_id", "repeat"])
    by_row = {key: rows for key, rows in samples.groupby(["cell_id", "environment_id"])}
    for row in list_rows(measured):
        chart = plot_step_series(by_row[row["cell_id"], row["environment_id"]])
        yield _make_figure(chart, f"Step times in their order: {_describe_step_time(row)}", title=row["label"])


def _describe_step_times(rows: pd.DataFrame) -> str:
    return "; ".join(_describe_step_time(row) for row in list_rows(rows))


def _describe_step_time(row: Row) -> str:
    median = format_number(row["median_step_seconds"], MILLISECOND)
    interval = format_interval(row["interval_low_seconds"], row["interval_high_seconds"], MILLISECOND)
    return f"{row['variant']}: median {median} ms, 95 % interval {interval} ms"


def _describe_phases(row: Row) -> str:
    return ", ".join(f"{title} {format_number(row[name], SECOND)} s" for name, title in PHASE_TITLES.items())


def _make_figure(chart: AnyChart, description: str, *, title: str = "") -> Figure:
    return Figure(title=title, description=description, spec=to_spec(chart))


def _count_omitted(num_all: int, num_shown: int, what: str, *, source: str = "the tables have") -> str:
    return f"Drawn are {num_shown} of {num_all} {what}; {source} all." if num_all > num_shown else ""
