"""Read runs into series, find changes that the newest night shows, and decide those that were measured again.

A series has a row per cell and hardware, a column per night, with the repeats and the environment. A change is a level
from some night on that differs from the level before it. For every night that could be the first after a change, the
precision-weighted mean from it on is compared with the one before (a generalised likelihood ratio, evaluated anew each
night). The night is the unit: repeats of one night share its noise. docs/nights.md has the methods and their figures.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize, special, stats

from bench.schema import Cell, Outcome, Run, Shift, WatchedMetric
from collector.results.frames import group_rows, list_rows
from collector.results.hosts import Place
from collector.results.load import unify_centers
from collector.results.summary import CENTER_RATES, SOUND_VERDICTS

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Facts = Mapping[str, frozenset[str]]
"""What is recorded of the environment of a cell in one night, by name: the values of its repeats."""

UNSOUND_BUT_SLOW = "throttled"
"""A night in which every repeat was throttled is a slower night, with its cause: it counts. Repeats that others
disturbed, or that ran on the wrong device, say nothing of the cell: they do not."""
FACTS = {
    name: name
    for name in (
        *("instance_type", "driver_version", "framework_version", "python_version", "num_threads", "kubelet_version"),
        *("verdict", "image", "cpu_quota_cores", "kernel", "tool_revision"),
    )
} | {"hostname": "host", "git_revision": "revision"}
"""What is recorded of the environment, to the column of `join_results`."""
READ_COLUMNS = (
    *("run_id", "cell_id", "status", "verdict", "environment_id", "cpu_model", "gpu_name", "image_id"),
    *("instance_type", "driver_version", "framework_version", "python_version", "num_threads", "kubelet_version"),
    *("center_step_seconds", "mean_step_seconds", "summarized_by", "finished_at", "cold_start_seconds", *CENTER_RATES),
    *Place._fields,
)


WATCHED: dict[WatchedMetric, str] = {"step-time": "center_step_seconds", "cold-start": "cold_start_seconds"}
"""What nights are watched for, and its column of the results."""


@dataclass(frozen=True, kw_only=True)
class SeriesKey:
    """What a series is of: a cell on one kind of hardware. A night on other hardware is in another series."""

    cell: Cell
    cpu_model: str
    gpu_name: str | None
    metric: WatchedMetric = "step-time"

    @property
    def hardware(self) -> str:
        return self.cpu_model if self.gpu_name is None else f"{self.cpu_model}, {self.gpu_name}"

    @property
    def group(self) -> "Group":
        """What cells that share the noise of a night have in common."""
        return self.cell.device, self.hardware, self.metric


@dataclass(frozen=True, kw_only=True)
class Nights:
    """The series of a matrix, the oldest night first. NaN stands for a night without a repeat that counts."""

    runs: tuple[Run, ...]
    keys: tuple[SeriesKey, ...]
    logs: FloatArray
    """Mean of the logs of the repeats' times (seconds), shape (series, nights)."""
    num_repeats: IntArray
    """Repeats that count, shape (series, nights)."""
    sums_of_squares: FloatArray
    """Of the deviations of the repeats' logs from their mean, shape (series, nights)."""
    facts: tuple[tuple[Facts, ...], ...] = ()
    """The environment, by series and night; empty: not collected, as in simulations."""

    @property
    def variances(self) -> FloatArray:
        """Variance of each night's mean that comes from its repeats, shape (series, nights).

        The spread of repeats is that of all nights of the series. Where no night has two repeats it is unknown: 0 then,
        and the spread between nights, which includes it, stands for both.
        """
        freedom = np.maximum(self.num_repeats - 1, 0).sum(axis=1)
        squares = np.nansum(self.sums_of_squares, axis=1)
        single = np.divide(squares, freedom, out=np.zeros_like(squares), where=freedom > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = single[:, np.newaxis] / self.num_repeats
        return np.where(self.num_repeats > 0, means, np.nan)

    def select(self, rows: list[int]) -> "Nights":
        return replace(
            self,
            keys=tuple(self.keys[row] for row in rows),
            logs=self.logs[rows],
            num_repeats=self.num_repeats[rows],
            sums_of_squares=self.sums_of_squares[rows],
        )

    def find_groups(self) -> dict["Group", IntArray]:
        rows: dict[Group, list[int]] = {}
        for row, key in enumerate(self.keys):
            rows.setdefault(key.group, []).append(row)
        return {group: np.array(found) for group, found in rows.items()}


@dataclass(frozen=True, kw_only=True)
class CellNight:
    """The repeats of a cell that count in one run."""

    logs: tuple[float, ...]
    """Of their times in seconds."""
    facts: Facts

    @property
    def instance_types(self) -> frozenset[str]:
        """Machine types of the nodes; empty: not recorded."""
        return self.facts.get("instance_type", frozenset())

    def join(self, other: "CellNight") -> "CellNight":
        """Return both as one night; the environment is this one's."""
        return replace(self, logs=self.logs + other.logs)


CellNights = Mapping[SeriesKey, CellNight]


def read_nights(runs: Mapping[str, Run], results: pd.DataFrame) -> dict[str, CellNights]:
    """Return by run the repeats of each cell that count, by cell and hardware; cells without any are left out.

    `results`: of all runs (by `join_results`, with READ_COLUMNS), so that one statistic stands for all repeats of a
    cell and a host has one name. Sound repeats count; where a cell has none, throttled ones do.
    """
    found: dict[str, CellNights] = {run_id: {} for run_id in runs}
    ok = results[(results["status"] == "ok") & results["center_step_seconds"].notna() & results["cpu_model"].notna()]
    for run_id, frame in unify_centers(ok).groupby("run_id", sort=False):
        cells = {planned.cell.cell_id: planned.cell for planned in runs[str(run_id)].cells}
        night: dict[SeriesKey, CellNight] = {}
        for (cell_id,), repeats in group_rows(list_rows(frame), ["cell_id"]).items():
            sound = [row for row in repeats if row["verdict"] in SOUND_VERDICTS]
            counted = sound or [row for row in repeats if row["verdict"] == UNSOUND_BUT_SLOW]
            for (cpu_model, gpu_name), own in group_rows(counted, ["cpu_model", "gpu_name"]).items():
                facts = {
                    fact: frozenset(str(row[column]) for row in own if row[column] is not None)
                    for fact, column in FACTS.items()
                }
                for metric, column in WATCHED.items():
                    key = SeriesKey(cell=cells[cell_id], cpu_model=cpu_model, gpu_name=gpu_name, metric=metric)
                    if logs := tuple(math.log(row[column]) for row in own if row[column]):
                        night[key] = CellNight(logs=logs, facts=facts)
        found[str(run_id)] = night
    return found


def tabulate_nights(runs: Sequence[Run], nights: Sequence[CellNights]) -> Nights:
    keys = tuple(dict.fromkeys(key for night in nights for key in night))
    shape = (len(keys), len(nights))
    logs, squares, counts = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    for row, key in enumerate(keys):
        for column, night in enumerate(nights):
            if key in night:
                values = np.array(night[key].logs)
                logs[row, column], counts[row, column] = values.mean(), len(values)
                squares[row, column] = ((values - values.mean()) ** 2).sum()
    facts = tuple(tuple(night[key].facts if key in night else {} for night in nights) for key in keys)
    return Nights(runs=tuple(runs), keys=keys, logs=logs, num_repeats=counts, sums_of_squares=squares, facts=facts)


EFFECT_FLOOR = 0.02
"""Log of the smallest change that is told: smaller ones are within what layouts of memory and machines of one type do,
and nobody acts on them."""
SUSPICION_P_VALUE = 0.01
"""A change is measured again where it is less likely than this in one night of one cell. It costs little: in
simulation two to eight of 200 cells a night."""
DECISION_P_VALUE = 2e-5
"""A change is told where it is less likely than this after it was measured again. 200 cells in 60 nights are 12,000
looks; benchmarks/watch_nights.py finds 0.2 to 0.9 false alarms in such a programme (docs/nights.md)."""
NUM_SURE_NIGHTS = 7
"""Nights before a change that are asked for where there are more nights than that."""
MIN_NIGHTS_BEFORE = 2
CONFIDENCE = 0.95
Group = tuple[str, str, WatchedMetric]
"""Device, hardware, and what is watched."""


@dataclass(frozen=True, kw_only=True)
class Starts:
    """The first night that is compared, after the last confirmed change; the first of all where none is named."""

    cells: dict[SeriesKey, int] = field(default_factory=dict)
    groups: dict[Group, int] = field(default_factory=dict)


NO_STARTS = Starts()


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A change that the newest night shows in a series, or in all cells of a group."""

    rows: tuple[int, ...]
    """The series that it is of, by their rows in the nights."""
    group: Group
    is_of_group: bool
    first: int
    """The first night after the change, by its column."""
    shift: float
    """Log of the time after the change over the one before."""
    log_interval: tuple[float, float]
    """The 95 % interval of the shift."""
    p_value: float
    num_before: int
    num_after: int
    deviation: float
    """Standard deviation of the log of a night around the series' level."""
    levels: tuple[float, ...]
    """What each of `rows` would be in the newest night without the change, as logs."""

    def describe(self) -> Shift:
        return Shift(
            ratio=math.exp(self.shift),
            low=math.exp(self.log_interval[0]),
            high=math.exp(self.log_interval[1]),
            p_value=self.p_value,
            num_nights_before=self.num_before,
            num_nights_after=self.num_after,
        )


def look_for_changes(nights: Nights, starts: Starts = NO_STARTS, *, p_value: float = SUSPICION_P_VALUE) -> list[Seen]:
    """Return the changes of at least EFFECT_FLOOR that the newest night shows, the least likely by chance first."""
    return [seen for seen in look(nights, starts, p_value=p_value) if abs(seen.shift) >= EFFECT_FLOOR]


def look(nights: Nights, starts: Starts = NO_STARTS, *, p_value: float = 1.0) -> list[Seen]:
    """Return what the newest night shows of each series and group, the least likely by chance first.

    Those whose p-value is not below `p_value` are left out; 1: those of which nothing can be said. Series learn noise
    from those of the same metric.
    """
    found = []
    for metric in WATCHED:
        rows = [row for row, key in enumerate(nights.keys) if key.metric == metric]
        if rows and len(nights.runs) > 1:
            own = _look_at_metric(nights.select(rows), starts, p_value)
            found += [replace(seen, rows=tuple(rows[row] for row in seen.rows)) for seen in own]
    return sorted(found, key=lambda seen: seen.p_value)


def _look_at_metric(nights: Nights, starts: Starts, p_value: float) -> list[Seen]:
    cell_starts = np.array([starts.cells.get(key, 0) for key in nights.keys], dtype=np.int64)
    levels, common = find_levels(nights.logs, cell_starts), np.zeros_like(nights.logs)
    groups = {group: rows for group, rows in nights.find_groups().items() if len(rows) >= MIN_GROUP_CELLS}
    for rows in groups.values():
        common[rows] = find_common_effect(nights.logs[rows], levels[rows])
    found = [
        make(rows=(row,), group=nights.keys[row].group, is_of_group=False, levels=(before + float(common[row, -1]),))
        for row, before, make in _look_at_series(nights.logs - common, nights.variances, cell_starts, p_value)
    ]
    if groups:
        names = list(groups)
        group_starts = np.array([starts.groups.get(name, 0) for name in names], dtype=np.int64)
        logs = np.array([common[rows[0]] for rows in groups.values()])
        for index, _, make in _look_at_series(logs, np.zeros_like(logs), group_starts, p_value):
            present = [int(row) for row in groups[names[index]] if not np.isnan(nights.logs[row, -1])]
            seen = make(rows=tuple(present), group=names[index], is_of_group=True, levels=())
            before = take_medians(nights.logs[present, group_starts[index] : seen.first])
            found.append(replace(seen, levels=tuple(map(float, before))))
    return found


def _look_at_series(
    logs: FloatArray, repeat_variances: FloatArray, starts: IntArray, p_value: float
) -> Iterator[tuple[int, float, Callable[..., Seen]]]:
    """Yield the row of each series whose most likely change has a one-sided p-value below `p_value`.

    With it the level before the change, and what makes a Seen of the change: the split of the nights whose two sides
    differ most. `logs`, `repeat_variances`: shape (series, nights); `starts`: shape (series,).
    """
    variances, freedom = estimate_variances(logs)
    typical = np.nan_to_num(take_medians(repeat_variances))
    # What the repeats do not explain; at the least, the standard error with which the variance is known: where repeats
    # make up most of it, as in a cell on two levels, the rest is not 0, only not seen. A confirmation has many repeats
    # and shares the rest with its night.
    own = np.maximum(variances - typical, variances * np.sqrt(np.minimum(1.0, 2 / freedom)))[:, np.newaxis]
    is_used = ~np.isnan(logs) & (np.arange(logs.shape[1]) >= starts[:, np.newaxis])
    weights = np.where(is_used, 1 / np.maximum(own + np.nan_to_num(repeat_variances), 1e-12), 0.0)
    values = weights * np.where(is_used, logs, 0.0)
    # Of each night but the first, the sums over the nights before it, and over those from it on.
    before, after = zip(*(_sum_sides(part) for part in (is_used.astype(np.float64), weights, values)), strict=True)
    asked = np.minimum(NUM_SURE_NIGHTS, np.maximum(MIN_NIGHTS_BEFORE, is_used.sum(axis=1) - 1))[:, np.newaxis]
    fits = (before[0] >= asked) & (after[0] >= 1) & is_used[:, -1:] & is_used[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = before[2] / before[1]
        shifts = after[2] / after[1] - levels
        errors = np.sqrt(1 / before[1] + 1 / after[1])
        scores = np.where(fits, np.nan_to_num(np.abs(shifts) / errors, nan=-np.inf), -np.inf)
    best = scores.argmax(axis=1)
    chances: FloatArray = np.asarray(stats.t.sf(scores.max(axis=1), freedom))  # 1 where no split fits
    for row in np.flatnonzero(chances < p_value):
        place = row, best[row]
        shift, width = float(shifts[place]), float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom[row]) * errors[place])
        change = partial(
            Seen,
            first=int(best[row]) + 1,
            shift=shift,
            log_interval=(shift - width, shift + width),
            p_value=float(chances[row]),
            num_before=int(before[0][place]),
            num_after=int(after[0][place]),
            deviation=math.sqrt(variances[row]),
        )
        yield int(row), float(levels[place]), change


