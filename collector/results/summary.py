"""Summarise the repeats of a run: one row per cell, per invalid repeat, per failure. Base units only.

Only repeats with status ok enter a figure. Those whose conditions were at fault are left out where there are others;
noisy and not steady ones are not, since that would choose repeats by their outcome. Repeats are grouped by cell and
environment: a cell that ran in two environments has two rows, never one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import pandas as pd

from collector.results.cell_repeats import (
    INTERVAL_COLUMNS,
    RATES,
    SOUND_VERDICTS,
    CellRepeats,
    Repeats,
    choose_counted,
    describe_disagreement,
)
from collector.results.collection import Collection
from collector.results.frames import (
    CELL_COLUMNS,
    CONDITION_COLUMNS,
    DURATION_COLUMNS,
    ENVIRONMENT_COLUMNS,
    MEMORY_COLUMNS,
    PACE_COLUMNS,
    Columns,
    Row,
    find_shared,
    make_frame,
)
from collector.statistics import Estimate, FloatArray, compute_quantiles, estimate_machine_effects

# Repeats whose clocks differ by more were measured on what is in effect another device. As the verdict's own bound for
# what is worth reporting (bench.verdicts.clocks).
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
    "window_samples_per_s": "float64",
    **PACE_COLUMNS,
    **MEMORY_COLUMNS,
    **DURATION_COLUMNS,
    **CONDITION_COLUMNS,
    "machine_deviations": "str",
    "least_repeat_seconds": "float64",
    "most_repeat_seconds": "float64",
    "disagreement": "str",
    "note": "str",
}
# What a single repeat says, of its cell, environment and conditions.
TAKEN_COLUMNS = (
    *("run_id", "cell_id", *CELL_COLUMNS),
    *(name for name in (*ENVIRONMENT_COLUMNS, *CONDITION_COLUMNS) if name not in (*RATES, "environment_id")),
)
# Of a cell without an ok repeat, these are zero.
COUNTS = ("num_ok", "num_valid", "num_sound", "num_counted", "num_steady", "num_steps_taken", "num_machines")
INVALID_COLUMNS: Columns = {
    "cell_id": "str",
    **CELL_COLUMNS,
    "repeat": "int64",
    "verdict": "str",
    "verdict_reasons": "str",
    "counts": "str",
}
YES, NO, FOR_LACK = "yes", "no", "for lack of sound ones"
"""Whether figures come from a repeat: FOR_LACK where the conditions of all repeats of its row were at fault."""
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

    The `num_counted` repeats that figures come from are those whose conditions were not at fault, or all ok ones where
    there are none such; `faults` says how many of the ok repeats have which verdict but `valid`. The step time is the
    geometric mean over them of each one's `center_step_seconds`, and so are rates (those over the whole window too) and
    shares of the roofline; the throughput is the batch over that time; durations and the other conditions are medians
    over them, quartiles and percentiles those of all their timed steps pooled, memory and temperature the largest. A
    cell without any ok repeat has one row without figures.
    """
    repeats = Repeats(collection.results)
    cells = repeats.group_by_cell()
    groups = [choose_counted(repeats, ok) for cell in cells for ok in cell.ok]
    numbers = repeats.summarize_columns(groups)
    own = {name: dtype for name, dtype in SUMMARY_COLUMNS.items() if name not in {*numbers, *TAKEN_COLUMNS}}
    described = list(_describe_cells(collection, repeats, cells, groups))
    places = [place for _, place in described]
    firsts = [groups[place][0] if place >= 0 else -1 for place in places]
    taken = repeats.take_columns([cell.first for cell in cells for _ in cell.ok or (None,)], firsts, {*numbers, *own})
    figures = numbers.reindex(places).reset_index(drop=True)  # a cell without figures has the place -1, which is none
    taken |= {name: pd.Series(figures[name], dtype=SUMMARY_COLUMNS[name]).array for name in map(str, numbers)}
    frame = make_frame([row for row, _ in described], own).assign(**taken)
    frame["throughput_samples_per_s"] = frame["batch_size"] / frame["center_step_seconds"]
    return frame[list(SUMMARY_COLUMNS)]


