"""Runs of a store and their results: chosen, read, compared and reported, as commands and `benchmatrix` do."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench import __version__
from bench.errors import UserError
from bench.schema import Ending, InvalidDocumentError, MissingRepeat, Run, read_run, read_time_of_day
from bench.store import (
    LATEST_REPORT_KEY,
    LATEST_RUN_KEY,
    KeyMissing,
    Store,
    explain,
    find_directory,
    is_confirmation,
    report_key,
)
from bench.store.documents import find_future_runs, read_runs
from runner.terminal import warn_on_stderr

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.analysis import Analysis
    from collector.changes import ChangeHistory
    from collector.prices.table import PriceTable
    from collector.report.page import SiteRun
    from collector.results.collection import Collection
    from collector.versus.noise import RelatedRuns
    from collector.versus.question import CompareDocument, Condition, Question, Selection

    Compared = tuple[Selection, Selection, Sequence[Collection], RelatedRuns]
    """Both sides, the runs that they select from, and further runs of the same cells, which show the noise."""

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
            raise UserError(f"store {url}: {explain(error, str(place))}") from error
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


def print_skipped(collection: "Collection", console: Console) -> None:
    """Name the documents in the store that did not count, and why; of many of them the first MAX_NAMED."""
    from collector.units import count_things

    for notice in collection.notices:
        console.print(notice, style="yellow", soft_wrap=True)
    num_skipped = len(collection.skipped)
    if num_skipped:
        console.print(f"{count_things(num_skipped, 'document')} in the store did not count:", style="yellow")
    for document in collection.skipped[:MAX_NAMED]:
        console.print(f"  {document.key}: {document.reason}", soft_wrap=True, markup=False)
    if (num_more := num_skipped - MAX_NAMED) > 0:
        console.print(f"  and {num_more:,} more; skipped.csv of `benchmatrix report --format csv` has all")


HOW = "give two runs (`compare RUN_A RUN_B`), or conditions for both sides (`--a KEY=VALUE --b KEY=VALUE`)"


@dataclass(frozen=True)
class RunChoice:
    """What the user named: two runs, or conditions on runs."""

    run_a: str | None
    run_b: str | None
    """None: not named. With conditions, the runs to select from, as `run_patterns`."""
    a: tuple[str, ...]
    b: tuple[str, ...]
    run_patterns: tuple[str, ...]
    store: str
    store_b: str | None


def compare_runs(
    choice: RunChoice,
    where: Sequence[str] = (),
    metric: str | None = None,
    *,
    floor: float | None = None,
    include_invalid: bool = False,
    fails_undecided: bool = False,
) -> "tuple[Question, CompareDocument]":
    """Return what was asked, and the comparison. Raise UserError if something does not fit.

    `metric`: None for the step time, and where the batches of A and B differ the time per sample. `floor`: in percent.
    """
    from collector.versus.comparison import compare_sides
    from collector.versus.question import METRICS, Question, parse_condition

    known = {str(name): found for name, found in METRICS.items()}
    if metric is not None and metric not in known:
        raise UserError(f"--metric {metric}: expected {', '.join(known)}")
    if floor is not None and not 0 < floor <= 100:
        raise UserError(f"--floor {floor:g}: expected percents above 0, 100 at the most, such as 5")
    conditions = tuple(parse_condition(text, "--where") for text in where)
    if choice.a or choice.b:
        a, b, collections, related = _load_selected(choice)
    elif choice.run_a is None:
        raise UserError(f"nothing to compare: {HOW}")
    elif choice.run_patterns:
        raise UserError("--run: goes with --a and --b; two runs are named by themselves")
    else:
        a, b, collections, related = _load_two(choice, choice.run_a)
    question = Question(
        a=a,
        b=b,
        where=conditions,
        metric=None if metric is None else known[metric],
        floor=None if floor is None else floor / 100,
        include_invalid=include_invalid,
        fails_undecided=fails_undecided,
    )
    return question, compare_sides(question, collections, related)


def _load_two(choice: RunChoice, run_a: str) -> "Compared":
    from collector.results.load import load_run
    from collector.versus.noise import RelatedRuns, load_related_runs
    from collector.versus.question import select_runs

    store_a = open_existing_store(choice.store)
    store_b = store_a if choice.store_b is None else open_existing_store(choice.store_b, "--store-b")
    run_b = find_newest_run(store_b).run_id if choice.run_b is None else choice.run_b
    if run_b == run_a:
        newest = "" if choice.run_b is not None else ", which is the newest of the store"
        raise UserError(f"A and B are both the run {run_b}{newest}; name two runs")
    collections = load_run(store_a, run_a), load_run(store_b, run_b)
    a, b = select_runs(run_a, run_b)
    related = load_related_runs(store_a, collections)
    if store_b is not store_a:
        own = {collection.run.run_id for collection in related.collections}
        others = load_related_runs(store_b, collections)
        further = [found for found in others.collections if found.run.run_id not in own]
        related = RelatedRuns(
            collections=(*related.collections, *further),
            passed_over={**related.passed_over, **others.passed_over},
        )
    return a, b, collections, related


def _load_selected(choice: RunChoice) -> "Compared":
    from collector.results.load import load_runs
    from collector.versus.noise import load_related_runs
    from collector.versus.question import Selection, parse_condition

    named = tuple(run_id for run_id in (choice.run_a, choice.run_b) if run_id is not None)
    if choice.store_b is not None:
        raise UserError("--a and --b select from --run and --store; leave --store-b out")
    if named and choice.run_patterns:
        raise UserError(f"--run: {' and '.join(named)} is named already; name the runs to select from once")
    if not choice.a or not choice.b:
        raise UserError(f"side {'B' if choice.a else 'A'} is missing: {HOW}")
    a, b = (
        Selection(name=name.upper(), conditions=tuple(parse_condition(text, f"--{name}") for text in texts))
        for name, texts in (("a", choice.a), ("b", choice.b))
    )
    store = open_existing_store(choice.store)
    collections = load_runs(store, _choose_runs(store, choice.run_patterns or named, (*a.conditions, *b.conditions)))
    return a, b, collections, load_related_runs(store, collections)


def _choose_runs(store: Store, patterns: Sequence[str], conditions: "Sequence[Condition]") -> list[str]:
    """Return the runs that fit --run, or else those that conditions name, or else the newest one."""
    named = patterns or [condition.pattern for condition in conditions if condition.key == "run"]
    if not named:
        return [find_newest_run(store).run_id]
    run_ids = sorted(store.list_run_ids())
    chosen = []
    for pattern in named:
        found = [run_id for run_id in run_ids if fnmatchcase(run_id, pattern)]
        if not found and set(pattern) & set("*?["):
            raise UserError(f"store {store.url}: no run fits '{pattern}'; it has {len(run_ids)} runs")
        chosen += found or [pattern]  # a name that is not there: loading it says which there are
    return chosen


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
        """Whether every repeat ended well."""
        return not self.num_by_status.keys() - {"ok"}


def choose_output(output: Path | None, run: Run) -> Path:
    """Return the folder for a run's files: the one named, or the default."""
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
    """Return the changes that `watch` recorded over the nights of the run's matrix; StoreError if it cannot.

    What of it does not count is named on stderr: a change that nobody can read was suspected all the same.
    """
    from collector.changes import read_history

    history = read_history(store, collection.run.matrix)
    for document in history.skipped[:MAX_NAMED]:
        warn_on_stderr(f"{document.key}: {document.reason}")
    if (num_more := len(history.skipped) - MAX_NAMED) > 0:
        warn_on_stderr(f"{num_more:,} more documents of nights do not count")
    return history


