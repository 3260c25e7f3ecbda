"""Compare the paired cells of two sides: their ratios, the noise that they are held against, and the verdicts."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from collector.labels import DEVICE_NAMES
from collector.machines import ACROSS
from collector.repeats_needed import RepeatVariances, measure_variance
from collector.versus.cell_pairs import CellPair, are_within_runs
from collector.versus.descriptions import describe_confounded, describe_judged, describe_judged_group, describe_untested
from collector.versus.document import CellComparison, Family, GroupComparison, NoiseDescription
from collector.versus.families import judge_families, split_families
from collector.versus.groups import estimate_group_ratio
from collector.versus.metrics import Metric
from collector.versus.noise import NONE, Noise, PoolKey, assume_noise, take_noise
from collector.versus.ranges import compare_most, measure_range
from collector.versus.sides import estimate_ratio_of_sides, share_runs
from collector.versus.verdicts import RatioTest

Row = dict[str, Any]
GroupKey = tuple[tuple[PoolKey, ...], tuple[str, ...], tuple[str, ...]]
"""Pools of the noise, and the runs of both sides."""


class NoisePools:
    """What identical runs differ by, by device and by whether they used the same machines."""

    def __init__(self, measured: Mapping[PoolKey, Noise], metric: Metric, floor: float | None) -> None:
        self._measured, self._metric, self._floor = measured, metric, floor

    def find(self, pool: PoolKey) -> Noise | None:
        """Return the noise that is measured, given or assumed; None where nothing is known of it."""
        if pool in self._measured:
            return self._measured[pool]
        if self._floor is not None:
            return take_noise(self._floor)
        return assume_noise(is_same_machine=pool[1]) if self._metric.has_default_noise else None

    def find_noisiest(self, found: Sequence[PoolKey]) -> Noise | None:
        """Return the noise of a pair whose sides have these pools; None where one of them is not known.

        Half of the variance of a ratio of two devices is that of either, so that of the noisier one is enough.
        """
        noises = [noise for pool in found if (noise := self.find(pool)) is not None]
        return max(noises, key=lambda noise: noise.between_runs.log_variance) if len(noises) == len(found) else None


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What is said of all pairs, and what it rests on."""

    cells: list[CellComparison]
    together: list[GroupComparison]
    noise: list[NoiseDescription]
    families: list[Family]


def compare_pairs(pairs: Sequence[CellPair], pools: NoisePools, metric: Metric, floor: float | None) -> Evaluation:
    """Return the verdicts on pairs of a metric with intervals, on groups of them, and what they rest on.

    The intervals of the cells and of the groups of them hold together, so that identical runs are called worse by any
    of them in few cases. Within the same runs those of the cells hold together, as in the tables of the report, and
    those of the groups: a pair has one verdict, whether a mean of many is shown beside it or not.
    """
    tests = {index: test for index, pair in enumerate(pairs) if (test := _make_test(pair, pools, floor))}
    groups = _group_tests(pairs, tests, pools)
    families = split_families(len(tests), len(groups), is_within_runs=are_within_runs(pairs))
    verdicts, sizes = judge_families([*tests.values(), *(test for _, _, test in groups)], families)
    cells = [describe_confounded(pair) if pair.is_confounded else describe_untested(pair) for pair in pairs]
    for (index, test), verdict, size in zip(tests.items(), verdicts, sizes, strict=False):
        cells[index] = describe_judged(pairs[index], test, verdict, size, metric)
    together = [
        describe_judged_group(label, number, test, verdict)
        for (label, number, test), verdict in zip(groups, verdicts[len(tests) :], strict=True)
    ]
    noise = _describe_noise([pairs[index] for index in tests], pools)
    return Evaluation(cells=cells, together=together, noise=noise, families=families)


def compare_pairs_by_range(
    pairs: Sequence[CellPair], identical: Mapping[str, float], floor: float | None
) -> list[CellComparison]:
    """Return the verdicts on pairs of a metric whose repeats do not scatter; `identical`: by device, a log."""
    cells = []
    for pair in pairs:
        described = describe_untested(pair)
        if pair.problem is None:
            known = max(identical.get(side.cell["device"], 0.0) for side in (pair.a, pair.b))
            log_floor = measure_range(pair.a, pair.b, known)
            log_floor = max(log_floor, math.log1p(floor or 0.0))
            ratio, decision = compare_most(pair.a, pair.b, log_floor)
            update = {
                "verdict": decision,
                "reason": "",
                "ratio": ratio,
                "floor": math.expm1(log_floor),
                "value_a": max(pair.a.values),
                "value_b": max(pair.b.values),
            }
            described = described.model_copy(update=update)
        cells.append(described)
    return cells


