"""The figures of the report: one chart over the rows of all its panels, and how a panel is cut out of it.

The page draws a panel when it comes into view, from the rows that pass the filter (templates/scripts/panels.js);
`benchmatrix plot` writes the same panels to files (collector/report/drawn_panels.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from collector.labels import label_panels
from collector.report.packing import NUM_DRAWN_DIGITS, Packed, Pools, pack_rows
from collector.report.plots.style import AnyChart, to_spec


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How much a panel draws: more would cover each other. A filter chooses others."""

    column: str
    """What counts as one thing: the rows with one value of this column."""
    most: int
    what: str
    """The things with the rule by which they are chosen, in words."""
    is_spread: bool = False
    """Whether they are chosen evenly over all; else they are the first ones."""


ROWS = Limit(column="row", most=40, what="rows, the first of the plan")
LINES = Limit(column="series", most=8, what="lines, the first by name")
POINTS = Limit(column="cell_id", most=500, what="points, spread evenly over the plan", is_spread=True)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One plot, or one for each of its panels.

    Rows of its data sets are filtered by `cell_id`, or by `cell_id_subject` and `cell_id_reference`; rows without one
    of these always stay.
    """

    spec: dict[str, Any]
    """Its Vega-Lite document."""
    title: str = ""
    description: str = ""
    """Its content in words, where it has no panels."""
    panels: Sequence[str] = ()
    """If not empty, there is one plot for each of these values of the column `panel`; rows without it are in all."""
    says: str = ""
    """What a row says in words, with the names of columns in braces: `{name}: {ms} ms`."""
    row_pixels: int = 0
    """If not 0, a panel is so many pixels high for each value of its column `row`."""
    limit: Limit | None = None
    note: str = ""
    """How many of how many things a panel that was cut out draws; empty where it draws all."""


@dataclass(frozen=True, kw_only=True)
class FigureGroup:
    """Holds the plots that answer one question, with the caption that says how to read them."""

    question: str
    caption: str
    figures: tuple[Figure, ...]
    omitted: str = ""
    """What is not drawn, whatever the filter, in words."""
    draws_steps: bool = False
    """Whether the page draws the steps of each cell here, from what it has for the details of cells."""

    @property
    def num_panels(self) -> int:
        """How many plots the page can draw of it."""
        return sum(max(1, len(figure.panels)) for figure in self.figures)


def place_groups(groups: Sequence[FigureGroup]) -> list[tuple[FigureGroup, str]]:
    """Return each group with its place among the others on a wide page, the class by which the page's style knows it.

    `several`: the row is its own, as it has several plots; `lone`: as nothing stands beside its only plot, whose
    caption does then. Empty: it shares its row with another one.
    """
    places: list[str] = []
    for group in groups:
        if group.draws_steps or group.num_panels > 1:
            places.append("several")
        elif places and places[-1] == "lone":
            places[-1:] = ["", ""]
        else:
            places.append("lone")
    return list(zip(groups, places, strict=True))


def make_figure(chart: AnyChart, description: str, *, title: str = "") -> Figure:
    """Return what the page needs to draw the chart, which has no panels.

    `description`: says in words what the plot shows, for who cannot see it. `title`: stands above it.
    """
    return Figure(title=title, description=description, spec=to_spec(chart))


def make_panels(
    chart: AnyChart, panels: Sequence[str], *, says: str, row_pixels: int = 0, limit: Limit | None = None
) -> Figure:
    """Return the figure that is split into panels: one chart over the rows of all of them.

    `chart`: every row of its data sets that belongs to a panel has the column `panel`. For the others see `Figure`.
    """
    return Figure(spec=to_spec(chart), panels=tuple(panels), says=says, row_pixels=row_pixels, limit=limit)


def pack_figure(figure: Figure, pools: Pools | None = None) -> Packed:
    """Return a figure for the page: its document without its data sets, and these in columns."""
    limit = figure.limit
    return {
        "title": figure.title,
        "description": figure.description,
        "panels": list(figure.panels),
        "says": figure.says,
        "row_pixels": figure.row_pixels,
        "limit": None if limit is None else vars(limit),
        "spec": {name: value for name, value in figure.spec.items() if name != "datasets"},
        "data": {
            name: pack_rows(rows, num_digits=NUM_DRAWN_DIGITS, pools=pools)
            for name, rows in figure.spec.get("datasets", {}).items()
        },
    }


def name_panels(rows: pd.DataFrame, labels: list[str]) -> pd.DataFrame:
    """Return the rows with their `panel` (`conv6 train, GPU, 32 px`) and, as `rest`, what else their label says.

    A panel has one model, phase, device and input size. `labels`: of `label_workloads` and the like, one per row.
    """
    titles = label_panels(rows)
    rests = [
        ", ".join(part for part in label.split(", ") if part not in title.split(", "))
        for label, title in zip(labels, titles, strict=True)
    ]
    return number_rows(rows.assign(rest=rests, panel=titles))


def number_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with their number in their panel as `row`, from 0."""
    return rows.assign(row=rows.groupby("panel", sort=False).cumcount())


def count_omitted(num_all: int, num_shown: int, what: str, *, source: str) -> str:
    """Return how many are drawn of how many, and where all are; empty where all are drawn."""
    return f"Drawn are {num_shown} of {num_all} {what}; {source} all." if num_all > num_shown else ""
