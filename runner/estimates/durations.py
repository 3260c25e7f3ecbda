"""Read how long earlier attempts at the same cells, or at the nearest ones, took at the same place."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import islice
from statistics import median

from bench.schema import Cell, Run
from bench.store import Store
from bench.stored_runs import read_runs
from runner.records import Records
from runner.runs import list_passed_over, warn_on_stderr

MAX_RUNS = 5
"""Runs that are read, the newest first: each costs a listing and its records."""
NEAR_FIELDS = ("phase", "mode", "precision", "batch_size", "input_size")
"""What near cells may differ in."""


def read_alike_runs(store: Store, is_alike: Callable[[Run], bool]) -> list[Run]:
    """Return the plans of the runs that estimates rest on, the newest first; StoreError if the store cannot be read.

    `is_alike`: whether a run was where this one will be; another machine takes another time. Of a store that checks
    signatures, the runs that are in no estimate are named on stderr.
    """
    runs, unreadable = read_runs(store, store.list_run_ids())
    if store.checks_signatures:
        for line in list_passed_over(unreadable):
            warn_on_stderr(line)
    return sorted(filter(is_alike, runs), key=lambda one: one.created_at, reverse=True)


def select_newest(runs: Iterable[Run], is_wanted: Callable[[Cell], bool]) -> list[Run]:
    """Return the first MAX_RUNS of the runs that planned a wanted cell."""
    return list(islice((one for one in runs if any(is_wanted(planned.cell) for planned in one.cells)), MAX_RUNS))


def read_durations(store: Store, runs: Iterable[Run], run: Run) -> Mapping[str, float]:
    """Return the median seconds of the repeats of each cell that ended ok in the newest runs, by the cell's id.

    `runs`: as `read_alike_runs` returns them. The attempts of a repeat count together. StoreError if the store cannot
    be read.
    """
    wanted = {planned.cell.cell_id for planned in run.cells}
    found = _read_seconds(store, runs, lambda cell: cell.cell_id in wanted)
    return {cell.cell_id: median(seconds) for cell, seconds in found.items()}


def read_near_durations(store: Store, runs: Iterable[Run], run: Run, known: Container[str]) -> Mapping[str, float]:
    """Return the median seconds of the nearest measured cells for each cell that is not `known`, by its id.

    Near is a cell of the same model, framework and device; nearest, those that share most of NEAR_FIELDS with it.
    """
    wanted = [planned.cell for planned in run.cells if planned.cell.cell_id not in known]
    kinds = set(map(identify_work, wanted))
    found = _read_seconds(store, runs, lambda cell: identify_work(cell) in kinds) if wanted else {}
    return {cell.cell_id: median(seconds) for cell in wanted if (seconds := _choose_nearest(cell, found))}


def identify_work(cell: Cell) -> tuple[object, ...]:
    """Return what near cells have in common."""
    return cell.model, cell.framework, cell.device, cell.tenants


def _choose_nearest(cell: Cell, found: Mapping[Cell, Sequence[float]]) -> list[float]:
    near = {
        other: sum(getattr(other, name) == getattr(cell, name) for name in NEAR_FIELDS)
        for other in found
        if identify_work(other) == identify_work(cell)
    }
    most = max(near.values(), default=0)
    return [seconds for other, shared in near.items() if shared == most for seconds in found[other]]


def _read_seconds(store: Store, runs: Iterable[Run], is_wanted: Callable[[Cell], bool]) -> Mapping[Cell, list[float]]:
    """Return the seconds of the repeats that ended ok of each wanted cell in the newest runs that have one."""
    seconds: defaultdict[Cell, list[float]] = defaultdict(list)
    for found in select_newest(runs, is_wanted):
        cells = {planned.cell.cell_id: planned.cell for planned in found.cells if is_wanted(planned.cell)}
        snapshot = Records.of(store, found).read_snapshot()
        for key in snapshot.ok:
            if key[0] in cells and snapshot.seconds[key] > 0:
                seconds[cells[key[0]]].append(snapshot.seconds[key])
    return seconds


def is_at_place(place: Run, found: Run) -> bool:
    """Return whether two runs are on the same machine, or on the same cluster with the same profile."""
    if place.cluster is None or found.cluster is None:
        return place.cluster is None and found.cluster is None and place.hostname == found.hostname
    if place.cluster.is_apart_from(found.cluster):
        return False
    return (place.cluster.context, place.cluster.profile) == (found.cluster.context, found.cluster.profile)
