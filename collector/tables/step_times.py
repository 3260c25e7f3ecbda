"""The tables of step times: of training, and of inference with its percentiles."""

from dataclasses import replace

import pandas as pd

from bench.schema import Phase
from collector.analysis import Analysis
from collector.results.cells import find_shared
from collector.tables.cell_times import cell_time_column
from collector.tables.columns import CELL, count_column, interval_column, number_column, text_column
from collector.tables.table import Column, Table, make_table
from collector.units import MILLISECOND, NOT_THERE, NUM_DIGITS, NUM_TIME_DIGITS, PERCENT, THROUGHPUT


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
