"""Decide what two sides of a cell show: B worse, B better, the same within the floor, or undecided.

Two questions have two intervals. A difference is stated where one excludes 1 that rests on all that makes the two sides
differ if nothing else does (of two runs the repeats and the runs, of two sides of the same runs what these show), and
that holds together with those of its family. Whether a difference can be ruled out that matters is read from the
interval of the ratio alone, by its repeats: only if it lies within the floor are the two called the same.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from scipy import special

from collector.cell_words import DEVICE_NAMES
from collector.comparisons import ACROSS, describe_scope, name_sides
from collector.results.summary import count_values
from collector.sharing import spread
from collector.statistics import (
    CONFIDENCE,
    MAX_REPEATS,
    MIN_REPEATS,
    POWER,
    Estimate,
    Floor,
    Judged,
    Variance,
    add_variances,
    find_power,
    judge_together,
    measure_variance,
)
from collector.versus.question import CellComparison, CellVerdict, GroupComparison, Metric, NoiseDescription, Reason
from collector.versus.sides import (
    NONE,
    CellPair,
    Component,
    Noise,
    PoolKey,
    assume_noise,
    estimate_group_ratio,
    take_noise,
)
from collector.versus.words import explain

VERDICTS: Mapping[str, CellVerdict] = {"above": "worse", "below": "better"}
STANDS_OUT = 4.0
"""A cell's own variance over that of all cells from which on it counts as the cell's own, with the few degrees of
freedom of its own history; below, it may be chance (one difference is as large in one of 20 cells that vary alike)."""

MAX_FLOOR = 0.30
"""Within a wider floor nothing is called the same: a bound of 30 % is what a benchmark suite had to accept to stop
false alarms (https://github.com/pytorch/benchmark/pull/1681), and no reader takes more for "the same"."""


@dataclass(frozen=True, kw_only=True)
class RatioTest:
    """The ratio of one cell, and what identical runs would show in its place."""

    ratio: Estimate
    """B over A, as the repeats of both know it."""
    noise: Component
    runs_share: float
    """How much of the noise between two runs is not in the spread that `ratio` rests on: 1 where each side is one run,
    half where one of them is several, 0 where both are."""
    variances: tuple[float, ...] | None = None
    """Those of the log of one repeat of B and of A; None where more of them would not make the interval narrower."""
    own: Component = NONE
    """The cell's own noise between runs, where it is known."""
    least_floor: float = 0.0
    """The relative difference that the user takes for none: 0.05 is 5 %."""

    @property
    def log_floor(self) -> float:
        """The log ratio below which a difference means nothing: the floor of the noise, or the user's."""
        return max(self.noise.log_floor, math.log1p(self.least_floor))

    @property
    def is_floor_too_wide(self) -> bool:
        """Whether the floor is one within which nothing is called the same."""
        return self.log_floor > math.log1p(max(MAX_FLOOR, self.least_floor))

    @property
    def excess(self) -> float:
        """The variance that the runs add to that of the ratio: the cell's own where it varies more than all cells do.

        Without it, identical runs in which one cell of 20 varies four times as much as the others would be called
        slower in one of eight cases (docs/decisions/0033-nights.md).
        """
        return self.runs_share * max(self.noise.excess, self.own.excess)

    @property
    def excess_error(self) -> float:
        """Return half the variance of `excess`: that of the cell's own noise where the cell stands out."""
        own, noise = self.own, self.noise
        stands_out = own.excess > noise.excess and own.log_variance > STANDS_OUT * noise.log_variance
        return self.runs_share**2 * (own if stands_out else noise).excess_error

    @property
    def with_noise(self) -> Estimate:
        """The ratio with the variance of repeats and runs."""
        error, freedom = self.ratio.log_standard_error, self.ratio.degrees_of_freedom
        if error is None or freedom is None or not (self.excess or self.excess_error):
            return self.ratio
        total, with_runs = self.add_noise(error**2, freedom)
        freedom = min(freedom, with_runs) if self.ratio.is_staged else with_runs
        return replace(self.ratio, log_standard_error=math.sqrt(total), degrees_of_freedom=freedom)

    def add_noise(self, variance: float, freedom: float) -> Variance:
        """Return a variance of the ratio by its repeats with that of the runs, and Satterthwaite's freedom."""
        total = variance + self.excess
        return total, total**2 / (variance**2 / freedom + self.excess_error)


def judge(tests: Sequence[RatioTest]) -> list[Judged]:
    """Return the verdict on each of a family of ratios, all with an interval."""
    floors = [Floor(test.log_floor, None if test.is_floor_too_wide else test.ratio) for test in tests]
    return judge_together([test.with_noise for test in tests], floors)


def advise(test: RatioTest, num_tests: int) -> Reason:
    """Return what would decide a ratio, if it and its spread stay: so many repeats a side, or more runs."""
    if test.is_floor_too_wide:
        return Reason("floor-too-wide")
    if test.runs_share < 1:
        return Reason("more-runs")
    if test.variances is None:
        return Reason("more-machines")
    if (number := count_repeats(test, num_tests)) is not None:
        return Reason("more-repeats", {"number": number})
    if test.excess and abs(math.log(test.ratio.center)) > test.log_floor:
        return Reason("runs-vary")
    return Reason("near-floor" if test.log_floor else "near-one")


def count_repeats(test: RatioTest, num_tests: int) -> int | None:
    """Return how many repeats a side decide the ratio in POWER of the cases if it and its spread are the true ones.

    They are not: benchmarks/repeats_advice.py has how often a number that is chosen by few repeats decides.

    None above MAX_REPEATS. Both sides get the same number. The interval of this ratio holds together with those of
    `num_tests` - 1 others, as the one that the verdict rests on.
    """
    variances, distance, floor = test.variances, abs(math.log(test.ratio.center)), test.log_floor
    assert variances is not None, "asked only where more repeats make the interval narrower"

    def is_enough(number: int) -> bool:
        variance, freedom = add_variances(*((one / number, number - 1) for one in variances))
        if distance >= floor:
            return find_power(distance, *test.add_noise(variance, freedom), num_tests) >= POWER
        # The chance that the whole interval lies within the floor.
        error = math.sqrt(variance)
        room = floor - float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
        below, above = (float(special.ndtr((end - distance) / error)) for end in (-room, room))
        return above - below >= POWER

    number = bisect_left(range(MAX_REPEATS + 1), True, lo=MIN_REPEATS, key=is_enough)
    return number if number <= MAX_REPEATS else None


Found = tuple[list[CellComparison], list[GroupComparison], list[NoiseDescription]]
"""What is said of all pairs, of groups of them, and what it rests on."""


def compare_pairs(
    pairs: Sequence[CellPair], measured: Mapping[PoolKey, Noise], metric: Metric, floor: float | None
) -> Found:
    """Return the verdicts on pairs of a metric with intervals, on groups of them, and what they rest on.

    The intervals of the cells and of the groups of them hold together, so that identical runs are called worse by any
    of them in few cases. Within the same runs those of the cells hold together, as in the tables of the report, and
    those of the groups: a pair has one verdict, whether a mean of many is shown beside it or not.
    """
    pools = {pool for pair in pairs for pool in pair.pools}
    noises = dict(measured)
    if floor is not None:
        noises = dict.fromkeys(pools, take_noise(floor)) | noises
    elif metric.is_time:
        noises = {pool: assume_noise(is_same_machine=pool[1]) for pool in pools} | noises
    tests = {index: test for index, pair in enumerate(pairs) if (test := _make_test(pair, noises, floor))}
    groups = _test_groups(pairs, tests, noises)
    families = [[*tests.values()], [test for *_, test in groups]]
    if not all(pair.is_same_run for pair in pairs):
        families = [sum(families, [])]
    found = [_describe_verdict(*one) for family in families for one in zip(family, judge(family), strict=True)]
    judged = dict(zip(tests, found, strict=False))
    for index, described in judged.items():
        if described["verdict"] == "undecided":
            described["reasons"] = [advise(tests[index], len(families[0]))]
    cells = [_describe_pair(pair, judged.get(index)) for index, pair in enumerate(pairs)]
    together = [
        GroupComparison(label=label, num_cells=number, **described | spread("ratio", test.ratio))
        for (label, number, test), described in zip(groups, found[len(tests) :], strict=True)
    ]
    return cells, together, _describe_noise([pairs[index] for index in tests], noises)


def compare_pairs_by_range(
    pairs: Sequence[CellPair],
    identical: Iterable[tuple[Hashable, Mapping[str, Any]]],
    metric: Metric,
    floor: float | None,
) -> Found:
    """Return the verdicts on pairs of a metric whose repeats do not scatter, such as peak memory.

    Repeats of a cell are mostly equal to the byte; where they differ, cuDNN's search took another workspace, or the
    allocator another block. No interval of Student's t describes that. The most of each side is compared; the floor is
    the most that repeats of a side, or successive identical runs on the device, differ by. `identical`: repeats that
    count, each with what must be equal for runs to be identical.
    """
    most: defaultdict[tuple[str, Hashable], dict[Any, float]] = defaultdict(dict)
    for kind, row in identical:
        if value := metric.read(row):
            runs, run = most[row["device"], kind], (row["run_started"], row["run_id"])
            runs[run] = max(runs.get(run, 0.0), value)
    known: defaultdict[str, float] = defaultdict(float)
    for (device, _), runs in most.items():
        for (_, before), (_, after) in pairwise(sorted(runs.items())):
            known[device] = max(known[device], abs(math.log(after / before)))
    cells = []
    for pair in pairs:
        found: dict[str, Any] | None = None
        if not pair.problems:
            sides = (pair.a, pair.b)
            ranges = [math.log(max(side.values) / min(side.values)) for side in sides]
            log_floor = max(math.log1p(floor or 0.0), *ranges, *(known[side.cell["device"]] for side in sides))
            value_a, value_b = (max(side.values) for side in sides)
            ratio = value_b / value_a
            is_same = abs(math.log(ratio)) <= log_floor
            found = {"verdict": "same" if is_same else "worse" if ratio > 1 else "better"}
            found |= {"floor": math.expm1(log_floor), "value_a": value_a, "value_b": value_b}
            found |= {"ratio": ratio, "ratio_low": None, "ratio_high": None}
        cells.append(_describe_pair(pair, found))
    return cells, [], []


def _find_noisiest(pair: CellPair, noises: Mapping[PoolKey, Noise]) -> Noise | None:
    """Return the noise of a pair; None where that of one of its devices is not known.

    Half of the variance of a ratio of two devices is that of either, so that of the noisier one is enough.
    """
    found = [noises[pool] for pool in pair.pools if pool in noises]
    return max(found, key=lambda noise: noise.between_runs.log_variance) if len(found) == len(pair.pools) else None


def _make_test(pair: CellPair, noises: Mapping[PoolKey, Noise], floor: float | None) -> RatioTest | None:
    noise = _find_noisiest(pair, noises)
    if pair.problems or pair.is_confounded or (noise is None and not pair.is_same_run):
        return None
    sides, variances = (pair.b, pair.a), None
    # Of several machines or runs, these are the observations: more repeats would not make the interval narrower.
    if all(side.row["num_machines"] == len(side.run_ids) == 1 for side in sides):
        one, other = (measure_variance(side.measured.estimate, len(side.values)) for side in sides)
        variances = None if one is None or other is None else (one, other)
    test = RatioTest(
        ratio=pair.ratio, noise=NONE, runs_share=pair.runs_share, variances=variances, least_floor=floor or 0.0
    )
    if noise is None or pair.is_same_run:
        return test
    own = [noise.own[cell_id] for side in sides if (cell_id := side.cell["cell_id"]) in noise.own]
    return replace(test, noise=noise.between_runs, own=max(own, key=lambda one: one.excess, default=NONE))


def _test_groups(
    pairs: Sequence[CellPair], tests: Mapping[int, RatioTest], noises: Mapping[PoolKey, Noise]
) -> list[tuple[str, int, RatioTest]]:
    """Return (label, number of cells, test of their mean) for the cells of one device from the same runs.

    Cells of a run that used several machines are left out: each machine shifts all of its cells, and the cells need
    not have used the same ones.
    """
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    for index in tests:
        pair = pairs[index]
        if all(side.row["num_machines"] == 1 or len(side.run_ids) > 1 for side in (pair.a, pair.b)):
            groups[pair.pools, pair.a.run_ids, pair.b.run_ids].append(index)
    found = []
    for (pools, *_), members in groups.items():
        if len(members) > 1:
            first = pairs[members[0]]
            noise = None if first.is_same_run else _find_noisiest(first, noises)
            ratio = estimate_group_ratio([pairs[index] for index in members])
            test = replace(tests[members[0]], ratio=ratio, noise=noise.shared if noise else NONE, own=NONE)
            # Each is a ratio of two cells of one device, or of one of each device.
            _, is_same_machine, shares = pools[0]
            devices = " and ".join(DEVICE_NAMES[device] for device, *_ in pools)
            label = f"all {len(members)} {'pairs of ' * (len(pools) - 1)}{devices} cells"
            label += f"{' with tenants' if shares else ''}{'' if is_same_machine else f', {ACROSS}'}"
            found.append((label, len(members), test))
    return found


def _describe_pair(pair: CellPair, found: dict[str, Any] | None) -> CellComparison:
    """Return a pair with what was `found` of its ratio; None where it was not tested."""
    fields: dict[str, Any] = {}
    if not pair.problems:
        values = {f"value_{name}": side.measured.estimate.center for name, side in (("a", pair.a), ("b", pair.b))}
        fields = spread("ratio", pair.ratio) | values | {"scope": describe_scope(pair.b.row, pair.a.row)}
    if found is None:
        is_failure = pair.b.is_broken and pair.a.counted
        verdict = "undecided" if not pair.problems else "fails" if is_failure else "not comparable"
        untested = Reason("machines" if pair.is_confounded else "noise-unknown")
        found = {"verdict": verdict, "reasons": pair.problems or [untested]}
    reasons: Sequence[Reason] = found.pop("reasons", ())
    name_a, name_b = name_sides(pair.a.cell, pair.b.cell)
    return CellComparison(
        label=pair.label,
        name_a=name_a,
        name_b=name_b,
        cell_id_a=pair.a.cell["cell_id"],
        cell_id_b=pair.b.cell["cell_id"],
        num_repeats_a=len(pair.a.counted),
        num_repeats_b=len(pair.b.counted),
        notes=tuple(_list_notes(pair)),
        reasons=tuple(reason.code for reason in reasons),
        reason="; ".join(map(explain, reasons)),
        **fields | found,
    )


def _describe_verdict(test: RatioTest, judged: Judged) -> dict[str, Any]:
    floor = math.expm1(test.log_floor) if test.log_floor else None
    return judged._asdict() | {"verdict": VERDICTS.get(judged.verdict, judged.verdict), "floor": floor}


def _list_notes(pair: CellPair) -> list[str]:
    """Return notes on the repeats of both sides; if none of a side counts, the reason says so already."""
    notes = []
    for side in (pair.a, pair.b):
        others = count_values(row["verdict"] or row["status"] for row in side.rows if row["verdict"] != "valid")
        if others and 0 < len(side.counted) < len(side.rows):
            notes.append(f"{side.name}: {len(side.counted)} of {len(side.rows)} repeats count ({others})")
        elif others and side.counted:
            notes.append(f"{side.name}: {others}")
    return notes


def _describe_noise(tested: Sequence[CellPair], noises: Mapping[PoolKey, Noise]) -> list[NoiseDescription]:
    """Return what identical runs differ by, of each kind of pairs; of pairs of the same runs only a given floor."""
    pools = dict.fromkeys(
        pool
        for pair in tested
        for pool in pair.pools
        if pool in noises and (not pair.is_same_run or noises[pool].source == "given")
    )
    return [
        NoiseDescription(
            device=pool[0],
            is_same_machine=pool[1],
            is_shared=pool[2],
            source=noises[pool].source,
            floor=math.expm1(noises[pool].between_runs.log_floor),
            run_ids=noises[pool].run_ids,
            num_cells=noises[pool].num_cells,
        )
        for pool in pools
    ]