def _make_test(pair: CellPair, pools: NoisePools, floor: float | None) -> RatioTest | None:
    noise = pools.find_noisiest(pair.pools)
    if pair.problem or pair.is_confounded or (noise is None and not pair.is_same_run):
        return None
    test = RatioTest(
        ratio=estimate_ratio_of_sides(pair.a, pair.b),
        noise=NONE,
        runs_share=share_runs(pair.a, pair.b),
        variances=_measure_variances(pair),
        least_floor=floor or 0.0,
    )
    if noise is None or pair.is_same_run:
        return test
    own = [noise.own[side.cell_id] for side in (pair.a, pair.b) if side.cell_id in noise.own]
    return replace(test, noise=noise.between_runs, own=max(own, key=lambda one: one.excess, default=None))


def _measure_variances(pair: CellPair) -> RepeatVariances | None:
    """Return how much repeats scatter; None where a side has several machines or runs, which are the observations."""
    found = [
        measure_variance(side.estimate(), len(side.values))
        for side in (pair.b, pair.a)
        if len(side.machines) == len(side.run_ids) == 1
    ]
    if len(found) < 2 or found[0] is None or found[1] is None:
        return None
    return RepeatVariances(one=found[0], other=found[1])


def _group_tests(
    pairs: Sequence[CellPair], tests: Mapping[int, RatioTest], pools: NoisePools
) -> list[tuple[str, int, RatioTest]]:
    """Return (label, number of cells, test of their mean) for the cells of one device from the same runs.

    Cells of a run that used several machines are left out: each machine shifts all of its cells, and the cells need
    not have used the same ones.
    """
    groups: defaultdict[GroupKey, list[int]] = defaultdict(list)
    for index in tests:
        pair = pairs[index]
        if all(len(side.machines) == 1 or len(side.run_ids) > 1 for side in (pair.a, pair.b)):
            groups[pair.pools, pair.a.run_ids, pair.b.run_ids].append(index)
    return [
        (
            _name_group(key, len(found)),
            len(found),
            _test_group([pairs[index] for index in found], tests[found[0]], pools),
        )
        for key, found in groups.items()
        if len(found) > 1
    ]


def _test_group(pairs: Sequence[CellPair], first: RatioTest, pools: NoisePools) -> RatioTest:
    """Return the test of the mean of the ratios of `pairs`, of which `first` is that of the first one."""
    noise = pools.find_noisiest(pairs[0].pools)
    ratio = estimate_group_ratio([pair.a for pair in pairs], [pair.b for pair in pairs])
    shared = NONE if noise is None or pairs[0].is_same_run else noise.shared
    return replace(first, ratio=ratio, noise=shared, own=None)


def _name_group(key: GroupKey, number: int) -> str:
    """Return the name of the mean of so many ratios: each of two cells of one device, or of one of each device."""
    pools = key[0]
    _, is_same_machine, shares = pools[0]
    cells = f"{'pairs of ' * (len(pools) - 1)}{' and '.join(DEVICE_NAMES[device] for device, *_ in pools)} cells"
    return f"all {number} {cells}{' with tenants' if shares else ''}{'' if is_same_machine else f', {ACROSS}'}"


def _describe_noise(tested: Sequence[CellPair], pools: NoisePools) -> list[NoiseDescription]:
    """Return what identical runs differ by, of each kind of pairs; of pairs of the same runs only where it is known."""
    described = []
    for pool, is_same_run in dict.fromkeys((pool, pair.is_same_run) for pair in tested for pool in pair.pools):
        noise = pools.find(pool)
        if noise is None or (is_same_run and noise.source == "default"):
            continue
        component = noise.within_run if is_same_run else noise.between_runs
        described.append(
            NoiseDescription(
                device=pool[0],
                is_same_machine=pool[1],
                is_shared=pool[2],
                is_same_run=is_same_run,
                source=noise.source,
                floor=math.expm1(component.log_floor),
                run_ids=noise.run_ids,
                num_cells=noise.num_cells,
            )
        )
    return described
