"""Compare a run with the one before it of the same matrix, as `benchmatrix compare` does."""

from bench.errors import TransientError, UserError
from bench.store import Store, is_confirmation
from bench.store.stored_runs import read_runs
from collector.results.collection import Collection
from collector.results.load import load_run
from collector.versus.comparison import Question, compare_sides
from collector.versus.document import CompareDocument
from collector.versus.noise import load_related_runs
from collector.versus.selections import Condition, Selection

MAX_CELLS = 2000
"""Of a run with more, nothing is compared unasked."""


def compare_with_last(store: Store, collection: Collection) -> CompareDocument | None:
    """Return what changed since the last run of the matrix that was begun before this one.

    None where the store has no such run, or none that can be compared. TransientError if the store does not answer.
    """
    run = collection.run
    if len(run.cells) > MAX_CELLS:
        return None
    others = [run_id for run_id in store.list_run_ids() if run_id != run.run_id and not is_confirmation(run_id)]
    known, _ = read_runs(store, others)
    former = [one for one in known if one.matrix == run.matrix and one.created_at < run.created_at]
    if not former:
        return None
    last = max(former, key=lambda one: one.created_at).run_id
    try:
        collections = load_run(store, last), collection
        a, b = (
            Selection(name=name, conditions=(Condition(key="run", pattern=run_id),))
            for name, run_id in (("A", last), ("B", run.run_id))
        )
        return compare_sides(Question(a=a, b=b), collections, load_related_runs(store, collections))
    except TransientError:
        raise
    except UserError:  # that run cannot be read, or has no cell in common
        return None
