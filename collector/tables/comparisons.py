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
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.ratio_words import choose_time_digits
from collector.statistics import Estimate, invert_estimate
from collector.tables.columns import text_column
from collector.tables.ratio_columns import ratio_column, ratio_interval_column
from collector.tables.table import Column, Table, format_column, make_table
from collector.units import MILLISECOND, NUM_TIME_DIGITS, PERCENT, RATIO, Unit, format_number

SINGLE_TITLE, JOINT_TITLE = "95 %, this ratio alone", "95 %, all together"
"""What the intervals of a ratio are called where both stand beside each other."""
ESTIMATE_COLUMNS = ("ratio", "log_standard_error", "degrees_of_freedom", "p_value")


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
    num_tested = int(pairs["p_value"].notna().sum())
    columns = [
        text_column("workload", "workload"),
        Column(title="sides", sources=("subject", "reference"), format="{} / {}".format),
        _time_column("first", 0, comparison),
        _time_column("second", 1, comparison),
        ratio_column(heading.ratio, "ratio", heading.unit),
        ratio_interval_column(SINGLE_TITLE, "ratio", heading.unit),
        *([ratio_interval_column(JOINT_TITLE, "joint", heading.unit)] if num_tested > 1 else []),
        replace(text_column("verdict", "verdict"), is_finding=True),
        *(column for column in hardware if column.title not in constants),
        text_column("note", "note", is_optional=True),
    ]
    said_once = (f"{title}: {text}." for title, text in constants.items())
    remarks = [_state_tests(rows, num_tested), *said_once, describe_libraries(rows, analysis.collection)]
    shown = add_joint_intervals(rows, num_tested).assign(workload=label_shared(rows))
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


def add_joint_intervals(pairs: pd.DataFrame, num_tested: int) -> pd.DataFrame:
    """Return the tested pairs with `joint_low` and `joint_high`: intervals that hold together in 95 % of cases."""
    intervals = [
        _find_joint_interval(center, error, freedom, p_value, num_tested)
        for center, error, freedom, p_value in zip(*(pairs[name] for name in ESTIMATE_COLUMNS), strict=True)
    ]
    lows, highs = ([ends[place] for ends in intervals] for place in (0, 1))
    return pairs.assign(joint_low=pd.Series(lows, pairs.index, float), joint_high=pd.Series(highs, pairs.index, float))


def _find_joint_interval(
    center: float, error: float, freedom: float, p_value: float, num_tested: int
) -> tuple[float | None, float | None]:
    if pd.isna(p_value):
        return None, None
    estimate = Estimate(center=center, log_standard_error=error, degrees_of_freedom=freedom)
    return estimate.find_joint_interval(num_tested) or (None, None)


def _state_tests(pairs: pd.DataFrame, num_tested: int) -> str:
    """Return how many ratios were tested together, and how many of them differ; empty where none was."""
    if not num_tested:
        return ""
    verdicts = pairs.loc[pairs["p_value"].notna(), "adjusted_verdict"]
    num_different = int((verdicts != NO_DIFFERENCE).sum())
    if num_tested == 1:
        return f"1 ratio was tested: {'it differs from 1' if num_different else NO_DIFFERENCE}."
    return (
        f"{num_tested:,} ratios were tested together: {num_different:,} differ from 1 after Holm's adjustment, which "
        f"is the verdict. “{SINGLE_TITLE}” is right for a ratio that was chosen before looking, “{JOINT_TITLE}” for "
        "one that was chosen by its value."
    )


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
