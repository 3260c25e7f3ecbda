"""The tables of comparisons: pairs of cells with their ratios and verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

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
from collector.libraries import describe_libraries
from collector.ratio_verdicts import count_differences
from collector.ratio_words import choose_time_digits, format_longer, is_percent
from collector.results.frames import Row, list_rows
from collector.results.intervals import read_estimate
from collector.side_settings import describe_differing_settings
from collector.statistics import Estimate, invert_estimate
from collector.tables.columns import interval_column, number_column, text_column
from collector.tables.table import Column, Table, format_column, make_table
from collector.units import MILLISECOND, NOT_THERE, NUM_TIME_DIGITS, PERCENT, format_number

INTERVAL_TITLE = "95 % interval"
"""The interval that holds together with those of all ratios that it was judged with: the one beside a verdict."""
ESTIMATE_COLUMNS = ("ratio", "log_standard_error", "degrees_of_freedom", "p_value")


@dataclass(frozen=True, kw_only=True)
class Heading:
    """What a comparison is called for people."""

    caption: str


HEADINGS: Mapping[str, Heading] = {
    FRAMEWORKS.name: Heading(caption="Frameworks: step times, and which side takes longer"),
    DEVICES.name: Heading(caption="GPU and CPU: step times, and which side takes longer"),
    MODES.name: Heading(caption="Modes: step times, and which side takes longer"),
    PRECISIONS.name: Heading(caption="Precisions: step times, and which side takes longer"),
    WEAK_SCALING.name: Heading(
        caption="Weak scaling, the same batch per GPU: throughput over that of as many single GPUs",
    ),
    STRONG_SCALING.name: Heading(
        caption="Strong scaling, the same global batch: throughput over that of as many single GPUs",
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
    num_tested = int(pairs["p_value"].notna().sum())
    columns = [
        text_column("workload", "workload"),
        Column(title="sides", sources=("subject", "reference"), format="{} / {}".format),
        _time_column("first", 0, comparison),
        _time_column("second", 1, comparison),
        *_ratio_columns(comparison),
        *(column for column in hardware if column.title not in constants),
        text_column("note", "note", is_optional=True),
    ]
    said_once = (f"{title}: {text}." for title, text in constants.items())
    collection = analysis.collection
    settings = describe_differing_settings(list_rows(rows), collection.environments)
    remarks = [count_differences(rows), *said_once, describe_libraries(rows, collection), settings]
    intervals = [_quote_interval(row, num_tested) for row in list_rows(rows[list(ESTIMATE_COLUMNS)])]
    shown = rows.assign(workload=label_shared(rows), interval=intervals)
    return make_table(heading.caption, columns, shown, remark=" ".join(filter(None, remarks)))


def _time_column(title: str, place: int, comparison: Comparison) -> Column:
    """Return the column of one side's step times, with as many digits as the ratio beside them needs."""
    return Column(
        title=title,
        sources=("center_step_seconds_subject", "center_step_seconds_reference", *ESTIMATE_COLUMNS[:3]),
        format=partial(_format_time, place, comparison),
        unit=MILLISECOND,
        align="right",
    )


def _format_time(
    place: int, comparison: Comparison, first: float, second: float, ratio: float, error: float, freedom: float
) -> str:
    seconds = (first, second)[place]
    if pd.isna(first) or pd.isna(second) or pd.isna(ratio) or comparison.measure == "efficiency":
        return format_number(seconds, MILLISECOND, NUM_TIME_DIGITS)
    estimate = Estimate(center=ratio, log_standard_error=error, degrees_of_freedom=freedom)
    slower = estimate if ratio >= 1 else invert_estimate(estimate)
    return format_number(seconds, MILLISECOND, choose_time_digits(first, second, slower))


def _ratio_columns(comparison: Comparison) -> list[Column]:
    """Return what is said of a ratio: which side takes longer, with the interval by which that is judged."""
    verdict = replace(text_column("verdict", "verdict"), is_finding=True)
    if comparison.measure == "efficiency":
        own = interval_column(INTERVAL_TITLE, "ratio_low", "ratio_high", PERCENT)
        return [number_column("efficiency", "ratio", PERCENT), own, verdict]
    interval = Column(title=INTERVAL_TITLE, sources=("interval",), format=str, align="right")
    return [verdict, interval]


def _quote_interval(pair: Row, num_tested: int) -> str:
    """Return how much longer the slower side takes, from and to, in the direction of the verdict.

    Of a tested ratio together with the others of its table; of one that was not tested by itself.
    """
    if pd.isna(pair["log_standard_error"]):
        return NOT_THERE
    ratio = read_estimate(pair, center="ratio")
    slower = ratio if ratio.center >= 1 else invert_estimate(ratio)
    _, *ends = format_longer(slower, 1 if pd.isna(pair["p_value"]) else num_tested)
    return f"{' to '.join(ends)}{' %' if is_percent(slower) else ' times'}" if ends else NOT_THERE


def _hardware_columns(comparison: Comparison) -> list[Column]:
    measured = text_column("Measured on", "scope")
    if comparison.same_hardware:
        return [measured, _device_column("Hardware", "subject")]
    return [measured, text_column("GPU", "gpu_name_subject"), _device_column("CPU", "reference")]


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
