"""The tables of comparisons: pairs of cells with their ratios and verdicts."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from bench.schema import Environment
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
from collector.machines import SIDES
from collector.ratio_words import count_differences, quote_longer
from collector.results.frames import Row, list_rows
from collector.results.intervals import read_estimate
from collector.statistics import invert_estimate
from collector.tables.columns import interval_column, number_column, text_column
from collector.tables.table import Column, Table, format_column, make_table
from collector.units import MILLISECOND, NOT_THERE, PERCENT

INTERVAL_TITLE = "95 % interval"
"""The interval that holds together with those of all ratios that it was judged with: the one beside a verdict."""
ESTIMATE_COLUMNS = ("ratio", "log_standard_error", "degrees_of_freedom", "p_value")


CAPTIONS: Mapping[str, str] = {
    FRAMEWORKS.name: "Frameworks: step times, and which side takes longer",
    DEVICES.name: "GPU and CPU: step times, and which side takes longer",
    MODES.name: "Modes: step times, and which side takes longer",
    PRECISIONS.name: "Precisions: step times, and which side takes longer",
    WEAK_SCALING.name: "Weak scaling, the same batch per GPU: throughput over that of as many single GPUs",
    STRONG_SCALING.name: "Strong scaling, the same global batch: throughput over that of as many single GPUs",
}
SETTINGS: Mapping[str, str] = {
    "memory_format": "layout of images",
    "optimizer": "optimizer",
    "cuda_graph": "use of CUDA graphs",
}
"""The settings that a mode or a precision brings along, by their names in the environment, in words."""
NUM_TIME_DIGITS = 4
"""Significant digits of the times beside a ratio, which has three digits after the point."""


def make_comparison_table(comparison: Comparison, analysis: Analysis) -> Table | None:
    """Return the pairs of a comparison with their verdicts, without those left out; None where there is none."""
    pairs = analysis.comparisons[comparison.name]
    rows = pairs[pairs["left_out"].isna()]
    if rows.empty:
        return None
    hardware = _hardware_columns(comparison)
    constants = {column.title: text for column in hardware if (text := _name_constant(column, rows))}
    num_tested = int(pairs["p_value"].notna().sum())
    columns = [
        text_column("workload", "workload"),
        Column(title="sides", sources=("subject", "reference"), format="{} / {}".format),
        number_column("first", "center_step_seconds_subject", MILLISECOND, num_digits=NUM_TIME_DIGITS),
        number_column("second", "center_step_seconds_reference", MILLISECOND, num_digits=NUM_TIME_DIGITS),
        *_ratio_columns(comparison),
        *(column for column in hardware if column.title not in constants),
        text_column("note", "note", is_optional=True),
    ]
    said_once = (f"{title}: {text}." for title, text in constants.items())
    collection = analysis.collection
    settings = _describe_settings(comparison, list_rows(rows), collection.environments)
    remarks = [count_differences(rows), *said_once, describe_libraries(rows, collection), settings]
    intervals = [_quote_interval(row, num_tested) for row in list_rows(rows[list(ESTIMATE_COLUMNS)])]
    shown = rows.assign(workload=label_shared(rows), interval=intervals)
    return make_table(CAPTIONS[comparison.name], columns, shown, remark=" ".join(filter(None, remarks)))


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
    return quote_longer(slower, 1 if pd.isna(pair["p_value"]) else num_tested) or NOT_THERE


def _describe_settings(comparison: Comparison, pairs: list[Row], environments: Mapping[str, Environment]) -> str:
    """Return as a sentence in which SETTINGS the sides of a pair differ, with the values; empty where in none.

    Of several pairs the first that differs counts; a setting that one side does not record is left out. Of frameworks
    `collector.libraries` says how they differ.
    """
    found: dict[str, str] = {}
    for pair in pairs if comparison is not FRAMEWORKS else ():
        sides = [environments.get(str(pair[f"environment_id_{side}"])) for side in SIDES]
        for name, words in SETTINGS.items():
            values = [side.settings[name] for side in sides if side and name in side.settings]
            if len(values) == 2 and values[0] != values[1]:
                found.setdefault(name, f"{words} {' / '.join(map(_write_setting, values))}")
    if not found:
        return ""
    texts = "; ".join(found[name] for name in SETTINGS if name in found)
    return f"The sides differ in settings, too: {texts}. How much of a ratio that explains is not known."


def _write_setting(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


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
