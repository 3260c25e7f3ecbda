"""Read a run and its results from a store, for the commands that report on them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console

from bench.errors import UserError
from bench.schema import Run
from bench.store import Store, explain_os_error, find_directory, is_confirmation
from bench.store.documents import find_future_runs, read_runs
from runner.terminal import warn_on_stderr

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.nights.records import ChangeHistory
    from collector.results.collection import Collection

MAX_NAMED = 10


def open_existing_store(url: str, option: str = "--store") -> Store:
    """Open a store to read from. Raise UserError if it is a directory that does not exist: reading creates none.

    `option`: the one that the user gave the URL with.
    """
    if url.startswith("file://"):
        place = find_directory(url)
        try:
            is_there = place.is_dir()
        except OSError as error:
            reason = explain_os_error(error.errno, str(place)) or error.strerror
            raise UserError(f"store {url}: {reason}") from error
        if not is_there:
            raise UserError(f"store {url}: there is no directory {place}; name the right one with {option}")
    return Store.open(url)


def find_newest_run(store: Store, warn: Callable[[str], None] = warn_on_stderr) -> Run:
    """Return the run that was begun last, confirmations of nights aside; UserError if the store has none.

    A run that is dated in the future is passed over with a warning, unless there is no other: it would be the newest
    until that day.
    """
    ids = [run_id for run_id in store.list_run_ids() if not is_confirmation(run_id)]
    runs, unreadable = read_runs(store, ids)
    if not runs:
        problems = "".join(
            f" that can be read, of {len(unreadable)}; run.json of {run_id}: {reason}"
            for run_id, reason in list(unreadable.items())[:1]
        )
        hint = "name the right one with --store, or begin one with `benchmatrix run`"
        raise UserError(f"store {store.url}: no run here{problems}; {hint}")
    future = find_future_runs(runs)
    newest = max(runs, key=lambda run: (run.run_id not in future, run.created_at))
    for run_id, reason in future.items():
        warn(f"run {run_id}: {reason}; {'there is no other' if newest.run_id in future else 'name it to have it'}")
    return newest


def load_collection(
    store: Store, run_id: str | None, *, writes_tables: bool = False, rebuilds_tables: bool = False
) -> "Collection":
    """Return the results of a run; those of the newest run in the store if `run_id` is None. See `load_run`."""
    from collector.results.load import load_run

    chosen = find_newest_run(store).run_id if run_id is None else run_id
    return load_run(store, chosen, writes_tables=writes_tables, rebuilds_tables=rebuilds_tables)


def load_history(store: Store, collection: "Collection") -> "ChangeHistory":
    """Return the changes that `watch` recorded over the nights of the run's matrix; StoreError if it cannot.

    What of it does not count is named on stderr: a change that nobody can read was suspected all the same.
    """
    from collector.nights.records import read_history

    history = read_history(store, collection.run.matrix)
    for document in history.skipped[:MAX_NAMED]:
        warn_on_stderr(f"{document.key}: {document.reason}")
    if (num_more := len(history.skipped) - MAX_NAMED) > 0:
        warn_on_stderr(f"{num_more:,} more documents of nights do not count")
    return history


def print_skipped(collection: "Collection", console: Console) -> None:
    """Name the documents in the store that did not count, and why; of many of them the first MAX_NAMED."""
    from collector.units import count_things

    for notice in (*collection.notices, *collection.doubts):
        console.print(notice, style="yellow", soft_wrap=True)
    num_skipped = len(collection.skipped)
    if num_skipped:
        console.print(f"{count_things(num_skipped, 'document')} in the store did not count:", style="yellow")
    for document in collection.skipped[:MAX_NAMED]:
        console.print(f"  {document.key}: {document.reason}", soft_wrap=True, markup=False)
    if (num_more := num_skipped - MAX_NAMED) > 0:
        console.print(f"  and {num_more:,} more; skipped.csv of `benchmatrix report --format csv` has all")


def print_notices(store: Store, collection: "Collection", console: Console) -> None:
    """Print what did not count of a run, and which of its raw results were removed."""
    from bench.store.documents import read_raw_removals
    from collector.facts import describe_raw_removals

    print_skipped(collection, console)
    for line in describe_raw_removals(read_raw_removals(store, collection.run.run_id)):
        console.print(line, soft_wrap=True)
