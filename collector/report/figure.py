"""The figures of the report: one chart over the rows of all its panels, and how a panel is cut out of it.

`collector.report.drawn_panels` cuts them out, for the page and for the files of `benchmatrix plot`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from collector.labels import label_panels
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
