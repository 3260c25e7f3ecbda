"""Finds what runs hold of other runs' measurements: a copy says nothing about what runs, or nights, differ by."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from collector.results.collection import Collection
from collector.results.statuses import WITHOUT_RECORD

IDENTITY = ("cell_id", "repeat", "attempt", "started_at", "finished_at", "center_step_seconds")
"""What two measurements never share: the id of an attempt is drawn at random, its times are in microseconds."""
MAX_NAMED = 5


@dataclass(kw_only=True)
class CopyFinder:
    """Remembers the measurements of the runs that it was shown, and finds them again in later ones."""

    _owners: dict[int, str] = field(default_factory=dict)
    """By the hash of what a measurement shares with none but its copies: the run that had it first."""

    def find_rows(self, collection: Collection) -> tuple[npt.NDArray[np.bool_], str | None]:
        """Return which rows of a run's results are another run's measurements, and the first such run."""
        results, run_id = collection.results, collection.run.run_id
        is_copy, original = np.zeros(len(results), dtype=np.bool_), None
        columns = (results[name].tolist() for name in ("status", *IDENTITY))
        for place, (status, *identity) in enumerate(zip(*columns, strict=True)):
            if status != "ok":
                continue
            owner = self._owners.setdefault(hash(tuple(identity)), run_id)
            if owner != run_id:
                is_copy[place], original = True, original or owner
        return is_copy, original

    def drop_copies(self, collection: Collection) -> tuple[Collection, str]:
        """Return a run without the repeats that are another run's, and in a sentence how many those are, or nothing."""
        is_copy, original = self.find_rows(collection)
        if original is None:
            return collection, ""
        text = (
            f"{int(is_copy.sum()):,} of its repeats have the measurements of another run (of {original}): they do not "
            "count"
        )
        return _drop_rows(collection, is_copy), text


def drop_copies(collections: Iterable[Collection]) -> list[Collection]:
    """Return the runs without the repeats that are those of a run before them; a notice of each says how many."""
    finder, kept = CopyFinder(), []
    for collection in collections:
        own, text = finder.drop_copies(collection)
        notices = (f"run {collection.run.run_id}: {text}",) if text else ()
        if text and not (own.results["status"] == "ok").any():  # its failures are the other run's, too
            own = _drop_rows(own, np.ones(len(own.results), dtype=np.bool_))
        kept.append(replace(own, notices=(*own.notices, *notices)))
    return kept


def _drop_rows(collection: Collection, is_dropped: npt.NDArray[np.bool_]) -> Collection:
    """Return the run without these rows of its results, their step times and their tenants."""
    results, tenants = collection.results, collection.tenants
    has_record = ~results["status"].isin(WITHOUT_RECORD).to_numpy()
    dropped = pd.MultiIndex.from_frame(results.loc[is_dropped, ["cell_id", "repeat"]])
    return replace(
        collection,
        results=results[~is_dropped].reset_index(drop=True),
        tenants=tenants[~pd.MultiIndex.from_frame(tenants[["cell_id", "repeat"]]).isin(dropped)],
        steps=collection.steps.keep(np.flatnonzero(~is_dropped[has_record]).tolist()),
    )


def find_copies(collections: Iterable[Collection]) -> dict[str, str]:
    """Return each run that holds a measurement of one before it, with that run's id."""
    finder = CopyFinder()
    found = {collection.run.run_id: finder.find_rows(collection)[1] for collection in collections}
    return {run_id: original for run_id, original in found.items() if original is not None}


def describe_copies(copies: Mapping[str, str]) -> str:
    """Return in a sentence which runs are copies of which; empty without any."""
    if not copies:
        return ""
    first = [f"{run_id} (of {original})" for run_id, original in list(copies.items())[:MAX_NAMED]]
    more = [f"and {len(copies) - MAX_NAMED:,} more"] if len(copies) > MAX_NAMED else []
    return (
        f"copies, with the attempts and figures of another run, show nothing about the noise: {', '.join(first + more)}"
    )
