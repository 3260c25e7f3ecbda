"""Runs for tests: a namespace, a store and cells, measured by a real session."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from commands import create

import waiting
from bench.schema import Cell, Cluster, Run
from bench.store import Store, parse_result_key, results_prefix, run_key
from factories import make_cell, make_run
from fake_kubelet import FakeKubelet, Pod
from ongoing_runs import Observed as Observed
from runner.kubernetes.connection import Connection
from runner.kubernetes.run import ClusterRun, ClusterTarget
from runner.kubernetes.session import ClusterSession
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.profiles.loading import load_profile
from runner.profiles.model import Profile
from runner.runs import NO_RETRIES, Records, Retries
from waiting import DEADLINE_SECONDS as DEADLINE_SECONDS

IMAGE = "registry.example/benchmatrix/pytorch:1"
IMAGES: Any = {name: {"cpu": IMAGE, "gpu": IMAGE} for name in ("pytorch", "tensorflow", "jax")}
MAX_PARALLEL = 100
wait_for = partial(waiting.wait_for, pause_seconds=0.05)


def make_namespace(connection: Connection, name: str) -> None:
    """Make a namespace with the service account of the cells."""
    create(connection, "/api/v1/namespaces", {"metadata": {"name": name}})
    create(connection, f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "benchmatrix-cell"}})


def set_quota(connection: Connection, namespace: str, **hard: str) -> None:
    """Make the ResourceQuota `small`, and return when it is in force."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    create(connection, path, {"metadata": {"name": "small"}, "spec": {"hard": hard}})
    wait_for(lambda: connection.get_object(f"{path}/small").get("status", {}).get("hard"), "the quota")


def make_profile(namespace: str, base: str = "kind", **overrides: Any) -> Profile:
    """Return a built-in profile for a namespace, with images.

    Its pools take MAX_PARALLEL Jobs, however many nodes a test has.
    """
    assert overrides.keys() <= Profile.model_fields.keys()  # model_copy takes any key
    found = load_profile(base)
    pools = {name: pool.model_copy(update={"max_parallel": MAX_PARALLEL}) for name, pool in found.pools.items()}
    return found.model_copy(update={"namespace": namespace, "images": IMAGES, "pools": pools, **overrides})


def make_cells(number: int, **overrides: Any) -> list[Cell]:
    """Return so many cells that differ in their seed."""
    return [make_cell(**({"seed": seed} | overrides)) for seed in range(number)]


def count_records(store: Store, run_id: str) -> Counter[tuple[str, int]]:
    """Return how many records each repeat has in the store."""
    keys = map(parse_result_key, store.list_keys(results_prefix(run_id)))
    return Counter((key.cell_id, key.repeat) for key in keys if key is not None)


