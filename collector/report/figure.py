"""The figures of the report: a plot, or a family of plots, with its heading and its content in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from collector.labels import label_panels
from collector.report.packing import NUM_DRAWN_DIGITS, Packed, pack_rows
from collector.report.plots.style import AnyChart, to_spec

# A report must open on a phone: beyond these the tables have the rest, and the caption says so.
MAX_PANELS = 24
MAX_ROWS = 40


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One plot: a heading (may be empty), its content in words, and its Vega-Lite document.

    The page filters the rows of its data sets by `cell_id`, or by `cell_id_subject` and `cell_id_reference`; rows
    without one of these always stay.
    """

    title: str
    description: str
    spec: dict[str, Any]
    panels: Mapping[str, str] = field(default_factory=dict)
    """If not empty, the page draws one plot for each of these values of the column `panel`; with each in words."""
    row_pixels: int = 0
    """If not 0, a panel is so many pixels high for each value of its column `row`."""


@dataclass(frozen=True, kw_only=True)
class FigureGroup:
    """Holds the plots that answer one question, with the caption that says how to read them."""

    question: str
    caption: str
    figures: tuple[Figure, ...]
    omitted: str = ""
    """What is not drawn, in words."""


def make_figure(chart: AnyChart, description: str, *, title: str = "") -> Figure:
    """Return what the page needs to draw the chart.

    `description`: says in words what the plot shows, for who cannot see it. `title`: stands above it.
    """
    return Figure(title=title, description=description, spec=to_spec(chart))


def make_panels(chart: AnyChart, descriptions: Mapping[str, str], *, row_pixels: int = 0) -> Figure:
    """Return the figure that the page splits into panels: one chart over the rows of all of them.

    `chart`: every row of its data sets that belongs to a panel has the column `panel`. `descriptions`: each panel, in
    the order in which they are drawn, with what it says in words. `row_pixels`: see `Figure`.
    """
    return Figure(title="", description="", spec=to_spec(chart), panels=dict(descriptions), row_pixels=row_pixels)


def pack_figure(figure: Figure) -> Packed:
    """Return a figure for the page: its document without its data sets, and these in columns."""
    return {
        "title": figure.title,
        "description": figure.description,
        "panels": [{"title": title, "description": words} for title, words in figure.panels.items()],
        "row_pixels": figure.row_pixels,
        "spec": {name: value for name, value in figure.spec.items() if name != "datasets"},
        "data": {
            name: pack_rows(rows, num_digits=NUM_DRAWN_DIGITS) for name, rows in figure.spec.get("datasets", {}).items()
        },
    }


def split_panels(rows: pd.DataFrame, labels: list[str]) -> list[tuple[str, pd.DataFrame]]:
    """Return title (`conv6 train, GPU, 32 px`) and rows of each panel, one per model, phase, device and input size.

    `labels`: of `label_workloads` and the like, one per row; the rows get what the title does not say as `rest`.
    """
    titles = label_panels(rows)
    rests = [
        ", ".join(part for part in label.split(", ") if part not in title.split(", "))
        for label, title in zip(labels, titles, strict=True)
    ]
    named = rows.assign(rest=rests, panel=titles)
    return [(str(title), group) for title, group in named.groupby("panel", sort=False)]


def count_omitted(num_all: int, num_shown: int, what: str, *, source: str = "the tables have") -> str:
    """Return how many are drawn of how many; empty where all are."""
    return f"Drawn are {num_shown} of {num_all} {what}; {source} all." if num_all > num_shown else ""
