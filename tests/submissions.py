"""Submissions to an API server that takes everything, for tests of which Jobs are created next."""

from pathlib import Path
from typing import Any, cast

from bench.store import Store
from job_manifests import load, make_renderer
from runner.kubernetes.capacity import PoolCapacity, Spending
from runner.kubernetes.cleanup import CancellationWatcher
from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.placements import PlacementTracker
from runner.kubernetes.rendering import ANY_NODE
from runner.kubernetes.submission import FinishedJobs, Submission
from runner.kubernetes.tracked_jobs import TrackedJobs


class AcceptingServer:
    """Takes every request, and answers with the object as it was given."""

    def request(self, *_: object, body: bytes, **__: object) -> bytes:
        return body


def make_submission(
    dispatcher: Dispatcher, folder: Path, jobs: TrackedJobs, max_in_flight: int = 100, **max_parallel: int
) -> Submission:
    """Return what creates these Jobs on a server that takes all of them."""
    base = load("gke")
    pools: Any = {
        name: pool.model_copy(update={"max_parallel": max_parallel[name]}) for name, pool in base.pools.items()
    }
    profile = load("gke", pools=pools)
    connection = cast(Connection, AcceptingServer())
    capacity = PoolCapacity(dispatcher=dispatcher, connection=connection, renderer=make_renderer(profile))
    capacity.begin(jobs)
    submission = Submission(
        dispatcher=dispatcher,
        cancellation_watcher=CancellationWatcher(
            dispatcher=dispatcher, store=Store.open(f"file://{folder}"), run_ids=("mine-1",), known=frozenset()
        ),
        connection=connection,
        namespace="space",
        renderer=make_renderer(profile),
        max_in_flight=max_in_flight,
        capacity=capacity,
        spending=Spending.of(profile, max_nodes=None, max_cost=None),
        jobs=jobs,
        finished_jobs=FinishedJobs(
            dispatcher=dispatcher,
            connection=connection,
            namespace="space",
            run_id="mine-1",
            fingerprint="0123456789ab",
            placements=cast(PlacementTracker, None),
        ),
        find_wish=lambda _: ANY_NODE,
    )
    submission.add(jobs)
    return submission