@dataclass(kw_only=True)
class Setup:
    """One run and where it takes place."""

    connection: Connection
    profile: Profile
    store: Store
    run: Run
    unschedulable_seconds: float = 900.0
    max_in_flight: int = 100
    retries: Retries = NO_RETRIES
    queue: str | None = None
    observed: Observed = field(default_factory=Observed)
    """The observer of the newest `measure`."""

    @classmethod
    def make(cls, connection: Connection, namespace: str, store: Store, cells: list[Cell], **options: Any) -> "Setup":
        """Return a new run whose plan lies in the store."""
        profile = options.pop("profile", None) or make_profile(namespace)
        repeats = options.pop("repeats", 1)
        cluster = Cluster(context=connection.context, namespace=namespace, profile=profile.name)
        run = make_run(
            cells=cells,
            repeats=repeats,
            run_id=options.pop("run_id", namespace),
            executor="kubernetes",
            cluster=cluster,
        )
        store.put(run_key(run.run_id), run.to_json())
        return cls(connection=connection, profile=profile, store=store, run=run, **options)

    def measure(self, connection: Connection | None = None) -> Observed:
        """Measure what is missing, and return the observer."""
        used = connection or self.connection
        observed = self.observed = Observed()
        cluster_run = self.make_cluster_run()
        ongoing = cluster_run.make_ongoing(self.run, cluster_run.make_renderer(self.run), used, observed)
        ClusterSession(ongoing, self.list_missing).measure()
        return observed

    def start(self, connection: Connection | None = None) -> "Future[Observed]":
        """Measure in a thread; the answer is what `measure` returns or raises."""
        done: Future[Observed] = Future()

        def measure() -> None:
            try:
                done.set_result(self.measure(connection))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=measure, name="runner", daemon=True).start()
        return done

    def make_cluster_run(self) -> ClusterRun:
        return ClusterRun(
            matrix="",
            target=ClusterTarget(context=self.connection.context, profile=self.profile, queue=self.queue),
            store=self.store,
            run_id=self.run.run_id,
            start_new=False,
            retries=self.retries,
            max_in_flight=self.max_in_flight,
            unschedulable_seconds=self.unschedulable_seconds,
        )

    def list_missing(self) -> list[TrackedJob]:
        return self.make_cluster_run().list_missing(self.run, Records(self.store, self.run.run_id).read_snapshot())

    def count_records(self) -> Counter[tuple[str, int]]:
        return count_records(self.store, self.run.run_id)

    def list_pods(self) -> list[dict[str, Any]]:
        return self.connection.list_items(f"/api/v1/namespaces/{self.profile.namespace}/pods")

    def count_finished(self) -> int:
        """Return how many Jobs of the namespace have ended."""
        return sum(bool(job["status"].get("conditions")) for job in self.list_jobs())

    def count_ready(self) -> int:
        """Return how many cells run, as their Jobs say."""
        return sum(job["status"].get("ready", 0) for job in self.list_jobs())

    def submit(self) -> None:
        """Make the Jobs of the run, and follow none of them."""
        cluster_run, path = self.make_cluster_run(), f"/apis/batch/v1/namespaces/{self.profile.namespace}/jobs"
        renderer = cluster_run.make_renderer(self.run)
        for tracked in self.list_missing():
            self.connection.request("create", path, body=renderer.render(tracked.repeat.planned, tracked.key))

    def list_jobs(self) -> list[dict[str, Any]]:
        return self.connection.list_items(f"/apis/batch/v1/namespaces/{self.profile.namespace}/jobs")


@dataclass(kw_only=True)
class Site:
    """Where the runs of a test take place: a namespace and a store of its own, and kubelets that play nodes."""

    connection: Connection
    namespace: str
    store: Store
    kubelets: list[FakeKubelet] = field(default_factory=list)

    @property
    def words(self) -> tuple[str, ...]:
        """What a command about the run of the namespace's name is given."""
        return self.namespace, "--on", "current", "--store", self.store.url

    def make_setup(self, cells: list[Cell], **options: Any) -> Setup:
        return Setup.make(self.connection, self.namespace, self.store, cells, **options)

    def start_kubelet(
        self, decide: Callable[[Pod], str] = lambda pod: "ok", *, num_nodes: int = 0, **options: object
    ) -> FakeKubelet:
        given: dict[str, Any] = {"connection": self.connection, "store": self.store, "decide": decide} | options
        kubelet = FakeKubelet(**given)
        for number in range(num_nodes):
            kubelet.add_node(f"node-{uuid.uuid4().hex[:6]}-{number}")
        kubelet.start()
        self.kubelets.append(kubelet)
        return kubelet


def take_away(kubelet: FakeKubelet) -> None:
    """Stop a kubelet, and delete its nodes."""
    kubelet.stop()
    for name in kubelet.nodes:
        kubelet.connection.request("delete", f"/api/v1/nodes/{name}")


def check_all_once(setup: Setup, kubelet: FakeKubelet, number: int) -> None:
    """Check that each of so many repeats was measured once, ended well and has one record."""
    assert [result.status for result in setup.observed.results] == ["ok"] * number
    assert list(setup.count_records().values()) == [1] * number
    assert list(kubelet.measured.values()) == [1] * number
