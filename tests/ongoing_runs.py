"""A run on a cluster as the parts of a session see it: its repeats, and whatever API server a test plays."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.schema import Cell, Device, Result
from bench.store import Store
from factories import make_cell, make_run
from job_manifests import RUN_ID, load, make_key, make_renderer, plan
from runner.kubernetes.tracked_jobs import OngoingRun, RunBounds, TrackedJob, TrackedJobs
from runner.matrix import Repeat


def track(device: Device, seed: int, *, timeout_seconds: float = 600.0, tenants: int = 1) -> TrackedJob:
    """Return the one repeat of a cell that is to be submitted; cells differ by their seed."""
    return track_cell(make_cell(device=device, seed=seed, tenants=tenants), timeout_seconds=timeout_seconds)


def track_cell(cell: Cell, number: int = 1, **planned: Any) -> TrackedJob:
    key = replace(make_key(cell), number=number)
    return TrackedJob(repeat=Repeat(planned=plan(cell, **planned), number=number), key=key)


def submit(jobs: TrackedJobs, *tracked: TrackedJob) -> None:
    for each in tracked:
        jobs.move(each, "submitting")
        jobs.move(each, "in-flight")


def finish(jobs: TrackedJobs, tracked: TrackedJob) -> None:
    """Have this Job, which was in flight, recorded."""
    jobs.move(tracked, "recording")
    jobs.move(tracked, "done")


@dataclass(kw_only=True)
class Observed:
    """An observer that keeps what is reported to it."""

    results: list[Result] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    disrupted: Counter[str] = field(default_factory=Counter)
    """How many pods of a cell were disrupted before its record."""
    num_ticks: int = 0
    jobs: TrackedJobs = field(default_factory=TrackedJobs)
    """Those of the session, from its first tick on."""

    def tick(self, jobs: TrackedJobs) -> None:
        self.jobs = jobs
        self.num_ticks += 1

    def finish(self, tracked: TrackedJob, result: Result) -> None:
        self.results.append(result)
        self.disrupted[result.cell_id] += len(tracked.disrupted_pod_uids)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


class SameThread:
    """A dispatcher that does at once what it is asked for."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def request(self, work: Any, then: Any) -> None:
        then(work())

    record = submit = request

    def warn(self, message: str, _dedup_key: str | None = None) -> None:
        self.warnings.append(message)

    warn_later = warn


def make_ongoing(store: Path | Store, *jobs: TrackedJob, **given: Any) -> OngoingRun:
    """Return a run with these Jobs; `given`: fields of it or of its bounds, a dispatcher, a profile or a LocalQueue."""
    dispatcher, profile = given.pop("dispatcher", None), given.pop("profile", None) or load("gke")
    bounds: dict[str, Any] = {"max_in_flight": 100, "unschedulable_seconds": 900.0}
    bounds |= {name: given.pop(name) for name in RunBounds.__dataclass_fields__ if name in given}
    fields: dict[str, Any] = {
        "plan": make_run(run_id=RUN_ID),
        "store": store if isinstance(store, Store) else Store.open(f"file://{store}"),
        "connection": SimpleNamespace(patience_seconds=60.0),
        "renderer": make_renderer(profile, queue=given.pop("queue", None)),
        "observer": Observed(),
        "bounds": RunBounds(**bounds),
        "jobs": TrackedJobs(jobs),
    }
    run = OngoingRun(**(fields | given))
    if dispatcher is not None:
        run.dispatcher = dispatcher
    return run