def _describe_cells(
    collection: Collection, repeats: Repeats, cells: Sequence[CellRepeats], groups: Sequence[Sequence[int]]
) -> Iterator[tuple[Row, int]]:
    """Yield what is computed for each row of the summary, and which of the `groups` it is of; -1: of none."""
    deviations = describe_deviations(select_sound(collection.results, READ_COLUMNS))
    shared = find_shared(collection.results).to_list()
    steps = collection.steps.read_timed([repeats.find_places(counted) for counted in groups])
    figures = zip(count(), repeats.describe_groups(groups), steps, strict=False)
    for cell in cells:
        counts = {"num_planned": cell.num_planned, "num_environments": len(cell.ok)}
        if not cell.ok:
            yield counts | dict.fromkeys(COUNTS, 0) | {"note": ""}, -1
        for ok in cell.ok:
            place, described, series = next(figures)
            row: Row = counts | _count_verdicts(repeats, ok) | described | _describe_steps(series)
            row["is_shared"] = shared[cell.first]
            row["environment_id"] = repeats.values("environment_id")[groups[place][0]]
            if row["num_machines"] == 1:  # how several machines differ is known by their own table
                centers = [repeats.values("center_step_seconds")[index] for index in groups[place]]
                row |= {"least_repeat_seconds": min(centers), "most_repeat_seconds": max(centers)}
                row["disagreement"] = describe_disagreement(centers, series)
            row["machine_deviations"] = _join_deviations(deviations, row["machines"])
            yield row | {"note": _note(row)}, place


def summarize_collections(collections: Sequence[Collection]) -> pd.DataFrame:
    """Return the rows of `summarize_cells` of several runs, one run after the other."""
    frames = [summarize_cells(collection) for collection in collections]
    return pd.concat(frames, ignore_index=True)


def list_invalid(collection: Collection) -> pd.DataFrame:
    """Return one row per ok repeat that is not valid, with its reasons and whether it counts; INVALID_COLUMNS."""
    results = collection.results
    rows = results.assign(counts=judge_counting(results))
    invalid = (results["status"] == "ok") & (results["verdict"] != "valid")
    return rows.loc[invalid, list(INVALID_COLUMNS)].reset_index(drop=True)


def judge_counting(results: pd.DataFrame) -> "pd.Series[str]":
    """Return of each repeat (rows of RESULT_COLUMNS) whether figures come from it: YES, NO or FOR_LACK.

    That is what `choose_counted` chooses in each cell.
    """
    is_ok = results["status"] == "ok"
    is_sound = is_ok & results["verdict"].isin(SOUND_VERDICTS)
    groups = [results[name] for name in ("cell_id", "environment_id")]
    has_sound = is_sound.groupby(groups, dropna=False).transform("any")
    counting = pd.Series(NO, index=results.index, dtype="str")
    return counting.mask(is_ok & ~has_sound, FOR_LACK).mask(is_sound, YES)


def list_failures(collection: Collection) -> pd.DataFrame:
    """Return one row per planned repeat that did not end ok, missing ones included; columns FAILURE_COLUMNS."""
    results = collection.results
    return results.loc[results["status"] != "ok", list(FAILURE_COLUMNS)].reset_index(drop=True)


def list_skipped(collection: Collection) -> pd.DataFrame:
    """Return one row per skipped document: key, reason."""
    return pd.DataFrame([(document.key, document.reason) for document in collection.skipped], columns=["key", "reason"])


