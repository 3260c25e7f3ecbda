"""Judge the paired cells of two sides: their ratios, the noise that they are held against, and the verdicts."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from collector.labels import DEVICE_NAMES
from collector.machines import ACROSS, describe_scope
from collector.repeats_needed import RepeatVariances, measure_variance
from collector.versus.document import CellComparison, Family, GroupComparison, NoiseDescription
from collector.versus.metrics import Metric
from collector.versus.noise import NONE, Noise, PoolKey, assume_noise, take_noise
from collector.versus.pairing import name_sides
from collector.versus.sides import CellPair, are_within_runs, estimate_group_ratio
from collector.versus.verdicts import RatioTest, Verdict, advise, judge

NOISE_UNKNOWN = (
    "by how much identical runs differ in it is not known: measure one of the sides a second time, or give --floor"
)
CONFOUNDED = (
    "the machines differ, one side has a single one, and by how much machines differ is not known: measure both sides "
    "on one machine, or each on several"
)
MAX_HOURS_APART = 6.0
"""Beyond it a pair of one run says that its repeats are apart: the load and the heat of a machine follow the hours of
the day. A choice, nothing that was measured."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What is said of all pairs, and what it rests on."""

    cells: list[CellComparison]
    together: list[GroupComparison] = field(default_factory=list)
    noise: list[NoiseDescription] = field(default_factory=list)
    families: list[Family] = field(default_factory=list)


def compare_pairs(
    pairs: Sequence[CellPair], measured: Mapping[PoolKey, Noise], metric: Metric, floor: float | None
) -> Evaluation:
    """Return the verdicts on pairs of a metric with intervals, on groups of them, and what they rest on.

    The intervals of the cells and of the groups of them hold together, so that identical runs are called worse by any
    of them in few cases. Within the same runs those of the cells hold together, as in the tables of the report, and
    those of the groups: a pair has one verdict, whether a mean of many is shown beside it or not.
    """
    noises = {pool: _find_noise(pool, measured, metric, floor) for pair in pairs for pool in pair.pools}
    tests = {index: test for index, pair in enumerate(pairs) if (test := _make_test(pair, noises, floor))}
    groups = _test_groups(pairs, tests, noises)
    families = [Family(num_cells=len(tests), num_groups=len(groups))]
    if are_within_runs(pairs):
        families = [Family(num_cells=len(tests), num_groups=0), Family(num_cells=0, num_groups=len(groups))]
    verdicts: list[tuple[Verdict, int]] = []
    judged = [*tests.values(), *(test for _, _, test in groups)]
    for family in families:
        number = family.num_cells + family.num_groups
        verdicts += [(verdict, number) for verdict in judge(judged[len(verdicts) : len(verdicts) + number])]
    cells = [_describe_untested(pair) for pair in pairs]
    for (index, test), (verdict, number) in zip(tests.items(), verdicts, strict=False):
        update = _describe_verdict(test, verdict) | {
            "reason": advise(test, number) if verdict.decision == "undecided" else "",
            "value_a": pairs[index].a.estimate().center,
            "value_b": pairs[index].b.estimate().center,
        }
        cells[index] = cells[index].model_copy(update=update)
    together = [
        GroupComparison(label=label, num_cells=number, **_describe_verdict(test, verdict))
        for (label, number, test), (verdict, _) in zip(groups, verdicts[len(tests) :], strict=True)
    ]
    return Evaluation(
        cells=cells,
        together=together,
        noise=_describe_noise([pairs[index] for index in tests], noises),
        families=[family for family in families if family.num_cells + family.num_groups],
    )


def compare_pairs_by_range(
    pairs: Sequence[CellPair],
    identical: Iterable[tuple[Hashable, Mapping[str, Any]]],
    metric: Metric,
    floor: float | None,
) -> list[CellComparison]:
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
        cell, sides = _describe_untested(pair), (pair.a, pair.b)
        if pair.problem is None:
            ranges = [math.log(max(side.values) / min(side.values)) for side in sides]
            log_floor = max(math.log1p(floor or 0.0), *ranges, *(known[side.cell["device"]] for side in sides))
            value_a, value_b = (max(side.values) for side in sides)
            ratio = value_b / value_a
            is_same = abs(math.log(ratio)) <= log_floor
            update = {
                "verdict": "same" if is_same else "worse" if ratio > 1 else "better",
                "reason": "",
                "ratio": ratio,
                "floor": math.expm1(log_floor),
                "value_a": value_a,
                "value_b": value_b,
            }
            cell = cell.model_copy(update=update)
        cells.append(cell)
    return cells


def _find_noise(pool: PoolKey, measured: Mapping[PoolKey, Noise], metric: Metric, floor: float | None) -> Noise | None:
    """Return the noise that is measured, given or assumed; None where nothing is known of it."""
    if pool in measured:
        return measured[pool]
    if floor is not None:
        return take_noise(floor)
    return assume_noise(is_same_machine=pool[1]) if metric.is_time else None


def _find_noisiest(pair: CellPair, noises: Mapping[PoolKey, Noise | None]) -> Noise | None:
    """Return the noise of a pair; None where that of one of its devices is not known.

    Half of the variance of a ratio of two devices is that of either, so that of the noisier one is enough.
    """
    found = [noise for pool in pair.pools if (noise := noises[pool]) is not None]
    return max(found, key=lambda noise: noise.between_runs.log_variance) if len(found) == len(pair.pools) else None


