"""Estimate by how much identical runs differ: the floor below which a difference between two runs means nothing.

Identical runs measured the same cell in the same environment, with the same revision of the tool. Repeats of one run
share its hour: what the room, the clock and the neighbours do to all of them is in no spread between repeats. It shows
only in the difference of two runs that should not differ. They are looked for among the other runs of the store.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from scipy import special

from bench.errors import TransientError, UserError
from bench.schema import Run
from bench.store import Store, is_confirmation
from bench.store.stored_runs import read_runs
from collector.results.collection import Collection, describe_copies, find_copies
from collector.results.frames import is_shared
from collector.results.load import load_run
from collector.statistics import CONFIDENCE, Estimate
from collector.units import count_things
from collector.versus.selections import Metric
from collector.versus.sides import PoolKey, make_side

Source = Literal["measured", "default", "given"]

DEFAULT_RUN_DEVIATION = 0.03
"""The standard deviation of the log by which a run shifts a cell, where no identical runs show it: the most of the 1 to
3 % that nights are taken to differ by (docs/measurement.md, "What identical runs differ by")."""
DEFAULT_MACHINE_DIFFERENCE = 0.03
"""The standard deviation of the log of one machine's time over another's of the same kind, where no identical runs
show it: as in docs/statistics.md, "Machines", for two cards of one model."""
TWO_SIDED_QUANTILE = float(special.ndtri((1 + CONFIDENCE) / 2))
Row = dict[str, Any]
RunKind = tuple[str, str, str | None]
"""cell_id, environment_id, revision: what is equal for identical runs."""
MAX_RUNS = 10
"""So many other runs are read at the most, the newest first: with ten of them the noise of a run's cells has six
degrees of freedom or more, and twice as many would make its floor narrower by a tenth only."""
MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class RunEstimate:
    """The centre of one cell in one run."""

    kind: Hashable
    """What must be equal for two runs to be identical."""
    cell_id: str
    device: str
    run_id: str
    started_at: datetime
    machines: str
    estimate: Estimate
    is_shared: bool = False
    """Whether the cell shared its device with other tenants: its noise is theirs too."""


@dataclass(frozen=True, kw_only=True)
class RunDifference:
    """By how much one cell differed between two identical runs, one after the other."""

    pool: PoolKey
    runs: tuple[str, str]
    cell_id: str
    log_difference: float
    repeat_log_variance: float
    """What the spread between the repeats contributes to the variance of the difference."""
    repeat_freedom: float


@dataclass(frozen=True, kw_only=True)
class Component:
    """A part of the noise: the variance of the log ratio of two runs of a cell, whose truth is 1."""

    log_variance: float
    degrees_of_freedom: float | None
    """None: taken as known."""
    repeat_log_variance: float = 0.0
    """The part of it that comes from the spread between repeats, which each comparison knows for itself."""
    repeat_freedom: float | None = None

    @property
    def excess(self) -> float:
        """The variance beyond that of the repeats, 0 at least."""
        return max(0.0, self.log_variance - self.repeat_log_variance)

    @property
    def excess_error(self) -> float:
        """Half the variance of the estimate `log_variance - repeat_log_variance`, for Satterthwaite's formula."""
        parts = (
            (self.log_variance, self.degrees_of_freedom),
            (self.repeat_log_variance, self.repeat_freedom),
        )
        return sum(variance**2 / freedom for variance, freedom in parts if freedom is not None)

    @property
    def log_floor(self) -> float:
        """The log ratio that 95 % of pairs of identical runs would stay below, had they very many repeats.

        Where the repeats explain all of their difference, the runs' own share of it is taken to be the standard error
        with which it is known: it is not 0, only not seen. How well the variance is known does not enter: what is
        hardly known would make a wide floor, within which anything is the same. The test of a difference allows for it.
        """
        return TWO_SIDED_QUANTILE * math.sqrt(max(self.excess, math.sqrt(2 * self.excess_error)))

    def divide(self, number: float) -> "Component":
        """Return the component of the mean of `number` independent ones."""
        return replace(
            self,
            log_variance=self.log_variance / number,
            repeat_log_variance=self.repeat_log_variance / number,
        )


NONE = Component(log_variance=0.0, degrees_of_freedom=None)
"""Of two sides of the same runs: what a run does to both cancels in their ratio. What it does to one of them is in the
spread of several runs; of one run it is not known, so what is said is about that run."""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """By how much identical runs of the cells of one pool differ, and how that is known."""

    source: Source
    between_runs: Component
    within_run: Component
    """Of two cells of one run: what a run does to all of its cells cancels in their ratio."""
    shared: Component
    """Of the mean over all cells of two runs."""
    own: dict[str, Component]
    """By cell_id: what that cell's own differences between runs show."""
    run_ids: tuple[str, ...] = ()
    num_cells: int = 0


