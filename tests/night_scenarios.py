"""Draws simulated nights whose truth is known and runs `collector.nights` on them, night by night, as `watch` does.

The log of a repeat is: the cell's level + what the night does to all cells + what it does to this cell + the repeat's
own noise. Repeats have 2 %. What a night does to a cell is 1 to 3 %, drawn anew each night; of a confirmation in the
same night it is the same (`lasts`), which is the worst case: measuring again cannot average it away.
"""

from dataclasses import dataclass, replace

import numpy as np

from collector.nights.detection import (
    CellNight,
    FloatArray,
    Nights,
    Seen,
    SeriesKey,
    Starts,
    judge,
    look_for_changes,
    measure_alone,
)
from factories import make_cell, make_run

STEP = float(np.log(1.05))
REPEAT_NOISE = 0.02
"""Standard deviation of the log of a repeat within its night."""
NUM_REPEATS = 5
NUM_CONFIRMATIONS = 25
"""Repeats of a confirmation: five times those of a night, as `watch` plans."""
LEVEL_STEP = 0.15
"""Log of the upper level over the lower one, of cells whose whole repeats are at one of two: 10 to 20 % were seen."""
UPPER_SHARE = 0.3
CHANGED_EVERY = 20
"""One cell in so many changes: what all cells share is still known from the others."""
FIRST_LOOK = 3
"""Nights there are at the first look, where there is no change. Where there is one, what counts is whether it
is found in time: the first look is taken in its first night."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """How nights are drawn. Deviations are of logs."""

    name: str
    own: tuple[float, float]
    """Of what a night does to a cell by itself: those of the cells lie evenly between the two."""
    shared: float = 0.0
    """Of what a night does to all cells."""
    num_two_levels: int = 0
    num_cells: int = 200
    num_nights: int = 60
    step: float = 0.0
    """Log by which the changed cells are slower from the night `change_at` on."""
    weekly_drift: float = 0.0
    change_at: int = 30
    within: int = 3
    """Nights in which a change has to be found."""
    lasts: bool = True
    """Whether a confirmation meets the same noise of the night; else one as of another night."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one programme of nights."""

    num_false_alarms: int
    num_confirmations: int
    """Cells measured again, over all nights."""
    num_changed: int
    num_found: int
    """Of the changed cells, those confirmed in time."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The logs of all repeats, shape (cells, nights, repeats), and which cells change."""

    nightly: FloatArray
    again: FloatArray
    """Those of a confirmation of every cell in every night, of which few are used."""
    changed: FloatArray


def draw(scenario: Scenario, seed: int) -> Drawn:
    """Return simulated repeats around 1 s."""
    rng = np.random.default_rng([20261122, seed])
    shape = (scenario.num_cells, scenario.num_nights)
    deviations = np.linspace(*scenario.own, scenario.num_cells)[:, np.newaxis]
    is_changed = np.arange(scenario.num_cells) % CHANGED_EVERY == CHANGED_EVERY // 2
    nights = np.arange(scenario.num_nights) - scenario.change_at
    signal = (
        np.where(nights >= 0, scenario.step + scenario.weekly_drift / 7 * (nights + 1), 0.0) * is_changed[:, np.newaxis]
    )
    common = scenario.shared * rng.standard_normal(scenario.num_nights) + signal
    own, other = (deviations * rng.standard_normal(shape) for _ in range(2))

    def draw_repeats(night: FloatArray, number: int) -> FloatArray:
        repeats = REPEAT_NOISE * rng.standard_normal((*shape, number))
        levels = LEVEL_STEP * (rng.random((scenario.num_two_levels, scenario.num_nights, number)) < UPPER_SHARE)
        repeats[: scenario.num_two_levels] += levels
        return np.asarray((common + night)[..., np.newaxis] + repeats)

    return Drawn(
        nightly=draw_repeats(own, NUM_REPEATS),
        again=draw_repeats(own if scenario.lasts else other, NUM_CONFIRMATIONS),
        changed=is_changed & bool(scenario.step or scenario.weekly_drift),
    )


