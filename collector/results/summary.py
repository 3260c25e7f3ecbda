"""Choose the repeats that a cell's figures come from and summarise them: one row per cell, invalid repeat, failure.

Only repeats with status ok enter a figure. Those whose conditions were at fault are left out where there are others;
noisy and not steady ones are not, since that would choose repeats by their outcome. Repeats are grouped by cell and
environment: a cell that ran in two environments has two rows, never one. Base units only.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

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
    list_rows,
)
from collector.statistics import (
    Estimate,
    FloatArray,
    Measured,
    compute_geometric_mean,
    compute_quantiles,
    estimate_machine_effects,
    judge_together,
    measure,
)
from collector.units import MILLISECOND, format_interval, format_number, join_words

GROUP = ["cell_id", "environment_id"]
"""What repeats have in common that are summarised together."""
# Inversely proportional to a step time, so they are summarised as it is: beside a cell's step time stands what that
# time achieves, and of two cells of the same work the slower one has the lower share.
CENTER_RATES = ("achieved_flops_per_second", "share_of_peak", "share_of_roofline")
"""Computed from the step time that stands for a repeat."""
# Verdicts on how the steps came out, under conditions that were not at fault: they say how well the repeat is known.
# Leaving such repeats out would keep those in which the same cell happened to come out evenly.
OUTCOME_VERDICTS = ("not-steady", "noisy")
SOUND_VERDICTS = ("valid", *OUTCOME_VERDICTS)
YES, NO, FOR_LACK = "yes", "no", "for lack of sound ones"
"""Whether figures come from a repeat: FOR_LACK where the conditions of all repeats of its row were at fault."""


def count_values(values: Iterable[str]) -> str:
    """Return how often each value is there, the most frequent first: `2 noisy, 1 throttled`."""
    return ", ".join(f"{count:,} {value}" for value, count in Counter(values).most_common())


def is_sound(results: pd.DataFrame) -> "pd.Series[bool]":
    """Return which repeats (rows of RESULT_COLUMNS) ended ok under conditions that were not at fault."""
    return (results["status"] == "ok") & results["verdict"].isin(SOUND_VERDICTS)


def judge_counting(results: pd.DataFrame) -> "pd.Series[str]":
    """Return of each repeat (rows of RESULT_COLUMNS) whether figures come from it: YES, NO or FOR_LACK."""
    is_ok, sound = results["status"] == "ok", is_sound(results)
    has_sound = sound.groupby([results[name] for name in GROUP], dropna=False).transform("any")
    counting = pd.Series(NO, index=results.index, dtype="str")
    return counting.mask(is_ok & ~has_sound, FOR_LACK).mask(sound, YES)


SEPARATOR = "; "
# A number that stands alone, with its sign and unit: not the digits of a GPU's UUID.
LEVELS = re.compile(r"steps on two levels, (?P<shares>.*): the mean of the steps counts")
"""What a measuring process says of its own steps (`bench.verdicts.checks`), which knows no other repeat."""
NUMBER = re.compile(r"(?<![\w-])[+-]?\d+(\.\d+)?(?=[\s%,;)]|$)")


def merge_notes(notes: Iterable[str], num_repeats: int, num_by_mean: int = 0) -> str | None:
    """Return the notes, each once, with `; ` between them and how many of the repeats have it; None without any.

    `notes`: of the repeats that have some, one or more each, joined so. Notes that differ in their numbers only are
    one, with the numbers of the first; every repeat's own numbers are in its row. A note that all have alike stands
    as it is. `num_by_mean`: the repeats that the mean of their steps stands for, which the note on levels says.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for joined in notes:
        in_repeat: dict[str, str] = {}
        for note in joined.split(SEPARATOR):
            in_repeat.setdefault(NUMBER.sub("#", note), note)
        for pattern, note in in_repeat.items():
            found[pattern].append(note)
    return SEPARATOR.join(_count_note(alike, num_repeats, num_by_mean) for alike in found.values()) or None


