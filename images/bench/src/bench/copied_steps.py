"""Says which of several records with the same step times count: two measurements never have the same.

Of copies within a cell the earliest counts, since the steps were measured once, and of this cell as far as can be told.
Of copies in several cells none counts: of which of them the steps are, nobody can tell.
"""

import hashlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from bench.schema import Result, Samples

NUM_DIGITS = 16
# So many different step times are never the same in two measurements: clocks count nanoseconds.
MIN_DISTINCT_STEPS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class StepsRecord:
    """What decides whether a record counts that has the same steps as others."""

    started_at: datetime
    key: str
    """Its place in the store."""
    cell_id: str


def has_own_steps(samples: Samples | None) -> bool:
    """Return whether the timed steps are such as no other measurement can have."""
    return samples is not None and len(set(samples.step_seconds)) >= MIN_DISTINCT_STEPS


def digest_steps(samples: Samples | None) -> str | None:
    """Return 16 hex digits of the timed steps; None where they are so few, or so alike, that others may be the same."""
    if samples is None or not has_own_steps(samples):
        return None
    return hashlib.sha256(array("d", samples.step_seconds).tobytes()).hexdigest()[:NUM_DIGITS]


def list_digests(result: Result) -> tuple[str, ...]:
    """Return the digests of all series of steps in a result, the first tenant's first, each once."""
    others = () if result.tenancy is None else result.tenancy.tenants[1:]
    digests = map(digest_steps, (result.samples, *(record.samples for record in others)))
    return tuple(dict.fromkeys(filter(None, digests)))


def find_copies(alike: Iterable[StepsRecord]) -> dict[str, StepsRecord]:
    """Return the keys of those that do not count, each with another record that has its steps, an earlier one first.

    `alike`: the records of a run that have a digest in common.
    """
    order = sorted(alike, key=lambda found: (found.started_at, found.key))
    if len({found.cell_id for found in order}) == 1:
        return {found.key: order[0] for found in order[1:]}
    return {found.key: next(other for other in order if other.cell_id != found.cell_id) for found in order}
