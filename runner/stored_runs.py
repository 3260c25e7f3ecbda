"""Choose and read runs of a store and their results, and compare them, as commands and `benchmatrix` do."""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rich.console import Console

from bench.errors import UserError
from bench.schema import Run
from bench.store import Store, explain, find_directory, is_confirmation
from bench.store.documents import read_runs
from runner.runs import find_future_runs
from runner.terminal import warn_on_stderr

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.results.collection import Collection
    from collector.versus.question import CompareDocument, Condition, Question, Selection
    from collector.versus.sides import RelatedRuns

    Compared = tuple[Selection, Selection, Sequence[Collection], RelatedRuns]
    """Both sides, the runs that they select from, and further runs of the same cells, which show the noise."""

MAX_NAMED = 10


def open_existing_store(url: str, option: str = "--store") -> Store:
    """Open a store, named by `option`, to read from. UserError for a directory that is not there, or is not for us."""
    if url.startswith("file://"):
        place = find_directory(url)
        try:
            is_there = place.is_dir()
        except OSError as error:  # what nobody may look into is not said to be missing
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


def load_collection(store: Store, run_id: str | None, *, writes_tables: bool = False) -> "Collection":
    """Return the results of a run; those of the newest run in the store if `run_id` is None. See `load_run`."""
    from collector.results.load import load_run

    chosen = find_newest_run(store).run_id if run_id is None else run_id
    return load_run(store, chosen, writes_tables=writes_tables)


def print_skipped(collection: "Collection", console: Console) -> None:
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


def compare_runs(
    store: str,
    run_a: str | None,
    run_b: str | None,
    *,
    store_b: str | None = None,
    a: Sequence[str] = (),
    b: Sequence[str] = (),
    run_patterns: Sequence[str] = (),
    where: Sequence[str] = (),
    metric: str | None = None,
    floor: float | None = None,
    include_invalid: bool = False,
    fails_undecided: bool = False,
) -> "tuple[Question, CompareDocument]":
    """Return what was asked, and the comparison.

    `run_b`: None for the newest. `a`, `b`: conditions instead of two runs, on the runs that are named, or that fit
    `run_patterns`. `metric`: None for the step time, and where the batches of A and B differ the time per sample.
    `floor`: in percent. UserError if something does not fit.
    """
    from collector.versus.comparison import compare_sides
    from collector.versus.question import METRICS, Question, parse_condition

    known = {str(name): found for name, found in METRICS.items()}
    if metric is not None and metric not in known:
        raise UserError(f"--metric {metric}: expected {', '.join(known)}")
    if floor is not None and not 0 < floor <= 100:
        raise UserError(f"--floor {floor:g}: expected percents above 0, 100 at the most, such as 5")
    conditions = tuple(parse_condition(text, "--where") for text in where)
    if a or b:
        if store_b is not None:
            raise UserError("--a and --b select from --run and --store; leave --store-b out")
        named = [run_id for run_id in (run_a, run_b) if run_id is not None]
        compared = _load_selected(store, named, run_patterns, {"a": a, "b": b})
    elif run_a is None:
        raise UserError(f"nothing to compare: {HOW}")
    elif run_patterns:
        raise UserError("--run: goes with --a and --b; two runs are named by themselves")
    else:
        compared = _load_two(store, store_b, run_a, run_b)
    side_a, side_b, collections, related = compared
    question = Question(
        a=side_a,
        b=side_b,
        where=conditions,
        metric=None if metric is None else known[metric],
        floor=None if floor is None else floor / 100,
        include_invalid=include_invalid,
        fails_undecided=fails_undecided,
    )
    return question, compare_sides(question, collections, related)


def _load_two(url: str, url_b: str | None, run_a: str, named_b: str | None) -> "Compared":
    from collector.results.load import load_run
    from collector.versus.question import select_runs
    from collector.versus.sides import RelatedRuns, load_related_runs

    store_a = open_existing_store(url)
    store_b = store_a if url_b is None else open_existing_store(url_b, "--store-b")
    run_b = find_newest_run(store_b).run_id if named_b is None else named_b
    if run_b == run_a:
        newest = "" if named_b is not None else ", which is the newest of the store"
        raise UserError(f"A and B are both the run {run_b}{newest}; name two runs")
    collections = load_run(store_a, run_a), load_run(store_b, run_b)
    a, b = select_runs(run_a, run_b)
    related = load_related_runs(store_a, collections)
    if store_b is not store_a:
        own = {collection.run.run_id for collection in related.collections}
        others = load_related_runs(store_b, collections)
        further = [found for found in others.collections if found.run.run_id not in own]
        passed_over = {**related.passed_over, **others.passed_over}
        related = RelatedRuns(collections=(*related.collections, *further), passed_over=passed_over)
    return a, b, collections, related


def _load_selected(
    url: str, named: Sequence[str], patterns: Sequence[str], conditions: Mapping[str, Sequence[str]]
) -> "Compared":
    from collector.results.load import load_runs
    from collector.versus.question import Selection, parse_condition
    from collector.versus.sides import load_related_runs

    if named and patterns:
        raise UserError(f"--run: {' and '.join(named)} is named already; name the runs to select from once")
    if missing := [name for name, texts in conditions.items() if not texts]:
        raise UserError(f"side {missing[0].upper()} is missing: {HOW}")
    a, b = (
        Selection(name=name.upper(), conditions=tuple(parse_condition(text, f"--{name}") for text in texts))
        for name, texts in conditions.items()
    )
    store = open_existing_store(url)
    collections = load_runs(store, _choose_runs(store, patterns or named, (*a.conditions, *b.conditions)))
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