def _count_note(alike: list[str], num_repeats: int, num_by_mean: int) -> str:
    levels = LEVELS.fullmatch(alike[0])
    if levels and num_repeats > 1:
        return _describe_levels(levels["shares"], len(alike), num_repeats, max(num_by_mean, len(alike)))
    differs = len(set(alike)) > 1
    if len(alike) == num_repeats and not differs:
        return alike[0]
    return f"{alike[0]} ({len(alike)} of {num_repeats} repeats{', figures of the first' if differs else ''})"


def _describe_levels(shares: str, number: int, num_repeats: int, num_by_mean: int) -> str:
    """Return in how many repeats the steps jump, and that the mean stands for these and for the others alike."""
    whom = f"all {num_repeats}" if num_by_mean == num_repeats else f"{num_by_mean}"
    return (
        f"steps on two levels in {number} of {num_repeats} repeats, {shares}{' in the first of them' * (number > 1)}: "
        f"the mean of the steps stands for {whom}"
    )


MIN_DIFFERENCE = 0.05
"""As the bound of drift (bench.verdicts.checks.MAX_DRIFT): below it no difference of repeats, of their clocks or of
machines is worth reporting. That a larger one is no noise is for the p-value to say."""
SHARE_BEYOND = 0.1
"""The share of a repeat's steps that may lie across the gap: single slow steps say nothing of a repeat."""
MAX_LISTED = 5
"""Repeats whose times are named one by one; of more, the least and the most."""


def describe_disagreement(centers: Sequence[float], series: Sequence[FloatArray]) -> str:
    """Return `1 of 3 takes 13 % longer: 61.3, 61.4 and 69.6 ms`; empty where the repeats of a cell agree.

    `centers`: the step time of each repeat; `series`: its timed steps, both in seconds. Repeats are cut where the
    widest gap between neighbours is. They disagree if nine tenths of the steps of each slower repeat take longer, by
    more than MIN_DIFFERENCE, than nine tenths of the steps of each faster one.
    """
    order = sorted(range(len(centers)), key=centers.__getitem__)
    gaps = [centers[order[place + 1]] / centers[order[place]] for place in range(len(order) - 1)]
    if max(gaps, default=0.0) <= 1 + MIN_DIFFERENCE:  # as of most cells, whose steps need not be sorted
        return ""
    cut = gaps.index(max(gaps)) + 1
    faster, slower = order[:cut], order[cut:]
    latest = max(np.quantile(series[index], 1 - SHARE_BEYOND, method="inverted_cdf") for index in faster)
    earliest = min(np.quantile(series[index], SHARE_BEYOND, method="inverted_cdf") for index in slower)
    if earliest <= latest * (1 + MIN_DIFFERENCE):
        return ""
    factor = compute_geometric_mean([centers[index] for index in slower]) / compute_geometric_mean(
        [centers[index] for index in faster]
    )
    takes = "takes" if len(slower) == 1 else "take"
    return f"{len(slower)} of {len(order)} {takes} {100 * (factor - 1):.0f} % longer: {_list_times(sorted(centers))} ms"


def _list_times(centers: Sequence[float]) -> str:
    """Return `61.3, 61.4 and 69.6`: the step time of the cell is one that no repeat had. `centers`: the least first."""
    if len(centers) > MAX_LISTED:
        return format_interval(centers[0], centers[-1], MILLISECOND)
    return join_words(format_number(center, MILLISECOND) for center in centers)


def read_estimate(row: Row, *, center: str = "center_step_seconds") -> Estimate:
    """Return the estimate in a row; `center`: the column of its centre, which of `compare_cells` is the `ratio`."""
    error, freedom = row["log_standard_error"], row["degrees_of_freedom"]
    return Estimate(
        center=float(row[center]),
        log_standard_error=None if pd.isna(error) else float(error),
        degrees_of_freedom=None if pd.isna(freedom) else float(freedom),
        is_staged=bool(row.get("is_staged")),
    )


def read_measured(row: Row) -> Measured:
    return Measured(read_estimate(row), json.loads(row["machine_step_seconds"]))


