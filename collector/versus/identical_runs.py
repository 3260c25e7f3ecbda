"""Find the other runs of a store that measured the same cells: what identical runs differ by is read from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.errors import TransientError, UserError
from bench.store import Store, is_confirmation
from bench.store.stored_runs import read_runs
from collector.results.cells import is_shared
from collector.results.collection import Collection
from collector.results.copied_runs import describe_copies, find_copies
from collector.results.load import load_run
from collector.versus.metrics import Metric
from collector.versus.noise import RunEstimate
from collector.versus.sides import make_side
from collector.word_lists import count_things

Row = dict[str, Any]
RunKind = tuple[str, str, str | None]
"""cell_id, environment_id, revision: what is equal for identical runs."""

MAX_RUNS = 10
"""So many other runs are read at the most, the newest first: with ten of them the noise of a run's cells has six
degrees of freedom or more, and twice as many would make its floor narrower by a tenth only."""
MAX_NAMED = 5


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


def load_related_runs(store: Store, compared: Sequence[Collection]) -> RelatedRuns:
    """Return the newest MAX_RUNS other runs of the store that planned a cell of `compared`.

    Unreadable ones, those that were deleted meanwhile, and copies of others are named instead.
    """
    own = {collection.run.run_id for collection in compared}
    # A confirmation is minutes from its night and has only the cells that were slow: its noise is no other run's.
    others = [run_id for run_id in store.list_run_ids() if run_id not in own and not is_confirmation(run_id)]
    runs, unreadable = read_runs(store, others)
    cell_ids = {planned.cell.cell_id for collection in compared for planned in collection.run.cells}
    related = [run for run in runs if any(planned.cell.cell_id in cell_ids for planned in run.cells)]
    read, passed_over = [], dict(unreadable)
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
