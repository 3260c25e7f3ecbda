"""Split the cells of a question into panels, draw each, and say in words what it shows."""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from collector.labels import FRAMEWORK_NAMES, count_gpus, label_hardware, label_panels
from collector.report.figure import MAX_PANELS, Figure, FigureGroup, count_omitted, make_figure
from collector.report.plots.style import AnyChart
from collector.results.frames import Row, list_rows

MAX_SERIES, MAX_POINTS = 8, 500
"""Lines, and points without lines, of one panel: more cover each other."""
CHOICE = f"at most {MAX_SERIES} lines or {MAX_POINTS} points a panel, spread evenly over the plan"
MAX_TOLD = 12
"""Points that the text of a plot names; a reader of texts has the table for the others."""
Describe = Callable[[Row], str]


def show_panels(
    rows: pd.DataFrame,
    plot: Callable[[pd.DataFrame], AnyChart],
    describe: Describe,
    *,
    question: str,
    caption: str,
    omitted: str = "",
    value: str = "",
) -> FigureGroup:
    """Return the plots that answer one question: a figure for each panel, up to MAX_PANELS of them.

    `rows`: a row per point, with its `panel`. `plot`: draws the rows of a panel. `describe`: says a point in words.
    `question` and `caption`: stand above the plots. `omitted`: says what is left out already. `value`: a column; panels
    that have nothing in it are left out.
    """
    panels = [(str(title), found) for title, found in rows.groupby("panel", sort=False)]
    known = [(title, limit_points(found)) for title, found in panels if not value or found[value].notna().any()]
    num_points, num_drawn = sum(map(len, (found for _, found in panels))), sum(len(found) for _, found in known)
    more = count_omitted(len(known), MAX_PANELS, "panels")
    fewer = "" if more else count_omitted(num_points, num_drawn, "cells, " + CHOICE)
    return FigureGroup(
        question=question,
        caption=caption,
        figures=tuple(_draw(title, found, plot, describe, value) for title, found in known[:MAX_PANELS]),
        omitted=" ".join(filter(None, [omitted, more, fewer])),
    )


def limit_points(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what can be told apart in one panel: the first MAX_SERIES series, or else MAX_POINTS rows, evenly spread.

    The order is that of the plan.
    """
    if "series" in rows:
        return rows[rows["series"].isin(list(dict.fromkeys(rows["series"]))[:MAX_SERIES])]
    if len(rows) <= MAX_POINTS:
        return rows
    return rows.iloc[np.linspace(0, len(rows) - 1, MAX_POINTS).round().astype(int)]


def _draw(
    title: str, rows: pd.DataFrame, plot: Callable[[pd.DataFrame], AnyChart], describe: Describe, value: str
) -> Figure:
    shown = rows[rows[value].notna()] if value else rows
    return make_figure(plot(rows), _tell(map(describe, list_rows(shown.head(MAX_TOLD))), len(shown)), title=title)


def _tell(texts: Iterable[str], number: int) -> str:
    more = f"; {number - MAX_TOLD} more in the table" if number > MAX_TOLD else ""
    return "; ".join(texts) + more


def name_series(summary: pd.DataFrame) -> pd.DataFrame:
    """Return panel (work and device), series (what did it), framework, batch, precision, soundness and cell."""
    rows = list_rows(summary[["framework", "mode", "precision", "num_gpus"]])
    series = [
        ", ".join([f"{FRAMEWORK_NAMES[row['framework']]} {row['mode']}", row["precision"], *_name_gpus(row)])
        for row in rows
    ]
    hardware = name_devices(summary)
    panels = [f"{work}, {device}" for work, device in zip(label_panels(summary), hardware, strict=True)]
    named = summary[["cell_id", "batch_size", "precision"]]
    return named.assign(
        panel=panels,
        series=series,
        framework=summary["framework"].map(FRAMEWORK_NAMES),
        is_sound=summary["num_sound"] > 0,
    )


def _name_gpus(row: Row) -> list[str]:
    return [count_gpus(row["num_gpus"])] if row["num_gpus"] > 1 else []


def name_devices(summary: pd.DataFrame) -> list[str]:
    """Return the device of each cell; of one without a figure that of the run's others, where they have only one."""
    rows = list_rows(summary[["device", "num_gpus", "gpu_name", "cpu_model", "num_threads", "num_ok"]])
    known = {(row["device"], row["num_gpus"]): set[str]() for row in rows}
    for row in rows:
        if row["num_ok"]:
            known[row["device"], row["num_gpus"]].add(_name_device(row))
    return [
        next(iter(names)) if not row["num_ok"] and len(names) == 1 else _name_device(row)
        for row in rows
        for names in [known[row["device"], row["num_gpus"]]]
    ]


def _name_device(row: Row) -> str:
    if row["device"] == "gpu":
        name: str = "GPU" if pd.isna(row["gpu_name"]) else row["gpu_name"]
        return f"{row['num_gpus']} x {name}" if row["num_gpus"] > 1 else name
    return label_hardware(row["cpu_model"], row["num_threads"]) or "CPU"