def select_sound(results: pd.DataFrame, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the repeats (rows of RESULT_COLUMNS) that ended ok under conditions that were not at fault.

    `columns`: those that are returned, all by default. Of a large run, all are too many to have twice in memory.
    """
    is_sound = (results["status"] == "ok") & results["verdict"].isin(SOUND_VERDICTS)
    return results.loc[is_sound, list(results.columns if columns is None else columns)]


def _count_verdicts(repeats: Repeats, ok: Sequence[int]) -> Row:
    verdicts = [repeats.values("verdict")[index] for index in ok]
    others = Counter(verdict for verdict in verdicts if verdict != "valid")
    return {
        "num_ok": len(ok),
        "num_valid": verdicts.count("valid"),
        "num_sound": sum(verdict in SOUND_VERDICTS for verdict in verdicts),
        "faults": ", ".join(f"{count} {verdict}" for verdict, count in others.items()),
    }


def _join_deviations(deviations: Mapping[str, str], machines: str) -> str:
    """Return how those of a cell's machines differ from others of their type that are known to."""
    return "; ".join(deviations[machine] for machine in machines.split("; ") if machine in deviations)


def _describe_steps(series: Sequence[FloatArray]) -> Row:
    """Return the quantiles of the timed steps of a cell's repeats, pooled."""
    low, high, *percentiles = compute_quantiles(series)
    return {
        "q1_step_seconds": low,
        "q3_step_seconds": high,
        "p95_step_seconds": percentiles[0],
        "p99_step_seconds": percentiles[1],
    }


def _note(row: Row) -> str:
    """Return what a reader must know beside the figures and counts of one row."""
    notes = []
    num_counted, num_ok = row["num_counted"], row["num_ok"]
    if num_counted < num_ok:
        notes.append(f"figures from {num_counted} of {num_ok} ok, those with sound conditions")
    elif not row["num_sound"]:
        all_ok = "the 1" if num_ok == 1 else f"all {num_ok}"
        notes.append(f"no repeat under sound conditions: figures from {all_ok} ok")
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
    if row.get("disagreement"):
        notes.append(f"repeats disagree: {row['disagreement']}; more repeats are needed")
    if num_counted == 1:
        notes.append("one repeat counts: no interval")
    return "; ".join(notes)


MIN_DIFFERENCE = 0.05
"""By how much a machine has to differ to be named: as for clocks, above which repeats were measured on what is in
effect another device (collector.results.summary). That it is no noise is for the p-value to say."""
CALIBRATIONS: Mapping[str, tuple[str, Sequence[str], str]] = {
    "product_factor": (
        "product_flops_per_second",
        ("framework", "precision", "environment_id"),
        "multiplies matrices",
    ),
    "copy_factor": ("copy_bytes_per_second", ("hardware_id", "copy_bytes"), "copies memory"),
}
"""By the column of the factor: the rate, what has to be alike for two rates to be compared, which includes the type of
the machine, and what it does at that rate."""

_PRODUCTS = ("gpu_product_flops_per_second", "cpu_product_flops_per_second")
READ_COLUMNS = tuple(
    dict.fromkeys(
        (
            "machine",
            "copy_bytes_per_second",
            *_PRODUCTS,
            *(name for _, kind, _ in CALIBRATIONS.values() for name in kind),
        )
    )
)
"""The columns of the results that are read here."""


def add_products(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `product_flops_per_second`: of the GPU, or else of the CPUs."""
    of_gpu, of_cpu = _PRODUCTS
    products = results[of_gpu].fillna(results[of_cpu])
    return results.assign(product_flops_per_second=products)


def compare_calibrations(sound: pd.DataFrame, name: str) -> dict[str, Estimate]:
    """Return the factor `name` (of CALIBRATIONS) of each machine: its rate over that of the others of its type.

    `sound`: repeats as `add_products` returns them; machines of which only one has measured a kind are left out.
    """
    column, kind, _ = CALIBRATIONS[name]
    return compare_machines(sound, column, kind)


def compare_machines(sound: pd.DataFrame, column: str, kind: Sequence[str]) -> dict[str, Estimate]:
    """Return the factor of each machine on `column`, among repeats that are alike in the columns `kind`."""
    rows = sound[sound[column].notna()]
    kinds = rows.groupby(list(kind), sort=False, dropna=False).ngroup()
    return estimate_machine_effects(rows[column].to_list(), kinds.to_list(), rows["machine"].to_list())


def describe_deviations(sound: pd.DataFrame) -> dict[str, str]:
    """Return in words how each machine differs by its calibration from the others of its type, if it does.

    A machine differs that is MIN_DIFFERENCE faster or slower, and whose interval together with those of the others
    excludes 1. Without repeats to tell, none is said to.
    """
    rows = add_products(sound)
    found: dict[str, list[str]] = {}
    for name, (_, _, words) in CALIBRATIONS.items():
        tested = {
            machine: factor
            for machine, factor in compare_calibrations(rows, name).items()
            if factor.p_value is not None
        }
        for machine, factor in tested.items():
            is_large = not 1 / (1 + MIN_DIFFERENCE) < factor.center < 1 + MIN_DIFFERENCE
            if is_large and factor.excludes_one(len(tested)):
                found.setdefault(machine, []).append(f"{words} {_quote(factor, len(tested))} as fast")
    return {machine: f"{machine} {' and '.join(words)}" for machine, words in sorted(found.items())}


def _quote(factor: Estimate, num_intervals: int) -> str:
    """Return `1.067x (1.041 to 1.094)`, with the interval that holds together with those of the other machines."""
    low, high = factor.find_joint_interval(num_intervals) or (factor.center, factor.center)
    return f"{factor.center:.3f}x ({low:.3f} to {high:.3f})"