ENERGIES = ("gpu_energy_per_step_joules", "gpu_energy_per_sample_joules", "cpu_energy_per_sample_joules")
RATES = (*CENTER_RATES, "window_samples_per_s")
"""The last is of the whole window: a mean already, whatever stands for the repeat."""
# Of the repeats that count, the largest; of the other numbers, the median.
LARGEST = (*MEMORY_COLUMNS, "gpu_memory_before_bytes", "gpu_memory_peak_bytes", "gpu_max_temperature_celsius")
MEDIANS = (
    *DURATION_COLUMNS,
    *(name for name in PACE_COLUMNS if name != "flat_after_seconds"),
    *(name for name, dtype in CONDITION_COLUMNS.items() if dtype == "float64" and name not in (*LARGEST, *RATES)),
)
QUANTILES = ("q1_step_seconds", "q3_step_seconds", "p95_step_seconds", "p99_step_seconds")
"""Of the timed steps of all repeats, pooled."""
SUMMARY_COLUMNS: Columns = {
    "run_id": "str",
    "cell_id": "str",
    **CELL_COLUMNS,
    **ENVIRONMENT_COLUMNS,
    **dict.fromkeys(("num_environments", "num_planned", "num_ok", "num_valid", "num_sound", "num_counted"), "int64"),
    **dict.fromkeys(("faults", "unchecked", "notes"), "str"),
    "gpu_sm_clock_spread": "float64",
    **dict.fromkeys(("num_steady", "num_steps_taken"), "int64"),
    **dict.fromkeys(("center_step_seconds", "interval_low_seconds", "interval_high_seconds"), "float64"),
    **dict.fromkeys(("log_standard_error", "degrees_of_freedom"), "float64"),
    **{"is_staged": "boolean", "num_machines": "int64"},
    **dict.fromkeys(("machines", "hostnames", "instance_types", "machine_step_seconds"), "str"),
    **dict.fromkeys(QUANTILES, "float64"),
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
"""`center_step_seconds`: the geometric mean of the repeats' `center_step_seconds`, or of the machines' where there are
several. `hostnames`: the hosts, by name and what tells those of one name apart. `instance_types`: missing where no
placement says them. `machine_step_seconds`: a JSON object, the geometric mean of the repeats' centres on each."""
# What the first of the repeats that count says.
TAKEN = tuple(name for name in (*ENVIRONMENT_COLUMNS, *CONDITION_COLUMNS) if name not in (*RATES, *MEDIANS, *LARGEST))
# Of a cell without an ok repeat, these are zero.
COUNTS = (
    *("num_environments", "num_ok", "num_valid", "num_sound", "num_counted"),
    *("num_steady", "num_steps_taken", "num_machines"),
)
INVALID_COLUMNS = ("cell_id", *CELL_COLUMNS, "repeat", "verdict", "verdict_reasons", "counts")
FAILURE_COLUMNS = (
    *("cell_id", *CELL_COLUMNS, "repeat", "status", "num_attempts", "attempt"),
    *("error_kind", "error_message", "exit_code", "signal", "stderr_tail"),
)
NOTED = (*COUNTS, "environment_id", "gpu_sm_clock_spread", "unchecked", "notes", "disagreement")


def summarize_cells(collection: Collection) -> pd.DataFrame:
    """Return one row per cell and environment with the columns SUMMARY_COLUMNS, in the order of the plan.

    The `num_counted` repeats that figures come from are those whose conditions were not at fault, or all ok ones where
    there are none such; `faults` says how many of the ok repeats have which verdict but `valid`. The step time is the
    geometric mean over them of each one's `center_step_seconds`, and so are rates (those over the whole window too) and
    shares of the roofline; the throughput is the batch over that time; durations and the other conditions are medians
    over them, quartiles and percentiles those of all their timed steps pooled, memory and temperature the largest. A
    cell without any ok repeat has one row without figures.
    """
    results = collection.results
    ok = results[results["status"] == "ok"]
    groups = ok.groupby(GROUP, sort=False, dropna=False).ngroup()
    counted = ok[judge_counting(results)[ok.index] != NO]
    figures = pd.concat(
        [
            _count_verdicts(ok, groups),
            _summarize_columns(counted, groups[counted.index]),
            _estimate_groups(collection, counted, groups[counted.index]),
        ],
        axis="columns",
    )
    heads = ok.drop_duplicates(GROUP)
    unmeasured = results[~results["cell_id"].isin(ok["cell_id"])].drop_duplicates("cell_id")
    cells = pd.concat([heads, unmeasured])[["run_id", "cell_id", *CELL_COLUMNS]]
    frame = cells.join(figures.sort_index().set_index(heads.index)).sort_index().reindex(columns=list(SUMMARY_COLUMNS))
    frame["num_planned"] = frame["cell_id"].map(results["cell_id"].value_counts())
    frame["num_environments"] = frame["cell_id"].map(heads["cell_id"].value_counts())
    frame[list(COUNTS)] = frame[list(COUNTS)].fillna(0)
    frame["throughput_samples_per_s"] = frame["batch_size"] / frame["center_step_seconds"]
    frame["note"] = [_note(row) for row in list_rows(frame[list(NOTED)])]
    return frame.astype(dict(SUMMARY_COLUMNS)).reset_index(drop=True)


def _count_verdicts(ok: pd.DataFrame, groups: "pd.Series[int]") -> pd.DataFrame:
    verdicts = ok["verdict"].fillna("no verdict")
    faults = verdicts[verdicts != "valid"].groupby(groups).agg(count_values)
    counts = pd.DataFrame({"num_ok": 1, "num_valid": verdicts == "valid", "num_sound": verdicts.isin(SOUND_VERDICTS)})
    counts = counts.groupby(groups).sum()
    return counts.assign(faults=faults.reindex(counts.index, fill_value=""))


def _summarize_columns(counted: pd.DataFrame, groups: "pd.Series[int]") -> pd.DataFrame:
    """Return what follows column by column from the repeats that count, a row for each group."""
    # Never flat is longer than any time: where half of the repeats or more were not, the cell was not.
    is_never = counted["sustained_seconds"].notna() & counted["flat_after_seconds"].isna()
    times = counted[[*MEDIANS, "flat_after_seconds"]].assign(
        flat_after_seconds=counted["flat_after_seconds"].mask(is_never, math.inf)
    )
    clocks = counted["gpu_sm_clock_mhz"].groupby(groups)
    firsts = counted[list(TAKEN)][~groups.duplicated()]
    parts = [
        times.groupby(groups).median().replace(math.inf, math.nan),
        counted[list(LARGEST)].groupby(groups).max(),
        _average(RATES, counted, groups),
        firsts.set_index(groups[firsts.index]),
    ]
    return pd.concat(parts, axis="columns").assign(
        num_counted=groups.value_counts(),
        num_steady=counted["reached_steady"].groupby(groups).sum(),
        num_steps_taken=counted["num_steps_taken"].groupby(groups).sum(),
        # By how much the slowest repeat's median SM clock lies below the fastest one's, as a share of it.
        gpu_sm_clock_spread=1 - clocks.min() / clocks.max(),
    )


def average_energies(summary: pd.DataFrame, collection: Collection) -> pd.DataFrame:
    """Replace the medians of energies in a summary by geometric means, which costs and `compare` show too."""
    results = collection.results
    own, groups = (frame["cell_id"] + " " + frame["environment_id"] for frame in (summary, results))
    means = _average(ENERGIES, results[judge_counting(results) != NO], groups)
    return summary.assign(**{name: own.map(means[name]) for name in ENERGIES})


def _average(names: Sequence[str], counted: pd.DataFrame, groups: "pd.Series[Any]") -> pd.DataFrame:
    """Return the geometric means of columns, of the machines' where there are several, as a step time's centre is."""
    rates = counted[list(names)]
    logs: pd.DataFrame = np.log(rates.where(rates > 0))  # type: ignore[assignment]  # of a frame it is one
    by_machine = logs.groupby([groups, counted["machine"]], dropna=False).mean()
    is_zero = (rates <= 0).groupby(groups).any()  # of a model without counted operations
    means: pd.DataFrame = np.exp(by_machine.groupby(level=0).mean())  # type: ignore[assignment]
    return means.mask(is_zero, rates.groupby(groups).median())


def _estimate_groups(collection: Collection, counted: pd.DataFrame, groups: "pd.Series[int]") -> pd.DataFrame:
    """Return what is computed of each group by itself: its centre and interval, its steps, what it says in words."""
    deviations = describe_deviations(compare_calibrations(select_sound(collection.results)))
    members = pd.Series(range(len(counted))).groupby(groups.to_numpy()).indices
    names = (
        *("center_step_seconds", "is_first_stage", "machine", "host", "instance_type"),
        *("unchecked", "notes", "summarized_by"),
    )
    columns = {name: counted[name].astype(object).where(counted[name].notna(), None).to_list() for name in names}
    rows = []
    for own in members.values():
        steps = [collection.steps.read_timed(place)[0] for place in counted.index[own]]
        parts = ([columns[name][place] for place in own] for name in names)
        centers, is_first, machines, hosts, types, unchecked, notes, statistics = parts
        estimate, means = measure(centers, machines, is_first)
        row = describe_places(machines, hosts, types) | dict(zip(QUANTILES, compute_quantiles(steps), strict=True))
        row |= {name: getattr(estimate, name) for name in ("log_standard_error", "degrees_of_freedom")}
        row |= {"center_step_seconds": estimate.center, "is_staged": estimate.is_staged or None}
        row["interval_low_seconds"], row["interval_high_seconds"] = estimate.interval or (None, None)
        row["machine_step_seconds"] = json.dumps(means)
        if row["num_machines"] == 1:  # how several machines differ is known by their own table
            row |= {"least_repeat_seconds": min(centers), "most_repeat_seconds": max(centers)}
            row["disagreement"] = describe_disagreement(centers, steps)
        own_deviations = (deviations.get(machine, "") for machine in row["machines"].split("; "))
        row["machine_deviations"] = "; ".join(filter(None, own_deviations))
        for name, texts in (("unchecked", unchecked), ("notes", notes)):
            row[name] = merge_notes(filter(None, texts), len(own), statistics.count("mean"))
        rows.append(row)
    return pd.DataFrame(rows, index=list(members))


def describe_places(machines: Iterable[str], hosts: Iterable[str], instance_types: Iterable[str | None]) -> Row:
    """Return the columns of a summary that say where repeats ran; the type of a node may be unknown."""
    names, types = sorted(set(machines)), sorted({kind or "unknown" for kind in instance_types})
    return {
        "num_machines": len(names),
        "machines": "; ".join(names),
        "hostnames": "; ".join(sorted(set(hosts))),
        "instance_types": None if types == ["unknown"] else "; ".join(types),
    }


def _note(row: Row) -> str:
    notes = []
    num_counted, num_ok = int(row["num_counted"]), int(row["num_ok"])
    if not num_ok:
        return ""
    if num_counted < num_ok:
        notes.append(f"figures from {num_counted} of {num_ok} ok, those with sound conditions")
    elif not row["num_sound"]:
        all_ok = "the 1" if num_ok == 1 else f"all {num_ok}"
        notes.append(f"no repeat under sound conditions: figures from {all_ok} ok")
    if row["num_steady"] < num_counted:
        notes.append(f"warm-up of {num_counted - int(row['num_steady'])} of {num_counted} did not become steady")
    notes += [row[name] for name in ("unchecked", "notes") if not pd.isna(row[name])]
    spread = row["gpu_sm_clock_spread"]
    if spread is not None and spread > MIN_DIFFERENCE:
        notes.append(f"SM clocks of the repeats differ by {spread:.0%}".replace("%", " %"))
    if row["num_environments"] > 1:
        notes.append(f"environment {row['environment_id']}, one of {int(row['num_environments'])}")
    if row["num_machines"] > 1:
        notes.append(f"ran on {int(row['num_machines'])} machines")
    if row["disagreement"] and not pd.isna(row["disagreement"]):
        notes.append(f"repeats disagree: {row['disagreement']}; more repeats are needed")
    if num_counted == 1:
        notes.append("one repeat counts: no interval")
    return "; ".join(notes)


def summarize_collections(collections: Sequence[Collection]) -> pd.DataFrame:
    frames = [summarize_cells(collection) for collection in collections]
    return pd.concat(frames, ignore_index=True)


def list_invalid(collection: Collection) -> pd.DataFrame:
    """Return one row per ok repeat that is not valid, with its reasons and whether it counts; INVALID_COLUMNS."""
    results = collection.results
    rows = results.assign(counts=judge_counting(results))
    invalid = (results["status"] == "ok") & (results["verdict"] != "valid")
    return rows.loc[invalid, list(INVALID_COLUMNS)].reset_index(drop=True)


def list_failures(collection: Collection) -> pd.DataFrame:
    """Return one row per planned repeat that did not end ok, missing ones included; columns FAILURE_COLUMNS."""
    results = collection.results
    return results.loc[results["status"] != "ok", list(FAILURE_COLUMNS)].reset_index(drop=True)


def list_skipped(collection: Collection) -> pd.DataFrame:
    return pd.DataFrame([(document.key, document.reason) for document in collection.skipped], columns=["key", "reason"])


CALIBRATIONS: Mapping[str, tuple[str, Sequence[str], str]] = {
    "product_factor": ("product_flops_per_second", ("framework", "precision", "environment_id"), "multiplies matrices"),
    "copy_factor": ("copy_bytes_per_second", ("hardware_id", "copy_bytes"), "copies memory"),
}
"""By the column of the factor: the rate, what has to be alike for two rates to be compared, which includes the type of
the machine, and what it does at that rate."""

_OF_MACHINES = (
    *("machine", "cell_id", "framework", "precision", "environment_id", "hardware_id", "center_step_seconds"),
    *("copy_bytes", "copy_bytes_per_second", "gpu_product_flops_per_second", "cpu_product_flops_per_second"),
    *("instance_type", "zone", "cpu_model", "gpu_name", "gpu_sm_clock_mhz", "gpu_max_temperature_celsius"),
)
"""What is read of the results: of a large run, all columns are too many to have twice in memory."""


def select_sound(results: pd.DataFrame) -> pd.DataFrame:
    """Return the repeats that ended ok under sound conditions, with what is known of their machines.

    `product_flops_per_second` is that of the GPU, or else of the CPUs.
    """
    sound = results.loc[is_sound(results), list(_OF_MACHINES)]
    products = sound["gpu_product_flops_per_second"].fillna(sound["cpu_product_flops_per_second"])
    return sound.assign(product_flops_per_second=products)


def compare_calibrations(sound: pd.DataFrame) -> dict[str, dict[str, Estimate]]:
    """Return, by factor of CALIBRATIONS, that of each machine: its rate over that of the others of its type.

    Machines of which only one has measured a kind are left out.
    """
    return {name: compare_machines(sound, column, kind) for name, (column, kind, _) in CALIBRATIONS.items()}


def compare_machines(sound: pd.DataFrame, column: str, kind: Sequence[str]) -> dict[str, Estimate]:
    """Return the factor of each machine on `column`, among repeats that are alike in the columns `kind`."""
    rows = sound[sound[column].notna()]
    kinds = rows.groupby(list(kind), sort=False, dropna=False).ngroup()
    return estimate_machine_effects(rows[column].to_list(), kinds.to_list(), rows["machine"].to_list())


def describe_deviations(factors: Mapping[str, Mapping[str, Estimate]]) -> dict[str, str]:
    """Return in words how each machine differs by its calibration from the others of its type, if it does.

    A machine differs that is MIN_DIFFERENCE faster or slower, and whose interval together with those of the others
    excludes 1. Without repeats to tell, none is said to.
    """
    found: dict[str, list[str]] = {}
    for name, by_machine in factors.items():
        words = CALIBRATIONS[name][2]
        tested = {machine: factor for machine, factor in by_machine.items() if factor.p_value is not None}
        for (machine, factor), own in zip(tested.items(), judge_together(list(tested.values())), strict=True):
            is_large = not 1 / (1 + MIN_DIFFERENCE) < factor.center < 1 + MIN_DIFFERENCE
            if is_large and own.is_different:
                quoted = f"{factor.center:.3f}x ({own.joint_low:.3f} to {own.joint_high:.3f})"
                found.setdefault(machine, []).append(f"{words} {quoted} as fast")
    return {machine: f"{machine} {' and '.join(words)}" for machine, words in sorted(found.items())}
