"""A Collection comes in, tables in base units go out: one row per cell, per failure, per comparison.

Only repeats with status ok enter a figure. Repeats are grouped by cell and environment: a cell that ran in two
environments has two rows, never one.
"""

import numpy as np
import pandas as pd

from collector.collection import Collection
from collector.frames import (
    CELL_COLUMNS,
    ENVIRONMENT_COLUMNS,
    MEMORY_COLUMNS,
    PHASE_COLUMNS,
    Columns,
    Row,
    list_rows,
    make_frame,
)
from collector.statistics import SEED, Estimate, FloatArray, compute_percentile, compute_quartiles, estimate_median

SUMMARY_COLUMNS: Columns = {
    "cell_id": "str",
    **CELL_COLUMNS,
    **{name: dtype for name, dtype in ENVIRONMENT_COLUMNS.items() if name != "hostname"},
    "num_environments": "int64",
    "num_planned": "int64",
    "num_ok": "int64",
    "num_steady": "int64",
    "num_steps_taken": "int64",
    "median_step_seconds": "float64",
    "interval_low_seconds": "float64",
    "interval_high_seconds": "float64",
    "log_standard_error": "float64",
    "degrees_of_freedom": "float64",
    "interval_reason": "str",
    "q1_step_seconds": "float64",
    "q3_step_seconds": "float64",
    "p95_step_seconds": "float64",
    "p99_step_seconds": "float64",
    "throughput_samples_per_s": "float64",
    **MEMORY_COLUMNS,
    **PHASE_COLUMNS,
    "note": "str",
}
FAILURE_COLUMNS: Columns = {
    "cell_id": "str",
    **CELL_COLUMNS,
    "repeat": "int64",
    "status": "str",
    "num_attempts": "int64",
    "attempt": "str",
    "error_kind": "str",
    "error_message": "str",
    "exit_code": "Int64",
    "signal": "str",
    "stderr_tail": "str",
}


def summarize_cells(collection: Collection) -> pd.DataFrame:
    """Return one row per cell and environment with the columns SUMMARY_COLUMNS, in the order of the plan.

    Times, throughput and phases are medians over the ok repeats, quartiles and percentiles are those of all their
    timed steps pooled, memory is the largest of the repeats. A cell without any ok repeat has one row without figures.
    """
    timed = _group_timed_steps(collection.samples)
    rows = []
    for cell_id, repeats in collection.results.groupby("cell_id", sort=False):
        ok = repeats[repeats["status"] == "ok"]
        counts = {"num_planned": len(repeats), "num_environments": ok["environment_id"].nunique()}
        cell = list_rows(repeats[["cell_id", *CELL_COLUMNS]].head(1))[0] | counts
        if ok.empty:
            rows.append(cell | {"num_ok": 0, "num_steady": 0, "num_steps_taken": 0} | _note(cell, ok))
        for _, group in ok.groupby("environment_id", sort=False):
            steps = [timed[str(cell_id), int(repeat)] for repeat in group["repeat"]]
            rows.append(cell | _summarize_repeats(group, steps) | _note(cell, group))
    return make_frame(rows, SUMMARY_COLUMNS)


def list_failures(collection: Collection) -> pd.DataFrame:
    """Return one row per planned repeat that did not end ok, missing ones included; columns FAILURE_COLUMNS."""
    results = collection.results
    return results.loc[results["status"] != "ok", list(FAILURE_COLUMNS)].reset_index(drop=True)


def read_estimate(row: Row, suffix: str = "") -> Estimate:
    """Return the median step time of a row of `summarize_cells`, whose columns may carry `suffix`."""
    error, freedom = row[f"log_standard_error{suffix}"], row[f"degrees_of_freedom{suffix}"]
    return Estimate(
        center=float(row[f"median_step_seconds{suffix}"]),
        log_standard_error=None if pd.isna(error) else float(error),
        degrees_of_freedom=None if pd.isna(freedom) else float(freedom),
    )


def _group_timed_steps(samples: pd.DataFrame) -> dict[tuple[str, int], FloatArray]:
    timed = samples[samples["kind"] == "timed"]
    return {
        (steps["cell_id"].iloc[0], int(steps["repeat"].iloc[0])): steps["seconds"].to_numpy(dtype=np.float64)
        for _, steps in timed.groupby(["cell_id", "repeat"], sort=False)
    }


def _summarize_repeats(group: pd.DataFrame, steps: list[FloatArray]) -> Row:
    first = group.iloc[0]
    quartiles = compute_quartiles(steps)
    return {
        **first[[name for name in ENVIRONMENT_COLUMNS if name != "hostname"]],
        "num_ok": len(group),
        "num_steady": int(group["reached_steady"].sum()),
        "num_steps_taken": int(group["num_steps_taken"].sum()),
        **_estimate_center(steps, cell_id=first["cell_id"]),
        "q1_step_seconds": quartiles[0],
        "q3_step_seconds": quartiles[1],
        "p95_step_seconds": compute_percentile(steps, 95),
        "p99_step_seconds": compute_percentile(steps, 99),
        "throughput_samples_per_s": group["throughput_samples_per_s"].median(),
        **group[list(MEMORY_COLUMNS)].max(),
        **group[list(PHASE_COLUMNS)].median(),
    }


def _estimate_center(steps: list[FloatArray], *, cell_id: str) -> Row:
    # Seeded by the cell: its interval does not depend on which other cells are in the run.
    estimate = estimate_median(steps, seed=(SEED, int(cell_id[-8:], 16)))
    low, high = estimate.interval or (None, None)
    return {
        "median_step_seconds": estimate.center,
        "interval_low_seconds": low,
        "interval_high_seconds": high,
        "log_standard_error": estimate.log_standard_error,
        "degrees_of_freedom": estimate.degrees_of_freedom,
        "interval_reason": None if estimate.interval else "one repeat says nothing about the spread between repeats",
    }


def _note(cell: Row, group: pd.DataFrame) -> Row:
    """Return what a reader must know beside the figures and counts of one row."""
    notes = []
    num_unsteady = len(group) - int(group["reached_steady"].sum())
    if num_unsteady:
        notes.append(f"warm-up of {num_unsteady} of {len(group)} did not become steady")
    if cell["num_environments"] > 1:
        notes.append(f"environment {group['environment_id'].iloc[0]}, one of {cell['num_environments']}")
    if len(group) == 1:
        notes.append("one repeat: no interval")
    return {"note": "; ".join(notes)}
