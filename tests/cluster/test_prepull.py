"""The pre-puller on a real API server and scheduler: it goes where cells go, beside none, and leaves nothing."""

import dataclasses
import io
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from commands import create
from rich.console import Console
from runs import Setup, make_cells, make_profile, wait_for

from bench.schema import PlannedCell
from bench.store import Store
from factories import make_cell
from fake_kubelet import Behaviour, FakeKubelet, Pod
from runner.kubernetes.connection import Connection
from runner.kubernetes.prepull import Prepuller
from runner.kubernetes.rendering.job_name import JobKey
from runner.kubernetes.rendering.job_template import JobRenderer
from runner.kubernetes.rendering.prepull_job import make_prepull_job, select_prepull

Manifest = dict[str, Any]
StartKubelet = Callable[..., FakeKubelet]
COMPONENT = "app.kubernetes.io/component"


def render_cells(namespace: str, run_id: str, **overrides: Any) -> list[Manifest]:
    """Return the Jobs of a cell in PyTorch and of one in JAX, whose images differ."""
    images: Any = {name: {"cpu": f"registry.example/{name}:1"} for name in ("pytorch", "jax")}
    renderer = JobRenderer(profile=make_profile(namespace, images=images), store_url="s3://bucket/x", git_revision=None)
    cells = [make_cell(**overrides), make_cell(framework="jax", mode="compiled", **overrides)]
    planned = [PlannedCell(cell=cell, repeats=1, timeout_seconds=600.0) for cell in cells]
    keys = [JobKey(run_id=run_id, cell_id=cell.cell_id, number=1, retry_round=0) for cell in cells]
    return [json.loads(renderer.render(one, key)) for one, key in zip(planned, keys, strict=True)]


def submit(connection: Connection, job: Manifest) -> None:
    create(connection, f"/apis/batch/v1/namespaces/{job['metadata']['namespace']}/jobs", job)


def list_pods(connection: Connection, namespace: str, selector: str) -> list[Manifest]:
    return connection.list_items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)


def list_nodes(connection: Connection, namespace: str, selector: str) -> list[str]:
    """Return the node of every such pod that has one."""
    return [node for pod in list_pods(connection, namespace, selector) if (node := pod["spec"].get("nodeName"))]


def list_left(connection: Connection, namespace: str, run_id: str) -> list[Manifest]:
    jobs = connection.list_items(f"/apis/batch/v1/namespaces/{namespace}/jobs", labelSelector=select_prepull(run_id))
    return jobs + list_pods(connection, namespace, select_prepull(run_id))


def read_refusal(connection: Connection, namespace: str, run_id: str) -> str:
    """Return what the scheduler says of the run's pods that wait; empty: nothing yet."""
    pods = list_pods(connection, namespace, f"{COMPONENT}=cell,benchmatrix/run-id={run_id}")
    conditions = [condition for pod in pods for condition in pod["status"].get("conditions", ())]
    return next((item.get("message", "") for item in conditions if item["type"] == "PodScheduled"), "")


@pytest.fixture
def restricted(connection: Connection, namespace: str) -> str:
    """The namespace, which takes only restricted pods now."""
    body = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    connection.request(
        "patch",
        f"/api/v1/namespaces/{namespace}",
        body=json.dumps(body).encode(),
        content_type="application/merge-patch+json",
    )
    return namespace


def start_prepuller(connection: Connection, namespace: str, lines: list[str]) -> threading.Thread:
    """Pull the images of a run called `mine` in a thread; what is said goes into `lines`."""
    prepuller = Prepuller(
        connection=connection,
        namespace=namespace,
        run_id="mine",
        cells=render_cells(namespace, "mine"),
        wait_seconds=600.0,
        say=lines.append,
    )
    thread = threading.Thread(target=prepuller.run, daemon=True)
    thread.start()
    return thread


