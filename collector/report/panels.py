"""Make the figure of a question: which panels its cells make, and the names of the lines in them."""

from collections.abc import Callable

import pandas as pd

from collector.labels import FRAMEWORK_NAMES, count_gpus, label_hardware, label_panels
from collector.report.figure import FigureGroup, Limit, make_panels
from collector.report.plots.style import AnyChart
from collector.results.frames import Row, list_rows


def show_panels(
    rows: pd.DataFrame,
    plot: Callable[[pd.DataFrame], AnyChart],
    says: str,
    *,
    question: str,
    caption: str,
    omitted: str = "",
    value: str = "",
    limit: Limit | None = None,
    row_pixels: int = 0,
) -> FigureGroup:
    """Return a group with a panel for each value of `panel` of `rows`; those without any `value` are left out.

    `says`, `limit` and `row_pixels`: as of `Figure`.
    """
    has_value = rows.groupby("panel")[value].transform("count") > 0 if value and len(rows) else rows["panel"].notna()
    known = rows[has_value]
    panels = list(dict.fromkeys(known["panel"]))
    figure = make_panels(plot(known), panels, says=says, limit=limit, row_pixels=row_pixels) if panels else None
    return FigureGroup(question=question, caption=caption, figures=(figure,) if figure else (), omitted=omitted)


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
