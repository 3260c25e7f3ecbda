"""Finds runs that hold measurements of another run: a copy says nothing about what runs differ by."""

from collections.abc import Iterable, Mapping
from typing import Any

from collector.results.collection import Collection

IDENTITY = ("cell_id", "repeat", "attempt", "started_at", "finished_at", "center_step_seconds")
"""What two measurements never share: the id of an attempt is drawn at random, its times are in microseconds."""
MAX_NAMED = 5


def find_copies(collections: Iterable[Collection]) -> dict[str, str]:
    """Return each run that holds a measurement of one before it, with that run's id."""
    owners: dict[tuple[Any, ...], str] = {}
    copies: dict[str, str] = {}
    for collection in collections:
        run_id = collection.run.run_id
        for measurement in _list_measurements(collection):
            owner = owners.setdefault(measurement, run_id)
            if owner != run_id:
                copies.setdefault(run_id, owner)
    return copies


def describe_copies(copies: Mapping[str, str]) -> str:
    """Return in a sentence which runs are copies of which; empty without any."""
    if not copies:
        return ""
    first = [f"{run_id} (of {original})" for run_id, original in list(copies.items())[:MAX_NAMED]]
    more = [f"and {len(copies) - MAX_NAMED:,} more"] if len(copies) > MAX_NAMED else []
    return (
        f"copies, with the attempts and figures of another run, show nothing about the noise: {', '.join(first + more)}"
    )


def _list_measurements(collection: Collection) -> list[tuple[Any, ...]]:
    rows = collection.results
    ended_ok = rows[rows["status"] == "ok"]
    return list(zip(*(ended_ok[name].tolist() for name in IDENTITY), strict=True))