def test_every_node_of_the_pool_pulls_but_none_with_a_cell_and_cells_wait_for_it(
    connection: Connection, restricted: str, start_kubelet: StartKubelet
) -> None:
    have_pulled = threading.Event()

    def decide(pod: Pod) -> Behaviour:
        if pod["metadata"]["labels"][COMPONENT] == "prepull":
            have_pulled.wait()
        return "hang"

    def list_places(selector: str = select_prepull("mine")) -> list[str]:
        return list_nodes(connection, restricted, selector)

    kubelet = start_kubelet(decide, num_nodes=3)
    kubelet.add_node("node-with-gpu", labels={"nvidia.com/gpu.present": "true"})  # no cell of the profile goes there
    submit(connection, render_cells(restricted, "other")[0])
    taken = wait_for(lambda: list_places(f"{COMPONENT}=cell"), "the cell of the other run")
    lines: list[str] = []
    thread = start_prepuller(connection, restricted, lines)
    wait_for(lambda: len(list_places()) == 2, "a pod on both free nodes")
    assert set(list_places()) == set(kubelet.nodes) - {*taken, "node-with-gpu"}
    submit(connection, render_cells(restricted, "next", seed=1)[0])
    wait_for(lambda: "anti-affinity" in read_refusal(connection, restricted, "next"), "the next cell to be kept off")
    have_pulled.set()
    thread.join()

    expected = "pre-pull, pool cpu: 2 of 2 nodes with room have the 2 images"
    assert [line.partition(" after ")[0] for line in lines] == [expected]
    wait_for(lambda: not list_left(connection, restricted, "mine"), "the pre-puller to be gone")
    wait_for(lambda: list_places(f"{COMPONENT}=cell,benchmatrix/run-id=next"), "the next cell to have a node")


def measure(setup: Setup) -> str:
    """Measure the run with a pre-puller, and return what was said."""
    console = Console(file=io.StringIO(), width=200)
    run = dataclasses.replace(setup.make_cluster_run(), prepull_seconds=600.0)
    run.measure(setup.run, setup.connection, setup.observed, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_run_pulls_before_its_first_cell_and_takes_over_what_a_killed_runner_left(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet
) -> None:
    seen: list[str] = []

    def decide(pod: Pod) -> Behaviour:
        seen.append(pod["metadata"]["labels"][COMPONENT])
        return "hang" if seen[-1] == "prepull" else "ok"

    start_kubelet(decide, num_nodes=2)
    setup = Setup.make(connection, namespace, store, make_cells(3))
    submit(connection, make_prepull_job(render_cells(namespace, setup.run.run_id), "left-behind", 600))

    said = measure(setup)

    assert seen == ["prepull"] * 2 + ["cell"] * 3
    assert "pre-pull, pool cpu: 2 of 2 nodes with room have the 1 image after" in said
    assert [result.status for result in setup.observed.results] == ["ok"] * 3
    wait_for(lambda: not list_left(connection, namespace, setup.run.run_id), "the pre-puller to be gone")


def test_an_image_that_cannot_be_pulled_keeps_no_run_waiting(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet
) -> None:
    start_kubelet(
        lambda pod: "image" if pod["metadata"]["labels"][COMPONENT] == "prepull" else "ok",
        num_nodes=1,
    )
    setup = Setup.make(connection, namespace, store, make_cells(1))

    said = measure(setup)

    assert "0 of 1 nodes with room have the 1 image" in said
    assert "the others pull with their first cell (ImagePullBackOff: Back-off pulling image" in said
    assert [result.status for result in setup.observed.results] == ["ok"]


def test_a_cluster_without_a_node_or_room_keeps_no_run_waiting(connection: Connection, namespace: str) -> None:
    lines: list[str] = []
    cells = render_cells(namespace, "mine")
    prepuller = Prepuller(
        connection=connection, namespace=namespace, run_id="mine", cells=cells, wait_seconds=600.0, say=lines.append
    )

    prepuller.run()

    assert lines[0].startswith("pre-pull, pool cpu: 0 of 0 nodes with room have the 2 images after")
    wait_for(lambda: not list_left(connection, namespace, "mine"), "the pre-puller to be gone")


def test_a_quota_that_refuses_the_pods_keeps_no_run_waiting(connection: Connection, namespace: str) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    create(connection, path, quota | {"spec": {"hard": {"count/jobs.batch": "0"}}})
    wait_for(lambda: connection.list_items(path)[0].get("status", {}).get("hard"), "the quota to be in force")
    lines: list[str] = []
    cells = render_cells(namespace, "mine")
    Prepuller(
        connection=connection, namespace=namespace, run_id="mine", cells=cells, wait_seconds=600.0, say=lines.append
    ).run()

    assert lines[0].startswith("pre-pull: the cluster refuses (")
    assert "exceeded quota" in lines[0]
