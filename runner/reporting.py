"""Analyse runs for their reports; the end of a run: print, write, publish; the site of a store."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench import __version__
from bench.errors import UserError
from bench.schema import Ending, InvalidDocumentError, MissingRepeat, Run, read_run, read_time_of_day
from bench.store import LATEST_REPORT_KEY, LATEST_RUN_KEY, KeyMissing, Store, report_key
from bench.store.documents import read_runs
from collector.units import count_things
from runner.stored_runs import MAX_NAMED, load_collection, print_skipped
from runner.terminal import warn_on_stderr

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.analysis import Analysis
    from collector.changes import ChangeHistory
    from collector.prices.table import PriceTable
    from collector.report.page import SiteRun
    from collector.results.collection import Collection

REPORT_NAME = "report.html"


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """How a run ended."""

    num_by_status: dict[str, int]
    """Planned repeats by the status of their record; `missing` have none, `unreadable` one that cannot be read."""
    num_contaminated: int
    """Those that ended ok and that others disturbed, whatever graver verdict they have: they do not count, and are what
    --retry-contaminated measures again."""
    report: Path | None

    @property
    def num_repeats(self) -> int:
        return sum(self.num_by_status.values())

    @property
    def is_ok(self) -> bool:
        return not self.num_by_status.keys() - {"ok"}


def choose_output(output: Path | None, run: Run) -> Path:
    return output or Path("reports") / run.run_id


def choose_report_path(output: Path | None, run: Run) -> Path:
    """Return the path of a run's report: a name that ends in `.html` is the file, any other is its folder.

    A folder that is there already stays a folder, whatever its name. UserError where a file stands in the place of one:
    the report takes a while to be made.
    """
    from collector.files import check_folder

    chosen = choose_output(output, run)
    is_file = chosen.suffix.lower() in (".html", ".htm") and not os.path.isdir(chosen)
    path = chosen if is_file else chosen / REPORT_NAME
    check_folder(path)
    return path


def load_history(store: Store, collection: "Collection") -> "ChangeHistory":
    """Return what `watch` recorded over the nights of the run's matrix.

    Documents that do not count are named on stderr: nobody can read such a change, but it was suspected.
    """
    from collector.changes import read_history

    history = read_history(store, collection.run.matrix)
    for document in history.skipped[:MAX_NAMED]:
        warn_on_stderr(f"{document.key}: {document.reason}")
    if (num_more := len(history.skipped) - MAX_NAMED) > 0:
        warn_on_stderr(f"{num_more:,} more documents of nights do not count")
    return history


def print_notices(store: Store, collection: "Collection", console: Console) -> None:
    from bench.store.documents import read_raw_removals
    from collector.facts import describe_raw_removals

    print_skipped(collection, console)
    for line in describe_raw_removals(read_raw_removals(store, collection.run.run_id)):
        console.print(line, soft_wrap=True)


def analyze_stored(store: Store, collection: "Collection", prices: "PriceTable") -> "Analysis":
    """Return what a report says of a run, its nights, and what changed since the last run of its matrix."""
    from collector.analysis import analyze_run
    from collector.versus.comparison import compare_with_last

    since = compare_with_last(store, collection)
    return replace(analyze_run(collection, history=load_history(store, collection), prices=prices), since=since)


def finish_run(
    store: Store, run: Run, console: Console, *, output: Path | None, with_report: bool, is_published: bool
) -> RunEnd:
    """Collect and report a run, print its table and return how it ended.

    `output`: the folder for the report; None for the default. `is_published`: put the report into the store as well.
    """
    from collector.export import write_collection
    from collector.report.page import write_page
    from collector.report.tables import print_summary
    from runner.price_tables import load_prices

    collection = load_collection(store, run.run_id, writes_tables=True)
    print_skipped(collection, console)
    analysis = analyze_stored(store, collection, load_prices())
    print_summary(console, analysis)
    path = None
    if with_report:
        folder = choose_output(output, run)
        write_collection(collection, folder)
        path = folder / REPORT_NAME
        write_page(analysis, path)
        console.print(f"report: {path}", soft_wrap=True)
        if is_published:
            _publish(store, collection, path, console)
    num_by_status = Counter(map(str, collection.results["status"]))
    bad = Counter({status: number for status, number in num_by_status.items() if status != "ok"})
    if bad:
        counts = ", ".join(f"{number} {state}" for state, number in bad.most_common())
        console.print(f"{bad.total()} of {len(collection.results)} repeats did not end well: {counts}", style="red")
    return RunEnd(num_by_status=dict(num_by_status), num_contaminated=collection.num_contaminated, report=path)


def say_how_to_retry(end: RunEnd, console: Console, command: str | None) -> None:
    if end.num_contaminated:
        how = "" if command is None else f". Measure them again when nobody else uses the machine:\n  {command}"
        of = count_things(end.num_repeats, "repeat")
        line = f"contaminated by others, and not counted: {end.num_contaminated} of {of}{how}"
        console.print(line, style="yellow", highlight=False, soft_wrap=True)


def _publish(store: Store, collection: "Collection", path: Path, console: Console) -> None:
    from collector.results.frames import WITHOUT_RECORD

    results = collection.results
    missing = results[results["status"].isin(WITHOUT_RECORD)]
    ending = Ending(
        published_at=read_time_of_day(),
        num_repeats=dict(Counter(map(str, results["status"]))),
        missing=tuple(
            MissingRepeat(cell_id=cell_id, repeat=repeat)
            for cell_id, repeat in zip(missing["cell_id"], missing["repeat"], strict=True)
        ),
    )
    keys = publish_report(store, collection.run, path.read_bytes(), ending)
    console.print(f"published: {', '.join(f'{store.url}/{key}' for key in keys)}", soft_wrap=True)
    if LATEST_RUN_KEY not in keys:
        console.print("latest/ holds a newer run and was not changed", soft_wrap=True)


def publish_report(store: Store, run: Run, report: bytes, ending: Ending) -> list[str]:
    """Put the report beside the run and under `latest/`; return the keys that were written, in their order.

    `latest/run.json` is written last: it names the run that `latest/report.html` is of. If `latest/` holds a newer run
    already, it is not changed. Two runs that end within the same moment can leave the report of one under the name of
    the other: `runs/RUN_ID/report.html` of the run that is named is certain.
    """
    store.put(report_key(run.run_id), report)
    written = [report_key(run.run_id)]
    document = run.model_copy(update={"ending": ending}).to_json()
    for key, data in ((LATEST_REPORT_KEY, report), (LATEST_RUN_KEY, document)):
        if _is_newer_there(store, run):  # before each: another run may end at the same time
            break
        store.put(key, data)
        written.append(key)
    return written


def _is_newer_there(store: Store, run: Run) -> bool:
    try:
        latest = read_run(store.get(LATEST_RUN_KEY))
    except (KeyMissing, InvalidDocumentError):  # none yet, or one of another version of this tool
        return False
    return latest.created_at > run.created_at


MARK = "made-from.txt"
"""The file beside a run's page that says what the page was made from."""


