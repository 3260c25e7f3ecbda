"""Build the report's figures of shared devices: together, each tenant, and what a neighbour does to latencies."""

from collections.abc import Callable

import altair as alt
import pandas as pd

from collector.labels import SHARING_NAMES, add_labels, count_tenants
from collector.report.figure import MAX_PANELS, MAX_ROWS, Figure, FigureGroup, count_omitted, make_figure, split_panels
from collector.report.plots.marks import CROSS_CAPTION
from collector.report.plots.measurements import plot_ratios
from collector.report.plots.sharing import plot_aggregate, plot_slowdown
from collector.results.cells import WHOLE_DEVICE
from collector.results.frames import list_rows
from collector.units import format_significant

COLUMNS = ("ratio", "ratio_low", "ratio_high")
LATENCIES = {"p50_ratio": "p50", "p95_ratio": "p95", "p99_ratio": "p99"}


def show_sharing(sharing: pd.DataFrame) -> tuple[FigureGroup, ...]:
    """Return the groups of figures of `tabulate_sharing`'s rows, labelled; without those that have nothing to draw."""
    alike = sharing[sharing["neighbour"].isna()]
    mixed = sharing[sharing["neighbour"].notna() & (sharing["role"] == "cell")]
    groups = (
        _show_together(read_ratio(alike, "aggregate_ratio")),
        _show_slowdowns(read_ratio(alike, "slowdown")),
        _show_latencies(mixed),
    )
    return tuple(group for group in groups if group.figures)


def _show_together(rows: pd.DataFrame) -> FigureGroup:
    return _show_panels(
        rows,
        plot_aggregate,
        "together {} times one alone",
        question="What do tenants get out of one device together?",
        caption="The throughput of all tenants over that of one alone on the device, with its 95 % interval where "
        f"both have two repeats. At the dashed line, sharing gains and loses nothing. {CROSS_CAPTION}",
    )


def _show_slowdowns(rows: pd.DataFrame) -> FigureGroup:
    return _show_panels(
        rows,
        plot_slowdown,
        "each {} times slower",
        question="How much slower is each tenant?",
        caption="The rate alone over that of a tenant, the geometric mean of the tenants, with its 95 % interval "
        "where both have two repeats. At the dashed line n tenants are each n times slower; below it, sharing is worth "
        f"more than taking turns. {CROSS_CAPTION}",
    )


def _show_panels(
    rows: pd.DataFrame, plot: Callable[[pd.DataFrame], alt.LayerChart], words: str, *, question: str, caption: str
) -> FigureGroup:
    """Return a group with a plot for each cell alone; `words`: of a figure in the text that stands for a plot."""
    panels = split_cells(rows)
    return FigureGroup(
        question=question,
        caption=caption,
        figures=tuple(
            make_figure(plot(found), _describe(found, words), title=title) for title, found in panels[:MAX_PANELS]
        ),
        omitted=count_omitted(len(panels), MAX_PANELS, "cells"),
    )


def _show_latencies(mixed: pd.DataFrame) -> FigureGroup:
    named = [take_ratio(mixed, column).assign(percentile=percentile) for column, percentile in LATENCIES.items()]
    rows = pd.concat(named) if len(mixed) else mixed.assign(ratio_low=None)
    rows = rows[rows["ratio_low"].notna()]
    panels = split_panels(rows, rows["label"].to_list())[:MAX_PANELS]
    return FigureGroup(
        question="What does a neighbour do to the latency?",
        caption="A percentile of the cell's steps beside its neighbour over the same percentile alone, with its 95 % "
        "interval. Right of 1 the neighbour makes it longer.",
        figures=tuple(_draw_latencies(found.head(MAX_ROWS), title) for title, found in panels),
        omitted=count_omitted(len(rows), sum(min(len(found), MAX_ROWS) for _, found in panels), "percentiles"),
    )


def _draw_latencies(rows: pd.DataFrame, title: str) -> Figure:
    rests = [sorted(rest.split(", "), key=_is_of_cell) for rest in rows["rest"]]
    names = [", ".join([percentile, *rest]) for percentile, rest in zip(rows["percentile"], rests, strict=True)]
    chart = plot_ratios(rows.assign(name=names), better="shorter", worse="longer", above_is_better=False)
    lines = (f"{name}: {format_significant(ratio)} times" for name, ratio in zip(names, rows["ratio"], strict=True))
    return make_figure(chart, "; ".join(lines), title=title)


def _is_of_cell(part: str) -> bool:
    """Return whether a part of a label is of the cell and not of its tenants, which a narrow plot shows first."""
    return "tenant" not in part and not part.startswith("beside ")


def take_ratio(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows that have an estimate in `column`, as ratio, ratio_low and ratio_high."""
    return read_ratio(rows[rows[column].notna()], column)


def read_ratio(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return all rows with the estimate of `column` as ratio, ratio_low and ratio_high, and whether they are sound."""
    ends = ("", "_low", "_high")
    ratios = {name: rows[f"{column}{end}"] for name, end in zip(COLUMNS, ends, strict=True)}
    return rows.assign(is_sound=rows["num_sound"] > 0, **ratios)


def split_cells(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return a panel for each cell: its name without its tenants, and its rows, the cell alone before them.

    Rows without a ratio are among them, for lines break there; a cell without any ratio has no panel.
    """
    if rows.empty:
        return []
    names = add_labels(rows.assign(tenants=1, sharing=WHOLE_DEVICE))["label"]
    alone = pd.DataFrame({"tenants": [1], "sharing": [WHOLE_DEVICE], "ratio": [1.0], "is_sound": [True]})
    return [
        (str(name), pd.concat([alone, found], ignore_index=True))
        for name, found in rows.groupby(names, sort=False)
        if found["ratio"].notna().any()
    ]


def _describe(rows: pd.DataFrame, words: str) -> str:
    """Return what each point says, but for the cell alone."""
    return "; ".join(
        f"{count_tenants(row['tenants'])} by {SHARING_NAMES[row['sharing']]}: "
        f"{words.format(format_significant(row['ratio'])) if pd.notna(row['ratio']) else 'not compared'}"
        f"{'' if row['is_sound'] else ', not under sound conditions'}"
        for row in list_rows(rows.iloc[1:])
    )
