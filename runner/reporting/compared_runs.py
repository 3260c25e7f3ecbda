"""Choose and load the runs that `benchmatrix compare` needs: those of both sides, and others that show the noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from bench.errors import UserError
from bench.store import Store
from runner.reporting.stored_runs import find_newest_run, open_existing_store

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.results.collection import Collection
    from collector.versus.identical_runs import RelatedRuns
    from collector.versus.selections import Condition, Selection

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


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """Both sides, the runs that they select from, and further runs of the same cells."""

    a: "Selection"
    b: "Selection"
    collections: "tuple[Collection, ...]"
    related: "RelatedRuns"


def load_compared(choice: RunChoice) -> ComparedRuns:
    """Return the runs of a comparison. Raise UserError if the choice is incomplete or a run is not there."""
    if choice.a or choice.b:
        return _load_selected(choice)
    if choice.run_a is None:
        raise UserError(f"nothing to compare: {HOW}")
    if choice.run_patterns:
        raise UserError("--run: goes with --a and --b; two runs are named by themselves")
    return _load_two(choice, choice.run_a)


def _load_two(choice: RunChoice, run_a: str) -> ComparedRuns:
    from collector.results.load import load_run
    from collector.versus.identical_runs import RelatedRuns, load_related_runs
    from collector.versus.selections import Condition, Selection

    store_a = open_existing_store(choice.store)
    store_b = store_a if choice.store_b is None else open_existing_store(choice.store_b, "--store-b")
    run_b = find_newest_run(store_b).run_id if choice.run_b is None else choice.run_b
    if run_b == run_a:
        newest = "" if choice.run_b is not None else ", which is the newest of the store"
        raise UserError(f"A and B are both the run {run_b}{newest}; name two runs")
    collections = load_run(store_a, run_a), load_run(store_b, run_b)
    a, b = (
        Selection(name=name, conditions=(Condition(key="run", pattern=run_id),))
        for name, run_id in (("A", run_a), ("B", run_b))
    )
    related = load_related_runs(store_a, collections)
    if store_b is not store_a:
        own = {collection.run.run_id for collection in related.collections}
        others = load_related_runs(store_b, collections)
        further = [found for found in others.collections if found.run.run_id not in own]
        related = RelatedRuns(
            collections=(*related.collections, *further),
            passed_over={**related.passed_over, **others.passed_over},
            copies={**related.copies, **others.copies},
        )
    return ComparedRuns(a=a, b=b, collections=collections, related=related)


def _load_selected(choice: RunChoice) -> ComparedRuns:
    from collector.results.load import load_runs
    from collector.versus.identical_runs import load_related_runs
    from collector.versus.selections import Selection, parse_condition

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
    related = load_related_runs(store, collections)
    return ComparedRuns(a=a, b=b, collections=tuple(collections), related=related)


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