def print_notices(store: Store, collection: "Collection", console: Console) -> None:
    """Print what did not count of a run, and which of its raw results were removed."""
    from bench.store.documents import read_raw_removals
    from collector.facts import describe_raw_removals

    print_skipped(collection, console)
    for line in describe_raw_removals(read_raw_removals(store, collection.run.run_id)):
        console.print(line, soft_wrap=True)


def analyze_stored(store: Store, collection: "Collection", prices: "PriceTable") -> "Analysis":
    """Return what a report says of a run, its nights and what changed since the last run of its matrix included."""
    from collector.analysis import analyze_run
    from collector.last_run import compare_with_last

    since = compare_with_last(store, collection)
    return replace(analyze_run(collection, history=load_history(store, collection), prices=prices), since=since)


def finish_run(
    store: Store, run: Run, console: Console, *, output: Path | None, with_report: bool, is_published: bool
) -> RunEnd:
    """Collect and report a run, print its table and return how it ended.

    `output`: folder for the report; None for the default. `is_published`: put the report into the store as well.
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
    """Print how many repeats were contaminated, and the command that measures them again.

    `command` None: it is of no use elsewhere, as that of a pod.
    """
    if end.num_contaminated:
        how = "" if command is None else f". Measure them again when nobody else uses the machine:\n  {command}"
        line = f"{end.num_contaminated} of {end.num_repeats} repeats were contaminated by others, and do not count{how}"
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

    Raise StoreError if the store cannot be used.
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
    cannot be read stands in the list with the reason. `tell` gets a line for each page. Raise StoreError if the store
    cannot be used, UserError where a file cannot be written.
    """
    from collector.files import check_folder
    from collector.report.page import INDEX, SiteRun, write_index

    check_folder(site / INDEX)
    runs, unreadable = read_runs(store, store.list_run_ids())
    lines = [_write_run(store, run, site, prices, tell) for run in runs]
    for run_id, reason in unreadable.items():
        tell(f"run {run_id} has no page: {reason}")
        lines.append(
            SiteRun(
                run_id=run_id,
                matrix="runs that cannot be read",
                created_at="",
                outcome=f"cannot be read: {reason}",
                has_page=False,
            )
        )
    return write_index(lines, site)


def _write_run(store: Store, run: Run, site: Path, prices: "PriceTable", tell: Callable[[str], None]) -> "SiteRun":
    from collector.analysis import analyze_run
    from collector.facts import state_outcome
    from collector.files import replace_text
    from collector.report.page import SiteRun, find_page, write_site_page

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
        tell(f"{write_site_page(analyze_run(collection, history=history, prices=prices), site)}")
        replace_text(mark, source, may_be_read=True)
    return replace(line, outcome=state_outcome(collection))


def _name_source(collection: "Collection", history: "ChangeHistory", prices: "PriceTable") -> str:
    """Return a digest of all that a page is made from: what counts of the run, what was seen of its nights, and how."""
    results = collection.results.to_csv(index=False)
    parts = (__version__, repr(prices), collection.run.run_id, results, repr(collection.skipped), repr(history))
    return hashlib.sha256("\n".join(parts).encode("utf-8", errors="surrogatepass")).hexdigest()
