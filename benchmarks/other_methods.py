"""Runs other change-point methods on nights, for comparison: those of tests/night_scenarios.py, and public series.

Each looks at the nights up to each night, as `watch` does, and raises an alarm for a cell when it reports a change to
the worse of at least EFFECT_FLOOR for the first time. Cells are first freed of what they share, as `watch` frees them:
the methods see the same series.
"""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from collector.nights.detection import (
    EFFECT_FLOOR,
    BoolArray,
    FloatArray,
    IntArray,
    find_common_effect,
    find_levels,
)
from night_scenarios import STEP, Scenario, draw, make_nights, run_programme

FIRST_LOOK = 10
"""Nights before the first alarm: fewer tell most methods nothing."""
MIN_BACK, MAX_BACK, FORE, T_THRESHOLD = 12, 24, 12, 7
"""Windows of Perfherder in nights, and the t above which it alarms."""
BIC_FACTORS = (1.0, 2.0, 4.0)
"""Multiples of the usual penalty of PELT, 2 log n times the variance of a night."""

FindAlarms = Callable[[FloatArray], list[int]]
"""Series of logs of shape (cells, nights) in, the night of the first alarm of each cell out; -1: none."""


def list_other_lines(scenario: Scenario, num_programmes: int, otava: str | None) -> list[str]:
    """Return the table of what each method finds, rightly and wrongly."""
    methods: dict[str, FindAlarms] = {
        f"ruptures, PELT, {factor:g} times the usual penalty": lambda logs, factor=factor: find_with_pelt(logs, factor)
        for factor in BIC_FACTORS
    }
    if otava:
        for p_value in (1e-3, 1e-5):
            methods[f"apache-otava 0.8, p < {p_value:g}"] = lambda logs, p_value=p_value: ask_otava(
                otava, logs, p_value
            )
    lines = ["| method | false alarms in a programme | steps found in three nights, 1 % | 3 % |", "|---|---|---|---|"]
    steps = [Scenario(name="", own=(own, own), step=STEP) for own in (0.01, 0.03)]
    for name, find in methods.items():
        alarms = [np.sum(find(prepare(scenario, seed)) != np.array(-1)) for seed in range(num_programmes)]
        shares = [count_found(step, find, num_programmes) for step in steps]
        lines.append(f"| {name} | {np.mean(alarms):.1f} | {shares[0]} | {shares[1]} |")
    own = [run_programme(scenario, seed).num_false_alarms for seed in range(num_programmes)]
    shares = [count_own(step, num_programmes) for step in steps]
    lines.append(f"| `watch`, with its confirmations | {np.mean(own):.1f} | {shares[0]} | {shares[1]} |")
    return lines


def prepare(scenario: Scenario, seed: int) -> FloatArray:
    """Return the logs of a programme's nights, without what the cells share, shape (cells, nights)."""
    nights = make_nights(draw(scenario, seed).nightly)
    levels = find_levels(nights.logs, np.zeros(len(nights.keys), dtype=np.int64))
    logs = nights.logs.copy()
    for rows in nights.find_groups().values():
        logs[rows] -= find_common_effect(nights.logs[rows], levels[rows])
    return logs


def count_found(scenario: Scenario, find: FindAlarms, num_programmes: int) -> str:
    """Return how many of the changed cells a method finds in time."""
    found = changed = 0
    for seed in range(num_programmes):
        is_changed = draw(scenario, seed).changed.astype(bool)
        firsts = np.array(find(prepare(replace(scenario), seed)[is_changed]))
        found += int(((firsts >= scenario.change_at) & (firsts < scenario.change_at + scenario.within)).sum())
        changed += int(is_changed.sum())
    return f"{found} of {changed}"


def count_own(scenario: Scenario, num_programmes: int) -> str:
    """Return how many of the changed cells `watch` finds in time."""
    outcomes = [run_programme(scenario, seed) for seed in range(num_programmes)]
    return f"{sum(o.num_found for o in outcomes)} of {sum(o.num_changed for o in outcomes)}"