def make_nights(repeats: FloatArray) -> Nights:
    """Return the series of repeats of shape (cells, nights, repeats)."""
    num_cells, num_nights, number = repeats.shape
    cells = [make_cell(seed=seed) for seed in range(num_cells)]
    keys = tuple(SeriesKey(cell=cell, cpu_model="simulated", gpu_name=None) for cell in cells)
    return Nights(
        runs=(make_run(cells[:1], repeats=NUM_REPEATS),) * num_nights,
        keys=keys,
        logs=repeats.mean(axis=2),
        num_repeats=np.full((num_cells, num_nights), number),
        sums_of_squares=number * repeats.var(axis=2),
    )


def take_first(nights: Nights, number: int) -> Nights:
    """Return the first `number` nights."""
    return replace(
        nights,
        runs=nights.runs[:number],
        logs=nights.logs[:, :number],
        num_repeats=nights.num_repeats[:, :number],
        sums_of_squares=nights.sums_of_squares[:, :number],
    )


def run_programme(scenario: Scenario, seed: int) -> Outcome:
    """Look at every night, measure again what is suspected, judge it, and return what came of it."""
    drawn = draw(scenario, seed)
    nights = make_nights(drawn.nightly)
    first_found = np.full(scenario.num_cells, -1)
    num_confirmations = num_group_alarms = 0
    starts: dict[SeriesKey, int] = {}
    has_change = bool(drawn.changed.any())
    last = scenario.change_at + scenario.within if has_change else scenario.num_nights
    for night in range(scenario.change_at if has_change else FIRST_LOOK - 1, last):
        now = take_first(nights, night + 1)
        suspected = [
            seen
            for seen in look_for_changes(now, Starts(cells=starts, groups={}))
            if seen.shift > 0 and (seen.is_of_group or first_found[seen.rows[0]] < 0)
        ]
        num_confirmations += len(suspected)
        num_group_alarms += sum(confirm_group(now, drawn, seen) for seen in suspected if seen.is_of_group)
        for seen in confirm_cells(nights, drawn, [seen.rows[0] for seen in suspected if not seen.is_of_group], night):
            first_found[seen.rows[0]] = night
            starts[nights.keys[seen.rows[0]]] = seen.first
    is_changed = drawn.changed.astype(bool)
    return Outcome(
        num_false_alarms=num_group_alarms + int((first_found[~is_changed] >= 0).sum()),
        num_confirmations=num_confirmations,
        num_changed=int(is_changed.sum()),
        num_found=int((first_found[is_changed] >= 0).sum()),
    )


def confirm_cells(nights: Nights, drawn: Drawn, rows: list[int], night: int) -> list[Seen]:
    """Measure cells again, keep the repeats in `nights`, and return the changes that are confirmed."""
    for row in rows:
        both = np.concatenate([drawn.nightly[row, night], drawn.again[row, night]])
        nights.logs[row, night], nights.num_repeats[row, night] = both.mean(), len(both)
        nights.sums_of_squares[row, night] = len(both) * both.var()
    if not rows:
        return []
    now = take_first(nights, night + 1)
    found = [seen for seen in look_for_changes(now) if not seen.is_of_group and seen.rows[0] in rows]
    return [seen for seen in found if seen.shift > 0 and judge_alone(seen, now, drawn.again, night)]


def confirm_group(now: Nights, drawn: Drawn, seen: Seen) -> bool:
    """Measure five cells of a group again and return whether the change of all is confirmed."""
    return judge_alone(replace(seen, rows=seen.rows[:5], levels=seen.levels[:5]), now, drawn.again, len(now.runs) - 1)


def judge_alone(seen: Seen, now: Nights, again: FloatArray, night: int) -> bool:
    """Return whether a change is confirmed by the repeats of its confirmation."""
    confirmation = {now.keys[row]: CellNight(logs=tuple(again[row, night]), facts={}) for row in seen.rows}
    alone = measure_alone(seen, now, confirmation, [now.keys[row].cell.cell_id for row in seen.rows])
    return alone is not None and judge(seen, alone)[0] == "confirmed"
