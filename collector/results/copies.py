"""Finds attempts of a run that have the step times of another attempt: two measurements never have the same.

Of copies within a cell the earliest counts, since the steps were measured once, and of this cell as far as can be told.
Of copies in several cells none counts: of which of them the steps are, nobody can tell.
"""

import hashlib
from array import array
from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc

from bench.contradictions import has_own_steps
from bench.schema import Samples
from collector.results.collection import COPY

NUM_DIGITS = 16


def digest_steps(samples: Samples) -> str | None:
    """Return 16 hex digits of the timed steps; None where they are so few, or so alike, that others may be the same."""
    if not has_own_steps(samples):
        return None
    return hashlib.sha256(array("d", samples.step_seconds).tobytes()).hexdigest()[:NUM_DIGITS]


def find_copied_attempts(attempts: pa.Table) -> dict[int, str]:
    """Return the rows of the table of attempts that do not count as they are copies, each with the reason."""
    digests = attempts["steps_digest"]
    if pc.count_distinct(digests, mode="only_valid").as_py() == len(digests) - digests.null_count:
        return {}  # as of nearly all runs, whose digests need not become Python's strings then
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for index, digest in enumerate(digests.to_pylist()):
        if digest is not None:
            groups[digest].append(index)
    return {
        index: reason
        for rows in groups.values()
        if len(rows) > 1
        for index, reason in _explain_copies(attempts.select(["key", "cell_id", "started_at"]).take(rows), rows).items()
    }


def _explain_copies(found: pa.Table, rows: list[int]) -> dict[int, str]:
    """Return why these rows, which have the same steps, do not count: all of several cells, all but one of one cell."""
    keys, cell_ids, started = (column.to_pylist() for column in found.columns)
    order = sorted(range(len(rows)), key=lambda place: (started[place], keys[place]))
    first = order[0]
    if len(set(cell_ids)) == 1:
        return {
            rows[place]: f"{COPY}its step times are those of {keys[first]}, to the last digit" for place in order[1:]
        }
    others = {place: next(other for other in order if cell_ids[other] != cell_ids[place]) for place in order}
    return {
        rows[
            place
        ]: f"{COPY}its step times are, to the last digit, those of another cell, {keys[other]}: which measured them "
        "is not known"
        for place, other in others.items()
    }
