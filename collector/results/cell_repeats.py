"""Choose the repeats that the figures of a cell come from; say what they have in common, and where they disagree."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from collector.results.frames import Row
from collector.statistics import Estimate, FloatArray, Measured, compute_geometric_mean
from collector.units import MILLISECOND, format_interval, format_number

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


MIN_GAP = 0.05
"""As the bound of drift (bench.verdicts.checks.MAX_DRIFT): below it no difference is worth reporting."""
SHARE_BEYOND = 0.1
"""The share of a repeat's steps that may lie across the gap: single slow steps say nothing of a repeat."""
MAX_LISTED = 5
"""Repeats whose times are named one by one; of more, the least and the most."""


def describe_disagreement(centers: Sequence[float], series: Sequence[FloatArray]) -> str:
    """Return `1 of 3 takes 13 % longer: 61.3, 61.4 and 69.6 ms`; empty where the repeats of a cell agree.

    `centers`: the step time of each repeat; `series`: its timed steps, both in seconds. Repeats are cut where the
    widest gap between neighbours is. They disagree if nine tenths of the steps of each slower repeat take longer, by
    more than MIN_GAP, than nine tenths of the steps of each faster one.
    """
    order = sorted(range(len(centers)), key=centers.__getitem__)
    gaps = [centers[order[place + 1]] / centers[order[place]] for place in range(len(order) - 1)]
    if max(gaps, default=0.0) <= 1 + MIN_GAP:  # as of most cells, whose steps need not be sorted
        return ""
    cut = gaps.index(max(gaps)) + 1
    faster, slower = order[:cut], order[cut:]
    latest = max(_find_rank(series[index], 1 - SHARE_BEYOND) for index in faster)
    earliest = min(_find_rank(series[index], SHARE_BEYOND) for index in slower)
    if earliest <= latest * (1 + MIN_GAP):
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
    *others, last = (format_number(center, MILLISECOND) for center in centers)
    return f"{', '.join(others)} and {last}"


def _find_rank(steps: FloatArray, share: float) -> float:
    """Return the percentile of the step times at `share` (0 to 1), by the nearest rank."""
    place = min(len(steps) - 1, max(0, math.ceil(share * len(steps)) - 1))
    return float(np.partition(steps, place)[place])


def read_estimate(row: Row, suffix: str = "", *, center: str = "center_step_seconds") -> Estimate:
    """Return the estimate in a row, whose columns may carry `suffix`.

    `center`: the column of its centre: in a row of `summarize_cells` the seconds of a step, in one of `compare_cells`
    the `ratio`.
    """
    error, freedom = row[f"log_standard_error{suffix}"], row[f"degrees_of_freedom{suffix}"]
    return Estimate(
        center=float(row[f"{center}{suffix}"]),
        log_standard_error=None if pd.isna(error) else float(error),
        degrees_of_freedom=None if pd.isna(freedom) else float(freedom),
        is_staged=bool(row.get(f"is_staged{suffix}")),
    )


def read_measured(row: Row, suffix: str = "") -> Measured:
    return Measured(read_estimate(row, suffix), json.loads(row[f"machine_step_seconds{suffix}"]))
