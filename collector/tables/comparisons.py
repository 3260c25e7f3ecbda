"""The tables of comparisons: pairs of cells with their ratios and verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from collector.analysis import Analysis
from collector.comparisons import (
    DEVICES,
    FRAMEWORKS,
    MODES,
    PRECISIONS,
    STRONG_SCALING,
    WEAK_SCALING,
    Comparison,
)
from collector.labels import label_hardware, label_shared
from collector.ratio_verdicts import count_differences
from collector.tables.columns import interval_column, number_column, text_column
from collector.tables.table import Column, Table, format_column, make_table
from collector.units import MILLISECOND, PERCENT, RATIO, Unit


@dataclass(frozen=True, kw_only=True)
class Heading:
    """What a comparison is called for people."""

    caption: str
    ratio: str
    unit: Unit = RATIO


HEADINGS: Mapping[str, Heading] = {
    FRAMEWORKS.name: Heading(
        caption="Frameworks: step times and their ratio, below 1 where the first is faster", ratio="time ratio"
    ),
    DEVICES.name: Heading(caption="GPU over CPU: step times and the speedup, CPU / GPU", ratio="speedup"),
    MODES.name: Heading(caption="What the mode is worth: the speedup of the first over the second", ratio="speedup"),
    PRECISIONS.name: Heading(
        caption="What the precision is worth: the speedup of the first over the second", ratio="speedup"
    ),
    WEAK_SCALING.name: Heading(
        caption="Weak scaling, the same batch per GPU: throughput over that of as many single GPUs",
        ratio="efficiency",
        unit=PERCENT,
    ),
    STRONG_SCALING.name: Heading(
        caption="Strong scaling, the same global batch: throughput over that of as many single GPUs",
        ratio="efficiency",
        unit=PERCENT,
    ),
}


def make_comparison_table(comparison: Comparison, analysis: Analysis) -> Table | None:
    """Return the pairs of a comparison with their verdicts, without those left out; None where there is none."""
    pairs = analysis.comparisons[comparison.name]
    rows = pairs[pairs["left_out"].isna()]
    if rows.empty:
        return None
    heading, hardware = HEADINGS[comparison.name], _hardware_columns(comparison)
    constants = {column.title: text for column in hardware if (text := _name_constant(column, rows))}
    columns = [
        text_column("workload", "workload"),
        Column(title="sides", sources=("subject", "reference"), format="{} / {}".format),
        number_column("first", "center_step_seconds_subject", MILLISECOND),
        number_column("second", "center_step_seconds_reference", MILLISECOND),
        number_column(heading.ratio, "ratio", heading.unit),
        interval_column("95 % interval", "ratio_low", "ratio_high", heading.unit),
        text_column("measured on", "scope"),
        text_column("verdict", "verdict"),
        text_column("after Holm's adjustment", "adjusted_verdict", is_optional=True),
        *(column for column in hardware if column.title not in constants),
        text_column("note", "note", is_optional=True),
    ]
    said_once = (f"{title}: {text}." for title, text in constants.items())
    remark = " ".join(filter(None, [count_differences(rows), *said_once]))
    return make_table(heading.caption, columns, rows.assign(workload=label_shared(rows)), remark=remark)


def _hardware_columns(comparison: Comparison) -> list[Column]:
    if comparison.same_hardware:
        return [_device_column("Hardware", "subject")]
    return [text_column("GPU", "gpu_name_subject"), _device_column("CPU", "reference")]


def _name_constant(column: Column, rows: pd.DataFrame) -> str | None:
    """Return what `column` says in every row, to be said once above the table; None where the rows differ."""
    texts = set(format_column(column, rows))
    return texts.pop() if len(texts) == 1 else None


def _device_column(title: str, side: str) -> Column:
    """Return the column of the GPU of a GPU cell, and of CPU and threads of a CPU cell."""
    sources = (f"cpu_model_{side}", f"num_threads_{side}", f"gpu_name_{side}")
    return Column(title=title, sources=sources, format=_describe_device)


def _describe_device(cpu_model: str, num_threads: int, gpu_name: str) -> str:
    return label_hardware(cpu_model, num_threads) if pd.isna(gpu_name) else gpu_name