def list_differences(estimates: Iterable[RunEstimate]) -> list[RunDifference]:
    """Return the differences between successive identical runs, of cells with at least two repeats in both.

    Successive: a slow drift of the machine over weeks hardly shows in them, and a lasting change shows in one of them.
    """
    kinds: defaultdict[Hashable, list[RunEstimate]] = defaultdict(list)
    for estimate in estimates:
        if estimate.estimate.log_standard_error is not None:
            kinds[estimate.kind].append(estimate)
    return [
        _subtract(before, after)
        for found in kinds.values()
        for before, after in pairwise(sorted(found, key=lambda one: (one.started_at, one.run_id)))
    ]


def estimate_noise(differences: Sequence[RunDifference]) -> Noise:
    """Return the noise that `differences` (of one pool, at least one) show.

    A run shifts all of its cells together and each by itself: of each two runs, the mean difference over the cells
    shows the one with a single degree of freedom, the spread around it the other. Satterthwaite's formula puts them
    together. Successive differences share a run, so K of them have 2 K^2 / (3 K - 1) degrees of freedom (J. von
    Neumann and others, Annals of Mathematical Statistics 12, 1941, 153-162: the mean square successive difference).
    """
    by_runs: defaultdict[tuple[str, str], list[RunDifference]] = defaultdict(list)
    for difference in differences:
        by_runs[difference.runs].append(difference)
    num_pairs = len(by_runs)
    means = [_average(found) for found in by_runs.values()]
    spreads = sum(
        (one.log_difference - mean) ** 2 for mean, found in zip(means, by_runs.values(), strict=True) for one in found
    )
    num_spreads = len(differences) - num_pairs
    share = sum(1 / len(found) for found in by_runs.values()) / num_pairs
    shared, shared_freedom = sum(mean**2 for mean in means) / num_pairs, _count_freedom(num_pairs)
    own = spreads / num_spreads if num_spreads else 0.0
    repeats = _average_repeats(differences)
    between = _make_component(
        shared + own * (1 - share), _combine((shared, shared_freedom), (own * (1 - share), num_spreads)), repeats
    )
    return Noise(
        source="measured",
        between_runs=between,
        within_run=_make_component(own, num_spreads, repeats) if num_spreads else between,
        shared=_make_component(shared, shared_freedom, (share * repeats[0], repeats[1])),
        own=dict(_list_own(differences)),
        run_ids=tuple(sorted({run for runs in by_runs for run in runs})),
        num_cells=len({one.cell_id for one in differences}),
    )


def assume_noise(*, is_same_machine: bool) -> Noise:
    """Return the noise of step times where no identical runs show it."""
    variance = 2 * DEFAULT_RUN_DEVIATION**2 + (0.0 if is_same_machine else DEFAULT_MACHINE_DIFFERENCE**2)
    return _make_known("default", variance)


def take_noise(floor: float) -> Noise:
    """Return the noise of runs that are said to differ by less than `floor` (0.05: 5 %) in 95 % of the pairs."""
    return _make_known("given", (math.log1p(floor) / TWO_SIDED_QUANTILE) ** 2)


def _make_known(source: Source, variance: float) -> Noise:
    component = Component(log_variance=variance, degrees_of_freedom=None)
    return Noise(source=source, between_runs=component, within_run=component, shared=component, own={})


def _make_component(log_variance: float, freedom: float, repeats: tuple[float, float]) -> Component:
    return Component(
        log_variance=log_variance,
        degrees_of_freedom=freedom,
        repeat_log_variance=repeats[0],
        repeat_freedom=repeats[1],
    )


def _average(differences: Sequence[RunDifference]) -> float:
    return sum(one.log_difference for one in differences) / len(differences)


def _subtract(before: RunEstimate, after: RunEstimate) -> RunDifference:
    variances = [(one.estimate.log_standard_error or 0.0) ** 2 for one in (before, after)]
    freedoms = [one.estimate.degrees_of_freedom or 1.0 for one in (before, after)]
    return RunDifference(
        pool=(before.device, before.machines == after.machines, before.is_shared),
        runs=(before.run_id, after.run_id),
        cell_id=before.cell_id,
        log_difference=math.log(after.estimate.center / before.estimate.center),
        repeat_log_variance=sum(variances),
        repeat_freedom=_combine(*zip(variances, freedoms, strict=True)),
    )


def _average_repeats(differences: Sequence[RunDifference]) -> tuple[float, float]:
    """Return the mean of what repeats contribute, with its degrees of freedom."""
    parts = [(one.repeat_log_variance, one.repeat_freedom) for one in differences]
    return sum(variance for variance, _ in parts) / len(parts), _combine(*parts)


