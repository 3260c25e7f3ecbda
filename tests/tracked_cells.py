"""Tracked Jobs of made-up cells, for tests of what the runner decides about them."""

from bench.schema import Device
from factories import make_cell
from job_manifests import make_key, plan
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs
from runner.matrix.plan import Repeat


def track(device: Device, seed: int, *, timeout_seconds: float = 600.0, tenants: int = 1) -> TrackedJob:
    """Return the one repeat of a cell that is to be submitted; cells differ by their seed."""
    planned = plan(make_cell(device=device, seed=seed, tenants=tenants), timeout_seconds=timeout_seconds)
    return TrackedJob(repeat=Repeat(planned=planned, number=1), key=make_key(planned.cell))


def submit(jobs: TrackedJobs, *tracked: TrackedJob) -> None:
    for each in tracked:
        jobs.move(each, "request-sent")
        jobs.move(each, "created")


def finish(jobs: TrackedJobs, tracked: TrackedJob) -> None:
    """Have this Job, which was in flight, recorded."""
    jobs.move(tracked, "job-finished")
    jobs.move(tracked, "recorded")
