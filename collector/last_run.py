"""Compare a run with the one before it of the same matrix, as `benchmatrix compare` does."""

from bench.errors import TransientError, UserError
from bench.store import Store
from collector.results.collection import Collection
from collector.results.load import load_run
from collector.versus.comparison import compare_sides
from collector.versus.question import CompareDocument, Question, select_runs
from collector.versus.sides import load_related_runs, read_other_plans

MAX_CELLS = 2000
"""Of a run with more, nothing is compared unasked."""


def compare_with_last(store: Store, collection: Collection) -> CompareDocument | None:
    """Return what changed since the last run of the matrix that was begun before this one.

    None where the store has no such run, or none that can be compared. TransientError if the store does not answer.
    """
    run = collection.run
    if len(run.cells) > MAX_CELLS:
        return None
    plans = read_other_plans(store, {run.run_id})
    former = [one for one in plans[0] if one.matrix == run.matrix and one.created_at < run.created_at]
    if not former:
        return None
    last = max(former, key=lambda one: one.created_at).run_id
    try:
        collections = load_run(store, last), collection
        a, b = select_runs(last, run.run_id)
        return compare_sides(Question(a=a, b=b), collections, load_related_runs(store, collections, plans))
    except TransientError:
        raise
    except UserError:  # that run cannot be read, or has no cell in common
        return None