def _list_own(differences: Sequence[RunDifference]) -> Iterator[tuple[str, Component]]:
    by_cell: defaultdict[str, list[RunDifference]] = defaultdict(list)
    for difference in differences:
        by_cell[difference.cell_id].append(difference)
    for cell_id, found in by_cell.items():
        squares = sum(one.log_difference**2 for one in found) / len(found)
        yield cell_id, _make_component(squares, _count_freedom(len(found)), _average_repeats(found))


def _count_freedom(num_differences: int) -> float:
    """Return the degrees of freedom of the mean square of successive differences, which share a run."""
    return 2 * num_differences**2 / (3 * num_differences - 1)


def _combine(*parts: tuple[float, float]) -> float:
    """Return Satterthwaite's degrees of freedom of a sum of variances, each given with its own; 1 at least."""
    total = sum(variance for variance, _ in parts)
    if not total:
        return max(1.0, sum(freedom for _, freedom in parts))
    return max(1.0, 1 / sum((variance / total) ** 2 / freedom for variance, freedom in parts if freedom))


@dataclass(frozen=True, kw_only=True)
class RelatedRuns:
    """Other runs that planned a compared cell, and those of which that cannot be known."""

    collections: tuple[Collection, ...] = ()
    passed_over: Mapping[str, str] = field(default_factory=dict)
    """By id, why a run cannot be read, or not verified: it may have measured the compared cells."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """By id, also of compared runs: the run that holds the same measurements. No noise is read from copies."""

    def list_warnings(self) -> list[str]:
        """Return what a reader should know of these runs, a sentence each."""
        warnings = [describe_copies(self.copies)]
        if self.passed_over:
            named = [f"{run_id} ({reason})" for run_id, reason in list(self.passed_over.items())[:MAX_NAMED]]
            if len(self.passed_over) > MAX_NAMED:
                named.append(f"and {len(self.passed_over) - MAX_NAMED:,} more")
            runs = count_things(len(self.passed_over), "other run")
            warnings.insert(
                0,
                f"of {runs} it is not known whether they show the noise, as they cannot be read: {'; '.join(named)}",
            )
        return [text for text in warnings if text]


class OtherPlans(NamedTuple):
    """The plans of the store's other runs, and of those that cannot be read the reason, by run id."""

    runs: list[Run]
    unreadable: dict[str, str]


def read_other_plans(store: Store, own: set[str]) -> OtherPlans:
    """Return the plans of all runs but `own` and confirmations.

    A confirmation is minutes from its night and has only the cells that were slow: its noise is no other run's.
    """
    others = [run_id for run_id in store.list_run_ids() if run_id not in own and not is_confirmation(run_id)]
    return OtherPlans(*read_runs(store, others))


def load_related_runs(store: Store, compared: Sequence[Collection], plans: OtherPlans | None = None) -> RelatedRuns:
    """Return the newest MAX_RUNS other runs of the store that planned a cell of `compared`.

    Unreadable ones, those that were deleted meanwhile, and copies of others are named instead. `plans`: where they were
    read before.
    """
    own = {collection.run.run_id for collection in compared}
    plans = plans or read_other_plans(store, own)
    cell_ids = {planned.cell.cell_id for collection in compared for planned in collection.run.cells}
    others = [run for run in plans.runs if run.run_id not in own]
    related = [run for run in others if any(planned.cell.cell_id in cell_ids for planned in run.cells)]
    read, passed_over = [], dict(plans.unreadable)
    for run in sorted(related, key=lambda run: (run.created_at, run.run_id), reverse=True)[:MAX_RUNS]:
        try:
            read.append(load_run(store, run.run_id))
        except TransientError:
            raise
        except UserError as error:
            passed_over[run.run_id] = str(error)
    copies = find_copies([*compared, *read])
    collections = tuple(found for found in read if found.run.run_id not in copies)
    return RelatedRuns(collections=collections, passed_over=passed_over, copies=copies)


def identify_kind(row: Row) -> RunKind:
    """Return what must be equal for the run of another row to be identical."""
    return row["cell_id"], row["environment_id"], row["revision"]


def list_run_estimates(rows: Iterable[Row], metric: Metric, *, include_invalid: bool) -> list[RunEstimate]:
    """Return the centre of each cell in each environment of each run that has two repeats of it or more."""
    groups: dict[tuple[str, RunKind], list[Row]] = {}
    for row in rows:
        if row["status"] == "ok":
            groups.setdefault((row["run_id"], identify_kind(row)), []).append(row)
    sides = (make_side("", group, metric, include_invalid=include_invalid) for group in groups.values())
    return [
        RunEstimate(
            kind=identify_kind(first),
            cell_id=first["cell_id"],
            device=first["device"],
            is_shared=is_shared(first),
            run_id=first["run_id"],
            started_at=first["run_started"],
            machines="; ".join(side.machines),
            estimate=side.estimate(),
        )
        for side in sides
        if side.problem is None
        for first in side.counted[:1]
    ]