def find_with_pelt(logs: FloatArray, factor: float) -> list[int]:
    """Return the night of each cell's first alarm by PELT with a cost of least squares (C. Truong et al., ruptures)."""
    import ruptures

    firsts = []
    for row in logs:
        first = -1
        for night in range(FIRST_LOOK, len(row) + 1):
            seen = row[:night]
            variance = float(np.mean(np.diff(seen) ** 2) / 2)
            model = ruptures.KernelCPD(kernel="linear", min_size=1).fit(seen)  # PELT in C, cost of least squares
            ends = model.predict(pen=factor * 2 * np.log(night) * variance)
            if len(ends) > 1 and _is_slower(seen, ends):
                first = night - 1
                break
        firsts.append(first)
    return firsts


def ask_otava(python: str, logs: FloatArray, p_value: float, first_look: int = FIRST_LOOK) -> list[int]:
    """Return the night of each cell's first alarm by apache-otava, which runs in an environment of its own."""
    question = {"logs": logs.tolist(), "p_value": p_value, "floor": EFFECT_FLOOR, "first_look": first_look}
    program = Path(__file__).with_name("otava_nights.py")
    answer = subprocess.run(
        [python, str(program)], input=json.dumps(question), capture_output=True, text=True, check=True
    )
    firsts: list[int] = json.loads(answer.stdout)
    return firsts


def find_with_windows(logs: FloatArray, first_look: int = FIRST_LOOK) -> list[int]:
    """Return the night of each cell's first alarm by a t-test of the nights before and after, as Perfherder has it.

    By detect_changes of mozilla/treeherder: a night is a change once FORE nights from it on are there, if its t is
    above T_THRESHOLD and not below its neighbours'. The next night's t is of one night less when this is first judged.
    """
    values = np.exp(logs)
    firsts, quiet = np.full(len(values), -1), np.zeros(len(values), dtype=np.int64)  # nights since the last large t
    earlier, latest, was_worse = np.zeros(len(values)), np.zeros(len(values)), np.zeros(len(values), dtype=bool)
    for night in range(1, values.shape[1] - FORE + 1):
        score, is_worse = _compare_windows(values, night, quiet, FORE)
        quiet = np.where(score > T_THRESHOLD, 0, quiet + 1)
        following, _ = _compare_windows(values, night + 1, quiet, FORE - 1)
        alarms = is_worse & (score >= latest) & (score >= following)
        alarms |= was_worse & (latest >= earlier) & (latest >= score)
        if night + FORE >= first_look:
            firsts = np.where(alarms & (firsts < 0), night + FORE - 1, firsts)
        earlier, latest, was_worse = latest, score, is_worse
    found: list[int] = firsts.tolist()
    return found


def _compare_windows(values: FloatArray, night: int, quiet: IntArray, fore: int) -> tuple[FloatArray, BoolArray]:
    """Return |t| of `fore` nights from a night on against those before, and whether the night is a slowdown by it.

    The window before grows with the quiet nights. Means weigh nights the less the farther they are; variances are
    around them. EFFECT_FLOOR happens to be Perfherder's own threshold, too.
    """
    scores, is_worse = np.zeros(len(values)), np.zeros(len(values), dtype=bool)
    lengths = np.minimum(np.clip(quiet, MIN_BACK, MAX_BACK), night)
    for length in np.unique(lengths):
        rows = lengths == length
        sides = values[rows, night - length : night][:, ::-1], values[rows, night : night + fore]
        means = [np.average(side, axis=1, weights=np.arange(side.shape[1], 0, -1)) for side in sides]
        errors = [
            ((side - mean[:, np.newaxis]) ** 2).sum(axis=1) / max(1, side.shape[1] - 1) / side.shape[1]
            for side, mean in zip(sides, means, strict=True)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            scores[rows] = np.nan_to_num(np.abs(means[1] - means[0]) / np.sqrt(errors[0] + errors[1]), posinf=np.inf)
        is_worse[rows] = sides[1].mean(axis=1) >= sides[0].mean(axis=1) * (1 + EFFECT_FLOOR)
    return scores, is_worse & (scores > T_THRESHOLD) & (night >= MIN_BACK)


def _is_slower(seen: FloatArray, ends: list[int]) -> bool:
    """Return whether the last segment lies above the one before it by EFFECT_FLOOR."""
    starts = [0, *ends]
    before, after = seen[starts[-3] : starts[-2]], seen[starts[-2] :]
    return float(after.mean() - before.mean()) >= EFFECT_FLOOR
