"""Summarise the repeats of a run: one row per cell, per invalid repeat, per failure. Base units only.

Only repeats with status ok enter a figure. Those whose conditions were at fault are left out where there are others;
noisy and not steady ones are not, since that would choose repeats by their outcome. Repeats are grouped by cell and
environment: a cell that ran in two environments has two rows, never one.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from collector.results.calibrations import describe_deviations
from collector.results.collection import Collection
from collector.results.conditions import CONDITION_COLUMNS
from collector.results.frames import (
    CELL_COLUMNS,
    DURATION_COLUMNS,
    ENVIRONMENT_COLUMNS,
    MEMORY_COLUMNS,
    PACE_COLUMNS,
    Columns,
    Row,
    list_rows,
    make_frame,
)
from collector.results.intervals import INTERVAL_COLUMNS, describe_center, moderate_rows
from collector.results.notes import merge_notes
from collector.statistics import (
    FloatArray,
    average_by_machine,
    compute_geometric_mean,
    compute_percentile,
    compute_quartiles,
)

# Of the repeats that count, the largest; of the other numbers, the median.
LARGEST = (*MEMORY_COLUMNS, "gpu_memory_before_bytes", "gpu_memory_peak_bytes", "gpu_max_temperature_celsius")
MEDIANS = (
    *DURATION_COLUMNS,
    *PACE_COLUMNS,
    *(name for name, dtype in CONDITION_COLUMNS.items() if dtype == "float64" and name not in LARGEST),
)
# Inversely proportional to a step time, so they are summarised as it is: beside a cell's step time stands what that
# time achieves, and of two cells of the same work the slower one has the lower share.
RATES = ("achieved_flops_per_second", "share_of_peak", "share_of_roofline")
# Verdicts on how the steps came out, under conditions that were not at fault: they say how well the repeat is known.
# Leaving such repeats out would keep those in which the same cell happened to come out evenly.
OUTCOME_VERDICTS = ("not-steady", "noisy")
# Repeats whose clocks differ by more were measured on what is in effect another device. As the verdict's own bound for
# what is worth reporting (bench.validity.clocks).
MAX_CLOCK_SPREAD = 0.05
SUMMARY_COLUMNS: Columns = {
    "run_id": "str",
    "cell_id": "str",
    **CELL_COLUMNS,
    **ENVIRONMENT_COLUMNS,
    "num_environments": "int64",
    "num_planned": "int64",
    "num_ok": "int64",
    "num_valid": "int64",
    "num_sound": "int64",
    "num_counted": "int64",
    "faults": "str",
    "unchecked": "str",
    "notes": "str",
    "gpu_sm_clock_spread": "float64",
    "num_steady": "int64",
    "num_steps_taken": "int64",
    **INTERVAL_COLUMNS,
    "q1_step_seconds": "float64",
    "q3_step_seconds": "float64",
    "p95_step_seconds": "float64",
    "p99_step_seconds": "float64",
    "throughput_samples_per_s": "float64",
    **PACE_COLUMNS,
    **MEMORY_COLUMNS,
    **DURATION_COLUMNS,
    **CONDITION_COLUMNS,
    "machine_deviations": "str",
    "note": "str",
}
# Of a cell without an ok repeat, these are zero.
COUNTS = ("num_ok", "num_valid", "num_sound", "num_counted", "num_steady", "num_steps_taken", "num_machines")
INVALID_COLUMNS: Columns = {
    "cell_id": "str",
    **CELL_COLUMNS,
    "repeat": "int64",
    "verdict": "str",
    "verdict_reasons": "str",
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


def summarize_cells(collection: Collection, *, moderated: bool = False) -> pd.DataFrame:
    """Return one row per cell and environment with the columns SUMMARY_COLUMNS, in the order of the plan.

    The `num_counted` repeats that figures come from are those whose conditions were not at fault, or all ok ones where
    there are none such; `faults` says how many of the ok repeats have which verdict but `valid`. The step time is the
    geometric mean over them of each one's `center_step_seconds`, and so are rates and shares of the roofline;
    throughput, durations and the other conditions are medians over them, quartiles and percentiles those of all their
    timed steps pooled, memory and temperature the largest. A cell without any ok repeat has one row without figures.
    `moderated`: intervals draw on the spread of the run's other cells too (`collector.moderation`).
    """
    timed = _group_timed_steps(collection.samples)
    deviations = describe_deviations(select_sound(collection.results))
    rows = []
    for cell_id, repeats in collection.results.groupby("cell_id", sort=False):
        ok = repeats[repeats["status"] == "ok"]
        counts = {"num_planned": len(repeats), "num_environments": ok["environment_id"].nunique()}
        cell = list_rows(repeats[["run_id", "cell_id", *CELL_COLUMNS]].head(1))[0] | counts
        if ok.empty:
            rows.append(cell | dict.fromkeys(COUNTS, 0) | {"note": ""})
        for _, group in ok.groupby("environment_id", sort=False):
            counted = _choose_counted(group)
            steps = [timed[str(cell_id), int(repeat)] for repeat in counted["repeat"]]
            row = cell | _count_verdicts(group) | _summarize_repeats(counted, steps)
            found = [deviations[machine] for machine in row["machines"].split("; ") if machine in deviations]
            row["machine_deviations"] = "; ".join(found)
            rows.append(row | {"note": _note(row)})
    return make_frame(moderate_rows(rows) if moderated else rows, SUMMARY_COLUMNS)


def summarize_collections(collections: Sequence[Collection], *, moderated: bool = False) -> pd.DataFrame:
    """Return the rows of `summarize_cells` of several runs, one run after the other; each is moderated by itself."""
    frames = [summarize_cells(collection, moderated=moderated) for collection in collections]
    return pd.concat(frames, ignore_index=True)


def list_invalid(collection: Collection) -> pd.DataFrame:
    """Return one row per ok repeat that is not valid, with its reasons; columns INVALID_COLUMNS."""
    results = collection.results
    invalid = (results["status"] == "ok") & (results["verdict"] != "valid")
    return results.loc[invalid, list(INVALID_COLUMNS)].reset_index(drop=True)


def list_failures(collection: Collection) -> pd.DataFrame:
    """Return one row per planned repeat that did not end ok, missing ones included; columns FAILURE_COLUMNS."""
    results = collection.results
    return results.loc[results["status"] != "ok", list(FAILURE_COLUMNS)].reset_index(drop=True)


def list_skipped(collection: Collection) -> pd.DataFrame:
    """Return one row per skipped document: key, reason."""
    return pd.DataFrame([(document.key, document.reason) for document in collection.skipped], columns=["key", "reason"])


def _group_timed_steps(samples: pd.DataFrame) -> dict[tuple[str, int], FloatArray]:
    timed = samples[samples["kind"] == "timed"]
    return {
        (steps["cell_id"].iloc[0], int(steps["repeat"].iloc[0])): steps["seconds"].to_numpy(dtype=np.float64)
        for _, steps in timed.groupby(["cell_id", "repeat"], sort=False)
    }


def select_sound(results: pd.DataFrame) -> pd.DataFrame:
    """Return the repeats (rows of RESULT_COLUMNS) that ended ok under conditions that were not at fault."""
    ok = results[results["status"] == "ok"]
    return ok[_find_sound(ok)]


def _choose_counted(ok: pd.DataFrame) -> pd.DataFrame:
    sound = ok[_find_sound(ok)]
    return ok if sound.empty else sound


def _find_sound(ok: pd.DataFrame) -> "pd.Series[bool]":
    """Return which repeats were measured under conditions that were not at fault."""
    return ok["verdict"].isin(("valid", *OUTCOME_VERDICTS))


def _count_verdicts(ok: pd.DataFrame) -> Row:
    verdicts = ok["verdict"]
    others = verdicts[verdicts != "valid"].value_counts(sort=False)
    return {
        "num_ok": len(ok),
        "num_valid": int((verdicts == "valid").sum()),
        "num_sound": int(_find_sound(ok).sum()),
        "faults": ", ".join(f"{count} {verdict}" for verdict, count in others.items()),
    }


def _summarize_repeats(group: pd.DataFrame, steps: list[FloatArray]) -> Row:
    first = group.iloc[0]
    quartiles = compute_quartiles(steps)
    return {
        **first[[*ENVIRONMENT_COLUMNS, *CONDITION_COLUMNS]],
        "num_counted": len(group),
        **{name: merge_notes(group[name].dropna()) for name in ("unchecked", "notes")},
        "gpu_sm_clock_spread": _measure_clock_spread(group),
        "num_steady": int(group["reached_steady"].sum()),
        "num_steps_taken": int(group["num_steps_taken"].sum()),
        **describe_center(group),
        "q1_step_seconds": quartiles[0],
        "q3_step_seconds": quartiles[1],
        "p95_step_seconds": compute_percentile(steps, 95),
        "p99_step_seconds": compute_percentile(steps, 99),
        "throughput_samples_per_s": group["throughput_samples_per_s"].median(),
        **{name: group[name].max() for name in LARGEST},
        **group[list(MEDIANS)].median(),
        **{name: _average_rate(group[["machine", name]].dropna(), name) for name in RATES},
        "flat_after_seconds": _find_median_settling(group),
    }


def _average_rate(known: pd.DataFrame, name: str) -> float | None:
    """Return the geometric mean of a rate, of the machines' where there are several, as a step time's centre is."""
    if known.empty:
        return None
    if (known[name] <= 0).any():  # a model without counted operations
        return float(known[name].median())
    means = average_by_machine(known[name].to_list(), known["machine"].to_list())
    return compute_geometric_mean(list(means.values()))


def _find_median_settling(group: pd.DataFrame) -> float | None:
    """Return the median time until the speed was flat; None where half of the repeats or more were never flat."""
    sustained = group[group["sustained_seconds"].notna()]
    middle = float(sustained["flat_after_seconds"].fillna(math.inf).median())
    return middle if math.isfinite(middle) else None


def _measure_clock_spread(group: pd.DataFrame) -> float | None:
    """Return by how much the slowest repeat's median SM clock lies below the fastest one's, as a share of it."""
    clocks = group["gpu_sm_clock_mhz"].dropna()
    return None if clocks.empty else float(1 - clocks.min() / clocks.max())


def _note(row: Row) -> str:
    """Return what a reader must know beside the figures and counts of one row."""
    notes = []
    num_counted, num_ok = row["num_counted"], row["num_ok"]
    if num_counted < num_ok:
        valid = "" if row["num_valid"] else "no valid repeat: "
        notes.append(f"{valid}figures from {num_counted} of {num_ok} ok, those with sound conditions")
    elif not row["num_valid"]:
        notes.append(f"no valid repeat: figures from {'the' if num_ok == 1 else 'all'} {num_ok} ok")
    if row["num_steady"] < num_counted:
        notes.append(f"warm-up of {num_counted - row['num_steady']} of {num_counted} did not become steady")
    notes += [row[name] for name in ("unchecked", "notes") if row[name]]
    spread = row["gpu_sm_clock_spread"]
    if spread is not None and spread > MAX_CLOCK_SPREAD:
        notes.append(f"SM clocks of the repeats differ by {spread:.0%}".replace("%", " %"))
    if row["num_environments"] > 1:
        notes.append(f"environment {row['environment_id']}, one of {row['num_environments']}")
    if row["num_machines"] > 1:
        notes.append(f"ran on {row['num_machines']} machines")
    if num_counted == 1:
        notes.append("one repeat counts: no interval")
    return "; ".join(notes)