def _sum_sides(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sums before each night but the first, and from it on, shape (series, nights - 1)."""
    sums = np.cumsum(values, axis=1)
    return sums[:, :-1], sums[:, -1:] - sums[:, :-1]


def measure_alone(seen: Seen, nights: Nights, confirmation: CellNights, cell_ids: Sequence[str]) -> float | None:
    """Return by how much the confirmation's own repeats differ from the level before the change, as a log.

    Of several cells the median. None where no repeat of the confirmation ran on the series' hardware.
    """
    differences = [
        float(np.mean(confirmation[key].logs)) - level
        for row, level in zip(seen.rows, seen.levels, strict=True)
        if (key := nights.keys[row]) in confirmation and key.cell.cell_id in cell_ids and not math.isnan(level)
    ]
    return float(np.median(differences)) if differences else None


def judge(seen: Seen, alone: float) -> tuple[Outcome, str]:
    """Return what becomes of a suspected slowdown, and why, in one line.

    `seen`: what the night shows with the repeats of the confirmation in it; `alone`: these repeats by themselves.
    """
    if alone < EFFECT_FLOOR:
        return "dismissed", f"measured again, it differs by {_percent(alone)}: less than {_percent(EFFECT_FLOOR)}"
    if seen.shift < EFFECT_FLOOR or seen.p_value >= SUSPICION_P_VALUE:
        return "dismissed", f"with the repeats of the confirmation, the night is {_percent(seen.shift)} off: its noise"
    if seen.p_value < DECISION_P_VALUE:
        return "confirmed", f"measured again, it is slower by {_percent(alone)}"
    return "undecided", (
        f"measured again, it is slower by {_percent(alone)}, but nights of it vary by {_percent(seen.deviation)}: "
        "a later night can decide"
    )


def _percent(log: float) -> str:
    return f"{100 * math.expm1(log):.1f} %"


MIN_GROUP_CELLS = 10
"""Fewer cells do not tell what they share from what is their own: the median of 10 has 0.4 times the noise of one."""
TRIMMED_SHARE = 0.1
"""Of the squared differences of neighbouring nights, the largest ones left out, one at the least: a step of the level
makes one, and a step that is looked for must not hide in the noise that it is held against."""
DIFFERENCE_EFFICIENCY = 0.6
"""Degrees of freedom that a difference adds to a variance. Untrimmed it is 2/3 (J. von Neumann, Annals of Mathematical
Statistics 12, 1941, 367-395); trimming takes some of it."""
ASSUMED_DEVIATION = 0.03
"""Standard deviation of the log of a night, for series that say little themselves and have no others to learn from: the
upper end of what identical nights showed, 1 to 3 %."""
PRIOR_FREEDOM = 8.0
"""Degrees of freedom that the assumed noise, or that of the other cells, is worth, at the most: about two weeks of
nights. More would pass off a cell that is noisier than the others as a quiet one."""
MIN_POOLED_SERIES = 20
"""Series that a spread of variances is estimated from, at the least."""


def find_common_effect(logs: FloatArray, levels: FloatArray) -> FloatArray:
    """Return by how much each night moved all cells of a group, as logs, shape (nights,); zeros for a small group.

    `logs`: shape (cells, nights); `levels`: each cell's level in each night, the same shape. The median over the cells
    is shrunk by the share of its variance over the nights that its own uncertainty explains: where cells share nothing,
    nothing is taken from them.
    """
    num_cells, num_nights = logs.shape
    if num_cells < MIN_GROUP_CELLS or num_nights < 3:
        return np.zeros(num_nights)
    rest = logs - levels
    present = ~np.isnan(rest)
    enough = present.sum(axis=0) >= MIN_GROUP_CELLS
    effect = np.zeros(num_nights)
    if enough.sum() < 3:
        return effect
    effect[enough] = np.nanmedian(rest[:, enough], axis=0)
    effect[enough] -= np.median(effect[enough])
    own = stats.median_abs_deviation(rest[:, enough] - effect[enough], axis=None, scale="normal", nan_policy="omit")
    uncertainty = np.pi / 2 * float(own) ** 2 / present[:, enough].sum(axis=0).mean()  # of a median of normal values
    variance = float(effect[enough].var(ddof=1))
    share = max(0.0, 1 - uncertainty / variance) if variance > 0 else 0.0
    return np.asarray(share * effect)


def find_levels(logs: FloatArray, starts: IntArray) -> FloatArray:
    """Return the median of each series before and from its night `starts` on, for every night, shape of `logs`."""
    nights = np.arange(logs.shape[1])
    is_later = nights >= starts[:, np.newaxis]
    later = take_medians(np.where(is_later, logs, np.nan))
    earlier = take_medians(np.where(is_later, np.nan, logs))
    return np.where(is_later, later[:, np.newaxis], earlier[:, np.newaxis])


def estimate_variances(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variance of a night of each series, and its degrees of freedom, each of shape (series,).

    From the differences of neighbouring nights, so that steps and drifts of the level count little. Cells learn from
    each other: variances are moderated as limma does (G. K. Smyth, Statistical Applications in Genetics and Molecular
    Biology 3, 2004, article 3), with PRIOR_FREEDOM at the most. Of fewer than MIN_POOLED_SERIES series,
    ASSUMED_DEVIATION takes the place of the others.
    """
    variances, kept = _trim_differences(logs)
    freedom: FloatArray = DIFFERENCE_EFFICIENCY * kept.astype(np.float64)
    prior, prior_freedom = _learn_prior(variances, freedom)
    total = freedom + prior_freedom
    return (prior_freedom * prior + freedom * np.where(kept > 0, variances, 0.0)) / total, total


def take_medians(logs: FloatArray) -> FloatArray:
    """Return the median of each row; NaN for one without values."""
    return pd.DataFrame(logs).median(axis="columns").to_numpy()


def _trim_differences(logs: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return half the mean of each row's smallest squared differences, corrected for trimming, and their number.

    Shape (series,) each. A row of fewer than two differences has none.
    """
    if logs.shape[1] < 2:
        return np.zeros(len(logs)), np.zeros(len(logs), dtype=np.int64)
    missing: BoolArray = np.isnan(logs)
    order = np.argsort(missing, axis=1, kind="stable")  # nights with values first, in their order
    squares = np.sort(np.diff(np.take_along_axis(logs, order, axis=1), axis=1) ** 2 / 2, axis=1)  # NaN last
    counts = np.maximum((~missing).sum(axis=1) - 1, 0)
    kept = np.maximum(np.minimum(np.ceil(counts * (1 - TRIMMED_SHARE)).astype(np.int64), counts - 1), 0)
    sums = np.concatenate([np.zeros((len(logs), 1)), np.nancumsum(squares, axis=1)], axis=1)
    means = np.take_along_axis(sums, kept[:, np.newaxis], axis=1)[:, 0] / np.maximum(kept, 1)
    return means / _correct_trimming(kept / np.maximum(counts, 1)), kept


def _correct_trimming(share: FloatArray) -> FloatArray:
    """Return the mean of the smallest `share` of squares of standard normal values."""
    inside = np.clip(share, 1e-6, 1.0)
    quantile = stats.chi2.ppf(inside, 1)
    return np.asarray(stats.chi2.cdf(quantile, 3) / inside)


def _learn_prior(variances: FloatArray, freedom: FloatArray) -> tuple[float, float]:
    """Return the variance that series have in common, and how many degrees of freedom that is worth."""
    usable = (variances > 0) & (freedom >= 1)
    if usable.sum() < MIN_POOLED_SERIES:
        return ASSUMED_DEVIATION**2, PRIOR_FREEDOM
    half = freedom[usable] / 2
    logs = np.log(variances[usable]) - special.digamma(half) + np.log(half)
    spread = float(logs.var(ddof=1) - special.polygamma(1, half).mean())
    prior_freedom = min(PRIOR_FREEDOM, _invert_trigamma(spread))
    half_prior = prior_freedom / 2
    center = float(logs.mean() + special.digamma(half_prior) - np.log(half_prior))
    return float(np.exp(center)), prior_freedom


def _invert_trigamma(value: float) -> float:
    """Return twice the argument at which the trigamma function has `value`; PRIOR_FREEDOM for one that small."""
    if value <= float(special.polygamma(1, PRIOR_FREEDOM / 2)):
        return PRIOR_FREEDOM
    return 2 * float(optimize.brentq(lambda half: float(special.polygamma(1, half)) - value, 1e-3, PRIOR_FREEDOM))
