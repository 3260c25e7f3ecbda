"""The tables of cells: step times, latencies, speed that lasts, memory, and where the time of a repeat goes."""

from dataclasses import replace
from functools import partial

import pandas as pd

from bench.schema import Phase
from collector.analysis import Analysis
from collector.results.cells import find_shared
from collector.tables.columns import CELL, count_column, interval_column, number_column, text_column
from collector.tables.table import Column, Table, make_table, select_known
from collector.units import (
    MILLISECOND,
    NOT_THERE,
    NUM_DIGITS,
    NUM_TIME_DIGITS,
    PERCENT,
    RATIO,
    SECOND,
    THROUGHPUT,
    choose_memory_unit,
    format_interval,
    format_number,
)


def describe_validity(num_ok: int, num_sound: int, verdicts: str, *, num_planned: int = 0) -> str:
    """Say in a few words how many repeats count, and which of those that ended ok have another verdict than `valid`.

    `valid` where none has; else as `3 of 3 count; 2 noisy`. A dash if none ended ok. `num_planned`: of how many it is
    said, where more were planned than ended ok: `2 of 3 count`.
    """
    if not num_ok:
        return NOT_THERE
    of_all = max(num_planned, num_ok)
    if not verdicts and of_all == num_ok:
        return "valid"
    if not num_sound:
        return f"none of {num_ok} sound; {verdicts}"
    counted = f"{num_sound} of {of_all} {'counts' if num_sound == 1 else 'count'}"
    return "; ".join(filter(None, [counted, verdicts]))


# Below it the two figures say the same: repeats differ by as much.
MIN_PIPELINED_DIFFERENCE = 0.02
PIPELINED_REMARK = (
    "Step time, latency and throughput are those of steps that are waited for one by one. Pipelined are steps that run "
    "back to back with one synchronisation at the end, as people train: the next step is launched while the device "
    "works on the last."
)
TENANTS_REMARK = "Of a cell with tenants, the steps are those of its first one while the others ran: see Sharing."
WAIT_COLUMN = number_column("waiting for data", "data_wait_share", PERCENT, is_optional=True)
THROUGHPUT_COLUMN = number_column("", "throughput_samples_per_s", THROUGHPUT, priority=4)
REPEATS = Column(
    title="repeats ok",
    sources=("num_ok", "num_planned"),
    format=lambda num_ok, num_planned: f"{num_ok} of {num_planned}",
    align="right",
)
VERDICT = Column(title="verdict", sources=("num_ok", "num_sound", "faults"), format=describe_validity)
NOTE = replace(text_column("note", "note", is_optional=True), is_note=True)


def make_training_table(analysis: Analysis) -> Table | None:
    """Return the step times of the cells that train; None where no cell does."""
    return _make_phase_table(
        analysis, "train", "Training: time of one step", time_columns("step time", num_digits=NUM_TIME_DIGITS)
    )


def make_inference_table(analysis: Analysis) -> Table | None:
    """Return the latencies of the cells that infer; None where no cell does."""
    percentiles = [
        number_column("p95", "p95_step_seconds", MILLISECOND),
        number_column("p99", "p99_step_seconds", MILLISECOND),
    ]
    columns = [*time_columns("step time", num_digits=NUM_TIME_DIGITS), *percentiles]
    return _make_phase_table(analysis, "infer", "Inference: latency of one batch", columns)


def make_pipelined_columns(rows: pd.DataFrame) -> list[Column]:
    """Return the columns of steps that ran back to back; none where they took what synchronised ones did."""
    differences = (rows["pipelined_step_seconds"] / rows["center_step_seconds"] - 1).abs()
    if not (differences > MIN_PIPELINED_DIFFERENCE).any():
        return []
    return [
        number_column("pipelined step", "pipelined_step_seconds", MILLISECOND, num_digits=NUM_TIME_DIGITS),
        number_column("pipelined", "pipelined_samples_per_s", THROUGHPUT),
    ]


def time_columns(title: str, *, num_digits: int = NUM_DIGITS) -> list[Column]:
    """Return the columns of the step time, called `title`, its interval and the quartiles of the steps."""
    ends = {"95 % interval": ("interval_low_seconds", "interval_high_seconds")}
    quartiles = {"IQR of steps": ("q1_step_seconds", "q3_step_seconds")}
    return [
        replace(cell_time_column(title, num_digits=num_digits), is_finding=True),
        *(interval_column(name, *own, MILLISECOND, num_digits=num_digits) for name, own in ends.items()),
        *(interval_column(name, *own, MILLISECOND, priority=1) for name, own in quartiles.items()),
    ]


def _make_phase_table(analysis: Analysis, phase: Phase, caption: str, times: list[Column]) -> Table | None:
    rows: pd.DataFrame = analysis.summary[analysis.summary["phase"] == phase]
    if rows.empty:
        return None
    pipelined = make_pipelined_columns(rows)
    columns = [
        CELL,
        *times,
        THROUGHPUT_COLUMN,
        *pipelined,
        WAIT_COLUMN,
        count_column("timed steps", "num_steps_taken"),
        REPEATS,
        VERDICT,
        NOTE,
    ]
    remarks = [PIPELINED_REMARK if pipelined else "", TENANTS_REMARK if find_shared(rows).any() else ""]
    return make_table(caption, columns, rows, remark=" ".join(filter(None, remarks)))


