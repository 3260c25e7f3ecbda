"""Read how long earlier attempts at the same cells took, at the same place."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from bench.schema import Run
from bench.store import Store
from bench.stored_runs import read_runs
from runner.records import Records

MAX_RUNS = 5
"""Runs that are read, the newest first: each costs a listing and its records."""


def read_durations(store: Store, run: Run, is_alike: Callable[[Run], bool]) -> Mapping[str, float]:
    """Return the median seconds of the repeats of each cell that ended ok in the newest runs, by the cell's id.

    `is_alike`: whether a run was where this one will be; another machine takes another time. The attempts of a repeat
    count together. StoreError if the store cannot be read.
    """
    wanted = {planned.cell.cell_id for planned in run.cells}
    known = [
        found for found in read_runs(store, store.list_run_ids())[0] if is_alike(found) and _list_cells(found) & wanted
    ]
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for found in sorted(known, key=lambda one: one.created_at, reverse=True)[:MAX_RUNS]:
        snapshot = Records.of(store, found).read_snapshot()
        for key in snapshot.ok:
            if key[0] in wanted and snapshot.seconds[key] > 0:
                seconds[key[0]].append(snapshot.seconds[key])
    return {cell_id: median(found) for cell_id, found in seconds.items()}


def is_at_place(place: Run, found: Run) -> bool:
    """Return whether two runs are on the same machine, or on the same cluster with the same profile."""
    if place.cluster is None or found.cluster is None:
        return place.cluster is None and found.cluster is None and place.hostname == found.hostname
    return (place.cluster.context, place.cluster.profile) == (found.cluster.context, found.cluster.profile)


def _list_cells(run: Run) -> set[str]:
    cells: Sequence[str] = [planned.cell.cell_id for planned in run.cells]
    return set(cells)
