"""Sets up what cluster_scale.py measures: a control plane, kubelets in a process of their own, a metered session."""

import json
import multiprocessing
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from runs import Setup, make_cells, make_profile

from bench.schema import Result
from bench.store import Store
from bench.worker.shutdown import die_with_parent
from control_plane import ControlPlane
from fake_kubelet import FakeKubelet
from runner.kubernetes.connection import Connection
from runner.kubernetes.objects import JobStatus
from runner.kubernetes.rendering import JobRenderer
from runner.kubernetes.session import ClusterSession
from runner.kubernetes.tracked_jobs import OngoingRun, TrackedJob, TrackedJobs

NUM_NODES = 50
CAPACITY = {"cpu": "256", "memory": "1Ti", "pods": "2000", "ephemeral-storage": "8Ti"}
"""Of each node: as many cells as it has cores. Larger than real ones, because each node sends heartbeats."""
NODE_GRACE_SECONDS = 600
"""No node is lost here; on busy cores heartbeats came so late that pods were evicted."""
NUM_KUBELET_THREADS = 24
"""So many pods are seen to at once: with 8, they waited for the kubelets where requests took a second."""
T = TypeVar("T")


class EnoughReached(Exception):  # noqa: N818  (an answer rather than an error)
    """Ends a run in which what was waited for has happened."""


class MeteredConnection(Connection):
    """Writes down when each Job was asked for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.created: list[float] = []

    def request(self, verb: str, path: str, **options: Any) -> bytes:
        """Send a request, as Connection does."""
        if verb == "create":
            self.created.append(time.monotonic())
        return super().request(verb, path, **options)


class MeteredSession(ClusterSession):
    """Writes down when it first handles each Job's end."""

    def __init__(self, run: OngoingRun, list_missing: Callable[[], Iterable[TrackedJob]]) -> None:
        super().__init__(run, list_missing)
        self.handled_ends: list[float] = []
        self._ended: set[str] = set()

    def _on_job_event(self, job: JobStatus, *, is_deleted: bool) -> None:
        if job.end and job.name not in self._ended:
            self._ended.add(job.name)
            self.handled_ends.append(time.monotonic())
        super()._on_job_event(job, is_deleted=is_deleted)


class Observer:
    """Counts, and ends the run when `is_enough` says so."""

    def __init__(self, is_enough: Callable[[TrackedJobs], bool] = lambda jobs: False) -> None:
        self.is_enough = is_enough
        self.num_bad = 0

    def tick(self, jobs: TrackedJobs) -> None:
        """End the run where enough has happened."""
        if self.is_enough(jobs):
            raise EnoughReached

    def finish(self, tracked: TrackedJob, result: Result) -> None:
        """Count what did not end well."""
        self.num_bad += result.status != "ok"

    def warn(self, message: str) -> None:
        """Print a warning: there should be none."""
        print(f"warning: {message}", flush=True)


@contextmanager
def start_plane(folder: Path, assets: Path, **options: Any) -> Iterator[ControlPlane]:
    """Start a control plane in `folder` and point KUBECONFIG to it. `options`: those of ControlPlane."""
    plane = ControlPlane(folder=folder / "plane", assets=assets, node_grace_seconds=NODE_GRACE_SECONDS, **options)
    plane.start()
    os.environ["KUBECONFIG"] = str(plane.kubeconfig)
    try:
        yield plane
    finally:
        plane.stop()


def prepare(
    plane: ControlPlane, store: Store, num_cells: int, queue: str | None = None
) -> tuple[Setup, JobRenderer, Sequence[TrackedJob]]:
    """Make a namespace, and return a new run for it, the renderer of its Jobs, and the Jobs to submit."""
    connection = Connection(context=plane.context)
    name = f"scale-{uuid.uuid4().hex[:8]}"
    for path, kind, named in (
        ("/api/v1/namespaces", "Namespace", name),
        (f"/api/v1/namespaces/{name}/serviceaccounts", "ServiceAccount", "benchmatrix-cell"),
    ):
        body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": named}}
        connection.request("create", path, body=json.dumps(body).encode())
    pool = make_profile(name).pools["cpu"].model_copy(update={"is_alone_on_node": False, "max_parallel": None})
    profile = make_profile(name, pools={"cpu": pool})
    setup = Setup.make(connection, name, store, make_cells(num_cells), profile=profile)
    renderer = JobRenderer(profile=profile, store_url=store.url, git_revision=None, queue=queue)
    jobs = setup.list_missing()
    renderer.render(jobs[0].repeat.planned, jobs[0].key)  # the one shape is checked before the clock starts
    return setup, renderer, jobs


def make_session(
    setup: Setup, renderer: JobRenderer, connection: Connection, observer: Observer, max_in_flight: int
) -> MeteredSession:
    """Return a real session, which writes down when it handles an end."""
    cluster_run = replace(setup.make_cluster_run(), max_in_flight=max_in_flight)
    ongoing = cluster_run.make_ongoing(setup.run, renderer, connection, observer)
    return MeteredSession(ongoing, setup.list_missing)


@contextmanager
def play_kubelets(plane: ControlPlane, store: Store, num_nodes: int = NUM_NODES) -> Iterator[None]:
    """Play the kubelets of this many nodes in a second process, which ends when this one does."""
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=play, args=(plane.context, store.url, ready, os.getpid(), num_nodes), daemon=True)
    process.start()
    ready.wait()
    try:
        yield
    finally:
        process.terminate()


def play(context: str, store_url: str, ready: Any, parent_pid: int, num_nodes: int) -> None:
    """Play the kubelets until the parent ends or kills this process."""
    die_with_parent(parent_pid)
    connection = Connection(context=context)
    kubelet = FakeKubelet(connection=connection, store=Store.open(store_url), num_threads=NUM_KUBELET_THREADS)
    for number in range(num_nodes):
        kubelet.add_node(f"node-{number}", capacity=CAPACITY)
    kubelet.start()
    ready.set()
    threading.Event().wait()
