"""Pairs of `collector.comparisons` in base units come in, tables of formatted strings for people go out."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from collector.comparisons import (
    DEVICES,
    FRAMEWORKS,
    MODES,
    PRECISIONS,
    STRONG_SCALING,
    WEAK_SCALING,
    Comparison,
)
from collector.labels import label_shared
from collector.results.frames import Row, list_rows
from collector.tables.presentation import describe_hardware
from collector.tables.view import TableView, fill_texts, format_column, format_intervals, make_view
from collector.units import MILLISECOND, PERCENT, RATIO, Unit


@dataclass(frozen=True, kw_only=True)
class Heading:
    """What a comparison is called for people."""

    caption: str
    ratio: str
    unit: Unit = RATIO


HEADINGS: Mapping[str, Heading] = {
    FRAMEWORKS.name: Heading(
        caption="Frameworks: median step times and their ratio, below 1 where the first is faster", ratio="time ratio"
    ),
    DEVICES.name: Heading(caption="GPU over CPU: median step times and the speedup, CPU / GPU", ratio="speedup"),
    MODES.name: Heading(caption="What the mode is worth: the speedup of the first over the second", ratio="speedup"),
    PRECISIONS.name: Heading(
        caption="What the precision is worth: the speedup of the first over the second", ratio="speedup"
    ),
    WEAK_SCALING.name: Heading(
        caption="Weak scaling, the same batch per GPU: throughput over that of as many single GPUs",
        ratio="efficiency, %",
        unit=PERCENT,
    ),
    STRONG_SCALING.name: Heading(
        caption="Strong scaling, the same global batch: throughput over that of as many single GPUs",
        ratio="efficiency, %",
        unit=PERCENT,
    ),
}


def present_comparison(pairs: pd.DataFrame, comparison: Comparison) -> TableView:
    """Return the pairs of `compare_cells` with their verdicts; those that were left out are not among them."""
    heading, shown = HEADINGS[comparison.name], pairs[pairs["left_out"].isna()]
    interval = "95 % interval" if heading.unit is RATIO else f"95 % interval, {heading.unit.label}"
    columns = {
        "workload": label_shared(shown),
        "sides": (shown["subject"] + " / " + shown["reference"]).to_list(),
        "first, ms": format_column(shown["median_step_seconds_subject"], MILLISECOND),
        "second, ms": format_column(shown["median_step_seconds_reference"], MILLISECOND),
        heading.ratio: format_column(shown["ratio"], heading.unit),
        interval: format_intervals(shown["ratio_low"], shown["ratio_high"], heading.unit),
        "verdict": shown["verdict"].to_list(),
        **_present_hardware(shown, comparison),
        "note": fill_texts(shown["note"]),
    }
    return make_view(heading.caption, columns)


def _present_hardware(pairs: pd.DataFrame, comparison: Comparison) -> dict[str, list[str]]:
    if comparison.same_hardware:
        return {"hardware": [_describe_device(row, "subject") for row in list_rows(pairs)]}
    return {
        "GPU": fill_texts(pairs["gpu_name_subject"]),
        "CPU": [_describe_device(row, "reference") for row in list_rows(pairs)],
    }


def _describe_device(pair: Row, side: str) -> str:
    """Return the GPU of a GPU cell, CPU and threads of a CPU cell."""
    gpu = pair[f"gpu_name_{side}"]
    return describe_hardware(pair[f"cpu_model_{side}"], pair[f"num_threads_{side}"], None) if pd.isna(gpu) else str(gpu)