def _make_test(pair: CellPair, noises: Mapping[PoolKey, Noise | None], floor: float | None) -> RatioTest | None:
    noise = _find_noisiest(pair, noises)
    if pair.problem or pair.is_confounded or (noise is None and not pair.is_same_run):
        return None
    test = RatioTest(
        ratio=pair.estimate(),
        noise=NONE,
        runs_share=pair.runs_share,
        variances=_measure_variances(pair),
        least_floor=floor or 0.0,
    )
    if noise is None or pair.is_same_run:
        return test
    own = [noise.own[side.cell_id] for side in (pair.a, pair.b) if side.cell_id in noise.own]
    return replace(test, noise=noise.between_runs, own=max(own, key=lambda one: one.excess, default=None))


def _measure_variances(pair: CellPair) -> RepeatVariances | None:
    """Return how much repeats scatter; None where a side has several machines or runs, which are the observations."""
    if any(len(own) > 1 for side in (pair.a, pair.b) for own in (side.machines, side.run_ids)):
        return None
    one, other = (measure_variance(side.estimate(), len(side.values)) for side in (pair.b, pair.a))
    return None if one is None or other is None else RepeatVariances(one=one, other=other)


def _test_groups(
    pairs: Sequence[CellPair], tests: Mapping[int, RatioTest], noises: Mapping[PoolKey, Noise | None]
) -> list[tuple[str, int, RatioTest]]:
    """Return (label, number of cells, test of their mean) for the cells of one device from the same runs.

    Cells of a run that used several machines are left out: each machine shifts all of its cells, and the cells need
    not have used the same ones.
    """
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    for index in tests:
        pair = pairs[index]
        if all(len(side.machines) == 1 or len(side.run_ids) > 1 for side in (pair.a, pair.b)):
            groups[pair.pools, pair.a.run_ids, pair.b.run_ids].append(index)
    found = []
    for (pools, *_), members in groups.items():
        if len(members) > 1:
            first = pairs[members[0]]
            noise = None if first.is_same_run else _find_noisiest(first, noises)
            ratio = estimate_group_ratio([pairs[index] for index in members])
            test = replace(tests[members[0]], ratio=ratio, noise=noise.shared if noise else NONE, own=None)
            found.append((_name_group(pools, len(members)), len(members), test))
    return found


def _name_group(pools: tuple[PoolKey, ...], number: int) -> str:
    """Return the name of the mean of so many ratios: each of two cells of one device, or of one of each device."""
    _, is_same_machine, shares = pools[0]
    cells = f"{'pairs of ' * (len(pools) - 1)}{' and '.join(DEVICE_NAMES[device] for device, *_ in pools)} cells"
    return f"all {number} {cells}{' with tenants' if shares else ''}{'' if is_same_machine else f', {ACROSS}'}"


def _describe_untested(pair: CellPair) -> CellComparison:
    """Return a pair without a verdict on its ratio; where its machines differ, with the ratio."""
    name_a, name_b = name_sides(pair.a.cell, pair.b.cell)
    cell = CellComparison(
        label=pair.label,
        name_a=name_a,
        name_b=name_b,
        cell_id_a=pair.a.cell_id,
        cell_id_b=pair.b.cell_id,
        verdict="fails" if pair.b.is_broken and pair.a.counted else "not comparable" if pair.problem else "undecided",
        reason=pair.problem or NOISE_UNKNOWN,
        num_repeats_a=len(pair.a.counted),
        num_repeats_b=len(pair.b.counted),
        scope="" if pair.problem else describe_scope(pair.make_row(), pair.field),
        notes=tuple(_list_notes(pair)),
    )
    if not pair.is_confounded:
        return cell
    ratio = pair.estimate()
    low, high = ratio.interval or (None, None)
    values = {f"value_{name}": getattr(pair, name).estimate().center for name in "ab"}
    return cell.model_copy(
        update={"reason": CONFOUNDED, "ratio": ratio.center, "ratio_low": low, "ratio_high": high} | values
    )


def _describe_verdict(test: RatioTest, verdict: Verdict) -> dict[str, Any]:
    low, high = test.ratio.interval or (0.0, math.inf)
    return {
        "verdict": verdict.decision,
        "ratio": test.ratio.center,
        "ratio_low": low,
        "ratio_high": high,
        "joint_low": verdict.joint_interval[0],
        "joint_high": verdict.joint_interval[1],
        "p_value": verdict.p_value,
        "p_adjusted": verdict.p_adjusted,
        "floor": math.expm1(test.log_floor) if test.log_floor else None,
    }


def _list_notes(pair: CellPair) -> list[str]:
    """Return what is to be known of the repeats of both sides; of one without any that counts, the reason says it.

    A repeat that was measured again days later (`run --retry-contaminated`) does not share its run's hour.
    """
    notes = []
    for side in (pair.a, pair.b):
        verdicts = Counter(row["verdict"] or row["status"] for row in side.rows if row["verdict"] != "valid")
        others = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())
        if verdicts and 0 < len(side.counted) < len(side.rows):
            notes.append(f"{side.name}: {len(side.counted)} of {len(side.rows)} repeats count ({others})")
        elif verdicts and side.counted:
            notes.append(f"{side.name}: {others}")
    if pair.is_same_run and not pair.problem and (hours := pair.find_hours_apart()) > MAX_HOURS_APART:
        notes.append(f"repeats of the same run {hours:.0f} h apart: what shifts a run is taken to cancel, and may not")
    return notes


def _describe_noise(tested: Sequence[CellPair], noises: Mapping[PoolKey, Noise | None]) -> list[NoiseDescription]:
    """Return what identical runs differ by, of each kind of pairs; of pairs of the same runs only where it is known."""
    described = []
    for pool, is_same_run in dict.fromkeys((pool, pair.is_same_run) for pair in tested for pool in pair.pools):
        noise = noises[pool]
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
