"""Load the nights of a matrix from a store: its runs, the repeats that count, and their confirmations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.errors import TransientError, UserError
from bench.schema import Run
from bench.store import Store, confirmation_run_id, is_confirmation
from bench.store.documents import find_future_runs, read_runs
from collector.nights.series import read_cell_nights, unify_centers, unify_hosts
from collector.nights.suspicions import Confirmation, NightRun
from collector.results.collection import CopyFinder
from collector.results.frames import WITHOUT_RECORD
from collector.results.load import load_run

MAX_NIGHTS = 90
"""Nights that are looked at, the newest: three months say enough about noise, and a drift that takes longer than that
is one of less than 1 % a month."""


@dataclass(frozen=True, kw_only=True)
class LoadedNights:
    """The nights of a matrix, the oldest first, and what could not be read."""

    nights: tuple[NightRun, ...]
    warnings: tuple[str, ...] = ()


def list_runs(store: Store, matrix: str | None = None) -> tuple[list[Run], Mapping[str, str]]:
    """Return the runs of a store without confirmations, the oldest first, and why others are left out, by run id.

    A run that is dated in the future would be the newest night until that day, and hide all that are measured before.
    `matrix`: the only one of interest; of the runs that are known to be of others, it is not said why they are left
    out. None: all are, since the newest run decides which matrix is looked at.
    """
    found, unreadable = read_runs(store, (run_id for run_id in store.list_run_ids() if not is_confirmation(run_id)))
    left_out = {run_id: f"its run.json cannot be read ({reason})" for run_id, reason in unreadable.items()}
    future = find_future_runs(found)
    left_out |= {
        run.run_id: future[run.run_id] for run in found if run.run_id in future and matrix in (None, run.matrix)
    }
    runs = [run for run in found if run.run_id not in future]
    return sorted(runs, key=lambda run: (run.created_at, run.run_id)), left_out


def choose_matrix(runs: list[Run], left_out: Mapping[str, str], store: Store, name: str | None) -> str:
    """Return the matrix to watch: the one named, else that of the newest run. UserError if there is none."""
    example = ": ".join(next(iter(left_out.items()), ()))
    if not runs and left_out:
        raise UserError(f"store {store.url}: none of {len(left_out):,} runs can be looked at, such as {example}")
    if not runs and name is None:
        raise UserError(
            f"store {store.url}: no run here; name the right one with --store, or begin one with `benchmatrix run`"
        )
    if name is None:
        return runs[-1].matrix
    known = sorted({run.matrix for run in runs})
    if name not in known:
        others = f"; it has runs of {', '.join(known)}" if known else ""
        passed_over = f"; not looked at: {example}" if example else ""
        raise UserError(f"--matrix {name}: store {store.url} has no run of it{others}{passed_over}")
    return name


def load_nights(store: Store, matrix: str, runs: list[Run], left_out: Mapping[str, str]) -> LoadedNights:
    """Return the newest MAX_NIGHTS runs of a matrix with their repeats. StoreError if the store cannot be used."""
    own = [run for run in runs if run.matrix == matrix][-MAX_NIGHTS:]
    warnings = [f"run {run_id}: {reason}; it is not looked at" for run_id, reason in left_out.items()]
    run_ids = set(store.list_run_ids())
    nights, copies = [], CopyFinder()
    for run in own:
        try:
            collection = load_run(store, run.run_id, writes_tables=True)
        except TransientError:
            raise
        except UserError as error:  # damaged since it was listed
            warnings.append(f"run {run.run_id}: {error}")
            continue
        warnings += [f"run {run.run_id}: {notice}" for notice in (*collection.notices, *collection.doubts)]
        if collection.skipped:
            warnings.append(f"run {run.run_id}: {len(collection.skipped)} documents did not count")
        collection, text = copies.drop_copies(collection)
        warnings += [f"run {run.run_id}: {text}"] if text else []
        if text and not (collection.results["status"] == "ok").any():
            continue  # a copy of a run is no night
        again = confirmation_run_id(matrix, run.run_id)
        confirmation = _load_confirmation(store, again, copies, warnings) if again in run_ids else None
        nights.append(NightRun(run=run, cells=read_cell_nights(collection), confirmation=confirmation))
    return LoadedNights(nights=_unify(nights), warnings=tuple(warnings))


def _unify(nights: Sequence[NightRun]) -> tuple[NightRun, ...]:
    """Return the nights with one statistic and one name of each host for all repeats, those of confirmations too."""
    again = [night.confirmation for night in nights if night.confirmation is not None]
    cells = iter(unify_hosts(unify_centers([*(night.cells for night in nights), *(found.cells for found in again)])))
    own = [replace(night, cells=next(cells)) for night in nights]
    confirmed = (found and replace(found, cells=next(cells)) for found in (night.confirmation for night in nights))
    return tuple(replace(night, confirmation=found) for night, found in zip(own, confirmed, strict=True))


def _load_confirmation(store: Store, run_id: str, copies: CopyFinder, warnings: list[str]) -> Confirmation | None:
    """Return a confirmation; None, and a warning, where it cannot be read."""
    try:
        collection = load_run(store, run_id, writes_tables=True)
    except TransientError:
        raise
    except UserError as error:
        warnings.append(f"run {run_id}, which measured suspicions again: {error}; it is not looked at")
        return None
    is_complete = not collection.results["status"].isin(WITHOUT_RECORD).any()
    collection, text = copies.drop_copies(collection)
    warnings += [f"run {run_id}: {text}"] if text else []
    ended = collection.results["finished_at"].dropna()
    return Confirmation(
        run=collection.run,
        cells=read_cell_nights(collection),
        ended_at=collection.run.created_at if ended.empty else ended.max().to_pydatetime(),
        is_complete=is_complete,
    )