TIME_SOURCES = ("center_step_seconds", "least_repeat_seconds", "most_repeat_seconds", "disagreement")


def cell_time_column(title: str, *, num_digits: int = NUM_TIME_DIGITS) -> Column:
    return Column(
        title=title,
        sources=TIME_SOURCES,
        format=partial(format_cell_time, num_digits=num_digits),
        unit=MILLISECOND,
        align="right",
    )


def format_cell_time(
    seconds: float, least: float, most: float, disagreement: object, *, num_digits: int = NUM_TIME_DIGITS
) -> str:
    """Return `24.34`, or `63.98 (61.3 to 69.6 ms, repeats disagree)` of a mean that no repeat had."""
    text = format_number(None if pd.isna(seconds) else float(seconds), MILLISECOND, num_digits)
    repeats = quote_repeats(least, most, disagreement)
    return f"{text} ({repeats})" if repeats else text


def quote_repeats(least: float, most: float, disagreement: object) -> str:
    """Return `61.3 to 69.6 ms, repeats disagree`; empty where they agree."""
    if not isinstance(disagreement, str) or not disagreement:
        return ""
    return f"{format_interval(least, most, MILLISECOND)} ms, repeats disagree"


def describe_settling(flat_after_seconds: float, sustained_seconds: float) -> str:
    """Return from when on the speed was flat, in seconds, or that it was not."""
    seconds = format_number(sustained_seconds, SECOND)
    if pd.isna(flat_after_seconds):
        return f"not within {seconds} s"
    return f"{format_number(flat_after_seconds, SECOND)} s, of {seconds} s"


COLUMNS = [
    number_column("step at first", "first_sustained_step_seconds", MILLISECOND),
    number_column("step at last", "settled_step_seconds", MILLISECOND),
    number_column("last / first", "sustained_ratio", RATIO),
    Column(title="flat after", sources=("flat_after_seconds", "sustained_seconds"), format=describe_settling),
]


def make_sustained_table(analysis: Analysis) -> Table | None:
    """Return the speed of each cell whose steps ran on until it was flat; None where none did."""
    summary = analysis.summary
    ratio = summary["settled_step_seconds"] / summary["first_sustained_step_seconds"]
    rows = select_known(summary.assign(sustained_ratio=ratio), COLUMNS[:2])
    if rows.empty:
        return None
    caption = "Sustained speed: the first and the last seconds of steps that ran on, medians of the repeats that count"
    return make_table(caption, [CELL, *COLUMNS], rows)


DURATION_TITLES = {
    "import_seconds": "import",
    "build_seconds": "build",
    "first_step_seconds": "first step",
    "warmup_seconds": "warm-up",
    "steady_seconds": "timed window",
}


def make_durations_table(analysis: Analysis) -> Table | None:
    """Return how long each part of a repeat took, the medians of the repeats; None where nothing was measured."""
    rows = analysis.measured
    if rows.empty:
        return None
    durations = [number_column(title, name, SECOND) for name, title in DURATION_TITLES.items()]
    return make_table("Durations within a repeat, medians of the repeats that count", [CELL, *durations], rows)


CAPTION = "Peak memory, the largest of the repeats that count"
TITLES = {
    "peak_rss_bytes": "process, peak resident",
    "peak_cgroup_bytes": "cgroup, peak",
    "peak_memory_allocated_bytes": "GPU, peak allocated for tensors",
    "peak_memory_reserved_bytes": "GPU, peak reserved",
    "gpu_memory_before_bytes": "device, before",
    "gpu_memory_peak_bytes": "device, peak in use",
}
REMARK = (
    "For tensors: what the framework's allocator held at most; for JAX, what XLA plans for the step. In use on the "
    "device: all of it, with the driver, the context, libraries and what the framework keeps for later, as seen while "
    "the GPU was sampled. Tensors that fit a card do not show that the whole run fits it."
)

CGROUP = "peak_cgroup_bytes"


def make_memory_table(analysis: Analysis) -> Table | None:
    """Return the peaks of memory, the largest of the repeats; None where nothing was measured."""
    rows = analysis.measured
    if rows.empty:
        return None
    unit = choose_memory_unit(rows[list(TITLES)].max().dropna())
    titles = {name: title for name, title in TITLES.items() if name != CGROUP or not _is_shared(rows[CGROUP])}
    peaks = [number_column(title, name, unit, is_optional=True) for name, title in titles.items()]
    has_gpu = rows["peak_memory_allocated_bytes"].notna().any()
    return make_table(CAPTION, [CELL, *peaks], rows, remark=REMARK if has_gpu else "")


def _is_shared(peaks: "pd.Series[int]") -> bool:
    """Return whether all cells say the same peak: their cgroup, such as a container's, is older than each of them.

    The kernel keeps the peak since the cgroup was created, so the figure is of none of them.
    """
    return bool(peaks.count() > 1 and peaks.nunique() == 1)
