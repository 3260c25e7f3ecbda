"""Disrupts runs in the tests of clusters: cells that hang, watches that end, nodes that go silent."""

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from runs import Observed, Setup, make_cells, make_namespace, make_profile, take_away, wait_for

from bench.store import Store
from fake_kubelet import FakeKubelet, Pod
from faulty_server import Fault, FaultyServer
from runner.kubernetes.connection import Connection
from runner.profiles.model import Toleration


@dataclass
class FirstHangs:
    """Makes the first pods hang until they are deleted, and lets later ones end well."""

    number: int = 1
    pods: list[Pod] = field(default_factory=list)

    def __call__(self, pod: Pod) -> str:
        self.pods.append(pod)
        return "hang" if len(self.pods) <= self.number else "ok"

    def await_running(self, setup: Setup) -> Pod:
        """Return the first pod once its Job reports it as ready."""
        wait_for(setup.count_ready, "a pod that runs")
        return self.pods[0]


def check_measured_again(setup: Setup, kubelet: FakeKubelet, num_disrupted: int = 1) -> None:
    """Check that the one cell was measured again, has one ok record, and that no disruption counted as a failure."""
    assert [result.status for result in setup.observed.results] == ["ok"]
    assert set(setup.count_records().values()) == {1}
    assert list(kubelet.measured.values()) == [1]
    assert setup.observed.disrupted.total() == num_disrupted
    assert sum(job["status"].get("failed", 0) for job in setup.list_jobs()) == 0  # none counts towards backoffLimit


def keep_watches_shut(faulty: FaultyServer) -> None:
    """Cut the watches of Jobs and pods and refuse new ones: a runner behind the server sees no events."""
    wait_for(lambda: faulty.num_open_watches == 2, "both watches")
    faulty.choose_fault = refuse_watches
    faulty.cut_watches()
    wait_for(lambda: faulty.num_faults, "a watch that is refused")


def refuse_watches(method: str, path: str) -> Fault | None:
    """Choose the fault of a request: a watch is cut off, everything else passes."""
    return "cut-off" if "watch=1" in path else None


def forget_watches(faulty: FaultyServer) -> None:
    """Allow watches again, each after a new list: the server no longer has their resource versions."""
    forgotten = {"jobs", "pods"}

    def choose_fault(method: str, path: str) -> Fault | None:
        kind = urlsplit(path).path.rpartition("/")[2]
        if "watch=1" not in path or kind not in forgotten:
            return None
        forgotten.remove(kind)
        return "gone"

    faulty.choose_fault = choose_fault


@dataclass(kw_only=True)
class LostNode:
    """A run of one cell whose node went silent: on nodes of its own, since the controllers take a minute over it."""

    setup: Setup
    kubelet: FakeKubelet
    node: str
    running: "Future[Observed]"


@contextmanager
def lose_node(connection: Connection, through: Connection, folder: Path) -> Iterator[LostNode]:
    """Start such a run `through` the second connection; the node is deleted once a warning names it."""
    namespace, store = f"lost-{uuid.uuid4().hex[:6]}", Store.open(f"file://{folder}")
    make_namespace(connection, namespace)
    decide = FirstHangs()
    kubelet = FakeKubelet(connection=connection, store=store, decide=decide)
    for number in range(3):  # if most nodes were silent, the controllers would assume a failure of the network
        taint = {"key": namespace, "effect": "NoSchedule"}
        kubelet.add_node(f"{namespace}-{number}", labels={namespace: ""}, taints=[taint])
    kubelet.start()
    profile = make_profile(namespace, termination_grace_period_seconds=1)
    pool = profile.pools["cpu"].model_copy(
        update={"node_selector": {namespace: ""}, "tolerations": (Toleration(key=namespace, operator="Exists"),)}
    )
    profile = profile.model_copy(update={"pools": {"cpu": pool}})
    setup = Setup.make(connection, namespace, store, make_cells(1), profile=profile)
    running = setup.start(through)
    node = decide.await_running(setup)["spec"]["nodeName"]
    kubelet.forget_node(node)

    def delete_after_warning() -> None:
        wait_for(lambda: setup.observed.warnings, "a warning about the node")
        connection.request("delete", f"/api/v1/nodes/{node}")

    threading.Thread(target=delete_after_warning, daemon=True).start()
    yield LostNode(setup=setup, kubelet=kubelet, node=node, running=running)
    take_away(kubelet)


def orphan(setup: Setup) -> str:
    """Delete the run's one Job that has a pod which runs, as `kubectl delete --cascade=orphan` does; return the pod."""
    job = wait_for(lambda: [job for job in setup.list_jobs() if job["status"].get("ready")], "a Job that runs")[0]
    name = job["metadata"]["name"]
    path = f"/apis/batch/v1/namespaces/{setup.profile.namespace}/jobs/{name}"
    setup.connection.request("delete", path, query={"propagationPolicy": "Orphan"})
    wait_for(lambda: name not in {job["metadata"]["name"] for job in setup.list_jobs()}, "the Job to be gone")
    (pod,) = (pod for pod in setup.list_pods() if pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == name)
    return str(pod["metadata"]["name"])
