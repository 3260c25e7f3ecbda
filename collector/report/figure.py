"""The figures of the report: a chart for each panel of the rows that answer a question."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

import numpy as np
import pandas as pd

from collector.labels import FRAMEWORK_NAMES, count_gpus, label_hardware, label_panels
from collector.report.plots.marks import AnyChart, to_spec
from collector.results.frames import Row, list_rows
from collector.units import format_significant

MAX_TOLD = 12
"""Points that the text of a plot names; a reader of texts has the table for the others."""
UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How much a panel draws: more would cover each other."""

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
    """One panel of a plot."""

    title: str
    spec: dict[str, Any]
    """Its Vega-Lite document."""
    description: str
    """Its content in words, for who cannot see it."""
    note: str = ""
    """How many of how many things it draws; empty where it draws all."""


@dataclass(frozen=True, kw_only=True)
class FigureGroup:
    """Holds the panels that answer one question, with the caption that says how to read them."""

    question: str
    caption: str
    figures: tuple[Figure, ...]


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


def show_panels(
    rows: pd.DataFrame,
    plot: Callable[[pd.DataFrame], AnyChart],
    says: str,
    *,
    question: str,
    caption: str,
    value: str = "",
    limit: Limit | None = None,
) -> FigureGroup:
    """Return a group with a panel for each value of `panel` of `rows`; those without any `value` are left out.

    `says`: what a row says in words, with the names of columns in braces: `{name}: {ms} ms`.
    """
    has_value = rows.groupby("panel")[value].transform("count") > 0 if value and len(rows) else rows["panel"].notna()
    known = rows[has_value]
    if "series" in known:  # one has the same look in all panels
        known = known.assign(series=known["series"].astype("category"))
    figures = []
    for title in dict.fromkeys(known["panel"]):
        shown, note = limit_rows(known[known["panel"] == title], limit)
        spec = to_spec(plot(shown))
        description = " ".join(filter(None, [note, _describe_rows(spec["datasets"], says)]))
        figures.append(Figure(title=title, spec=spec, description=description, note=note))
    return FigureGroup(question=question, caption=caption, figures=tuple(figures))


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


def limit_rows(rows: pd.DataFrame, limit: Limit | None) -> tuple[pd.DataFrame, str]:
    """Return the rows of as many things as a panel draws, and of how many."""
    things = [] if limit is None else list(dict.fromkeys(rows[limit.column]))
    if limit is None or len(things) <= limit.most:
        return rows, ""
    places: Iterable[int] = range(limit.most)
    if limit.is_spread:
        places = np.linspace(0, len(things) - 1, limit.most).round().astype(int).tolist()
    kept = [things[place] for place in places]
    return rows[rows[limit.column].isin(kept)], f"Drawn are {limit.most} of {len(things):,} {limit.what}."


def _describe_rows(data: Mapping[str, Sequence[Row]], says: str) -> str:
    """Return what the rows say that have all columns of `says`, the first MAX_TOLD of them.

    Rows that stand for no cell of the run, such as where a line begins, say nothing.
    """
    names = [name for _, name, *_ in Formatter().parse(says) if name]
    rows = [row for rows in data.values() for row in rows if row.get("cell_id", "") is not None]
    known = [row for row in rows if all(name in row for name in names)]
    texts = list(dict.fromkeys(says.format_map({name: _write(row[name]) for name in names}) for row in known))
    more = f"; {len(texts) - MAX_TOLD} more in the table" if len(texts) > MAX_TOLD else ""
    return "; ".join(texts[:MAX_TOLD]) + more


def _write(value: Any) -> str:
    """Return a value in words: whole numbers with all digits, other numbers with three."""
    if value is None or value != value:
        return UNKNOWN
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() else format_significant(value)
