"""Write the site of a store: the pages of all its runs that can be read, and the list of them."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench import __version__
from bench.errors import UserError
from bench.schema import Run
from bench.store import Store
from bench.store.documents import read_runs
from runner.reporting.stored_runs import load_collection, load_history
from runner.runs import list_passed_over

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.nights.records import ChangeHistory
    from collector.prices.table import PriceTable
    from collector.report.page import SiteRun
    from collector.results.collection import Collection

MARK = "made-from.txt"
"""The file beside a run's page that says what the page was made from."""
TITLE_BYTES = 4096
"""Of a list of runs, in which its title stands: what is before it has 500 bytes."""


def write_site(store: Store, site: Path, prices: "PriceTable", tell: Callable[[str], None]) -> Path:
    """Write the pages of all runs of `store` into the folder `site`; return the path of the list of runs.

    A page whose run, nights, prices and version of the tool are those of its last writing is left as it is. A run that
    cannot be read stands in the list with the reason. `tell` gets a line for each page. Raise StoreError if the store
    cannot be used, UserError where a file cannot be written.
    """
    from collector.files import check_folder
    from collector.report.page import INDEX, write_index

    check_folder(site / INDEX)
    _check_index(site / INDEX)
    runs, unreadable = read_runs(store, store.list_run_ids())
    lines = [_write_run(store, run, site, prices, tell) for run in runs]
    for line in list_passed_over(unreadable, "has no page"):
        tell(line)
    lines += [_describe_unreadable(run_id, reason) for run_id, reason in unreadable.items()]
    return write_index(lines, site)


def _check_index(path: Path) -> None:
    """Raise UserError where the page that the list of runs would replace is somebody else's."""
    from collector.report.page import TITLE

    if not os.path.isfile(path):
        return
    try:
        with open(path, "rb") as file:
            is_own = TITLE.encode() in file.read(TITLE_BYTES)
    except OSError:
        is_own = False
    if not is_own:
        raise UserError(f"{path}: is no list of runs that --site wrote, and would be replaced; name another folder")


def _write_run(store: Store, run: Run, site: Path, prices: "PriceTable", tell: Callable[[str], None]) -> "SiteRun":
    from collector.analysis import analyze_run
    from collector.files import replace_text
    from collector.report.page import INDEX, describe_run, name_folder, write_run_pages

    try:
        collection = load_collection(store, run.run_id)
    except UserError as error:
        tell(f"{run.run_id}: {error}")
        return _describe_unreadable(run.run_id, str(error), run=run)
    history = load_history(store, collection)
    mark, source = site / name_folder(run.run_id) / MARK, _name_source(collection, history, prices)
    if _read_mark(mark) == source and os.path.isfile(mark.parent / INDEX):
        tell(f"{run.run_id}: unchanged")
    else:
        tell(f"{write_run_pages(analyze_run(collection, history=history, prices=prices), site)}")
        replace_text(mark, source, may_be_read=True)
    return describe_run(collection)


def _describe_unreadable(run_id: str, reason: str, *, run: Run | None = None) -> "SiteRun":
    from collector.report.page import SiteRun

    return SiteRun(
        run_id=run_id,
        matrix=run.matrix if run else "runs that cannot be read",
        created_at=f"{run.created_at:%Y-%m-%d %H:%M}" if run else "",
        outcome=f"cannot be read: {reason}",
        address="",
    )


def _read_mark(path: Path) -> str | None:
    """Return what a page was made from; None where nothing says so that can be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def _name_source(collection: "Collection", history: "ChangeHistory", prices: "PriceTable") -> str:
    """Return a digest of all that a page is made from: what counts of the run, what was seen of its nights, and how."""
    results = collection.results.to_csv(index=False)
    parts = (__version__, repr(prices), collection.run.run_id, results, repr(collection.skipped), repr(history))
    return hashlib.sha256("\n".join(parts).encode("utf-8", errors="surrogatepass")).hexdigest()
