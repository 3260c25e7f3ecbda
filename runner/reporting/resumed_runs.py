"""Finds runs that were begun before the newest one and worked on after it: `status` names them beside it."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from bench.store import Store, is_confirmation
from bench.stored_runs import find_future_runs, read_runs
from runner.reporting.stored_runs import load_collection

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.results.collection import Collection

MAX_EARLIER = 3
"""Runs before the newest one that are looked at: each costs as much as the newest."""


def list_worked_on_later(store: Store, newest: "Collection") -> Iterator[str]:
    """Yield a line for each of the runs before the newest one that got a result after it: it was resumed.

    Of a run that is dated in the future nobody knows whether it was begun before.
    """
    ids = [run_id for run_id in store.list_run_ids() if run_id != newest.run.run_id and not is_confirmation(run_id)]
    others = read_runs(store, ids)[0]
    future = find_future_runs(others)
    dated = (run for run in others if run.run_id not in future)
    earlier = sorted(dated, key=lambda run: run.created_at, reverse=True)[:MAX_EARLIER]
    last = _find_last_end(newest)
    for run in earlier:
        found = load_collection(store, run.run_id)
        ended = _find_last_end(found)
        if ended is not None and (last is None or ended > last):
            number = int((found.results["status"] != "missing").sum())
            yield (
                f"{run.run_id} was begun before it and worked on after it ({number} of {len(found.results)} repeats): "
                f"benchmatrix status {run.run_id}"
            )


def _find_last_end(collection: "Collection") -> datetime | None:
    """Return when the last repeat of a run ended; None where none did."""
    ends = collection.results["finished_at"].dropna()
    return None if ends.empty else ends.max().to_pydatetime()