def write_site(store: Store, site: Path, prices: "PriceTable", tell: Callable[[str], None]) -> Path:
    """Write the pages of all runs of `store` into the folder `site`; return the path of the list of runs.

    A page whose run, nights, prices and version of the tool are those of its last writing is left as it is. A run that
    cannot be read stands in the list with the reason. UserError where a file cannot be written.
    """
    from collector.files import check_folder
    from collector.report.page import INDEX, SiteRun, write_index

    check_folder(site / INDEX)
    runs, unreadable = read_runs(store, store.list_run_ids())
    lines = [_write_run(store, run, site, prices, tell) for run in runs]
    for run_id, reason in unreadable.items():
        tell(f"run {run_id} has no page: {reason}")
        place, outcome = "runs that cannot be read", f"cannot be read: {reason}"
        lines.append(SiteRun(run_id=run_id, matrix=place, created_at="", outcome=outcome, has_page=False))
    return write_index(lines, site)


def _write_run(store: Store, run: Run, site: Path, prices: "PriceTable", tell: Callable[[str], None]) -> "SiteRun":
    from collector.analysis import analyze_run
    from collector.facts import state_outcome
    from collector.files import replace_text
    from collector.report.page import HOME, SiteRun, find_page, write_page

    line = SiteRun(run_id=run.run_id, matrix=run.matrix, created_at=f"{run.created_at:%Y-%m-%d %H:%M}", outcome="")
    try:
        collection = load_collection(store, run.run_id)
    except UserError as error:
        tell(f"{run.run_id}: {error}")
        return replace(line, outcome=f"cannot be read: {error}", has_page=False)
    history, page = load_history(store, collection), find_page(site, run.run_id)
    mark, source = page.parent / MARK, _name_source(collection, history, prices)
    if mark.is_file() and mark.read_bytes() == source.encode() and page.is_file():
        tell(f"{run.run_id}: unchanged")
    else:
        write_page(analyze_run(collection, history=history, prices=prices), page, home=HOME)
        tell(f"{page}")
        replace_text(mark, source, may_be_read=True)
    return replace(line, outcome=state_outcome(collection))


def _name_source(collection: "Collection", history: "ChangeHistory", prices: "PriceTable") -> str:
    """Return a digest of all that a page is made from: what counts of the run, what was seen of its nights, and how."""
    results = collection.results.to_csv(index=False)
    parts = (__version__, repr(prices), collection.run.run_id, results, repr(collection.skipped), repr(history))
    return hashlib.sha256("\n".join(parts).encode("utf-8", errors="surrogatepass")).hexdigest()
