"""The figures of the report: a plot with its heading and its content in words."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from collector.labels import label_panels
from collector.report.plots.style import AnyChart, to_spec

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
    """Holds the plots that answer one question, with the caption that says how to read them."""

    question: str
    caption: str
    figures: tuple[Figure, ...]
    omitted: str = ""
    """What is not drawn, in words."""


def make_figure(chart: AnyChart, description: str, *, title: str = "") -> Figure:
    """Return the figure of `chart`."""
    return Figure(title=title, description=description, spec=to_spec(chart))


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
