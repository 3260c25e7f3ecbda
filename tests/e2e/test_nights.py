"""The chart on a cluster with real pods: doctor in place, and nights begun by hand, to the report in the bucket."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import helm_python
import pytest
from ground import Ground, is_running_for, wait_for

from bench.schema import Run
from bench.store import LATEST_REPORT_KEY, LATEST_RUN_KEY, parse_result_key, report_key, results_prefix
from chart import CHART, make_job, make_values
from runner.kubernetes.connection import Connection

RELEASE, FULLNAME = "sweeps", "sweeps-benchmatrix"
MATRIX = {
    "name": "night",
    "axes": {"model": ["conv6"], "phase": ["train", "infer"], "framework": ["jax"]},
    "defaults": {
        "device": "cpu",
        "batch_size": 8,
        "num_warmup_steps": 2,
        "num_steps": 10,
        "min_seconds": 5,
        "repeats": 2,
        "timeout_seconds": 120,
    },
}
NIGHT_SECONDS = 300.0
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.fixture
def helm(ground: Ground, kubeconfig: str) -> Iterator[helm_python.Config]:
    """Helm's engine for a namespace that takes only restricted pods, with the store's keys in it."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ground.namespace, "labels": RESTRICTED}}
    ground.connection.request("create", "/api/v1/namespaces", body=json.dumps(body).encode())
    ground.make_store_secret()
    with helm_python.Config(kubeconfig_path=kubeconfig, namespace=ground.namespace) as config:
        yield config


def make_night_values(ground: Ground, control: str, jax: str) -> dict[str, Any]:
    repository, _, tag = control.rpartition(":")
    return make_values(
        image__repository=repository,
        image__tag=tag,
        store={
            "url": ground.store_url,
            "endpointUrl": ground.s3.endpoint_url,
            "region": "us-east-1",
            "secret": "benchmatrix-store",
        },
        profile__images={"jax": {"cpu": jax}},
        customMatrix=MATRIX,
        networkPolicy__store__ports=[ground.s3.port],
        runner__resources={"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
    )


def begin_night(ground: Ground, name: str) -> None:
    """Begin a night by hand."""
    path = f"/apis/batch/v1/namespaces/{ground.namespace}"
    body = make_job(ground.connection.get_object(f"{path}/cronjobs/{FULLNAME}"), name)
    ground.connection.request("create", f"{path}/jobs", body=json.dumps(body).encode())


def list_runners(ground: Ground, night: str) -> list[dict[str, Any]]:
    return [pod for pod in ground.list_pods() if pod["metadata"]["labels"].get("batch.kubernetes.io/job-name") == night]


def await_night(ground: Ground, name: str) -> dict[str, Any]:
    """Return the Job of a night once it has ended; the log of its runner is printed."""
    path = f"/apis/batch/v1/namespaces/{ground.namespace}/jobs/{name}"

    def find_ended() -> dict[str, Any] | None:
        job = ground.connection.get_object(path)
        ends = [item["type"] for item in job["status"].get("conditions", ()) if item["status"] == "True"]
        return job if {"Complete", "Failed"} & set(ends) else None

    job: dict[str, Any] = wait_for(find_ended, f"the end of {name}", NIGHT_SECONDS)
    for pod in list_runners(ground, name):
        print(read_log(ground.connection, ground.namespace, pod["metadata"]["name"]))
    return job


def read_log(connection: Connection, namespace: str, pod: str) -> str:
    return connection.request("get", f"/api/v1/namespaces/{namespace}/pods/{pod}/log").decode(errors="replace")


def check_night(ground: Ground, name: str) -> Run:
    """Check that every repeat has one record and that the newest report is this night's; return its run."""
    keys = [parse_result_key(key) for key in ground.store.list_keys(results_prefix(name))]
    assert 4 == len(keys) == len({(key.cell_id, key.repeat) for key in keys if key})
    assert {"ok"} == {result.status for result in ground.read_results(name)}
    latest = Run.model_validate_json(ground.store.get(LATEST_RUN_KEY))
    assert name == latest.run_id
    assert latest.ending is not None
    assert ({"ok": 4}, ()) == (latest.ending.num_repeats, latest.ending.missing)
    report = ground.store.get(LATEST_REPORT_KEY)
    assert report == ground.store.get(report_key(name))
    assert b"4 of 4 planned repeats ended ok" in report
    return latest


def test_two_nights_report_and_a_runner_that_is_deleted_is_replaced(
    ground: Ground, provide_image: Callable[[str], str], helm: helm_python.Config
) -> None:
    values = make_night_values(ground, provide_image("control"), provide_image("jax:cpu"))
    helm.install(CHART, RELEASE, values)
    print(helm.test(RELEASE, timeout=120, logs=True)["logs"])

    begin_night(ground, "first-night")
    first = await_night(ground, "first-night")

    assert 1 == first["status"].get("succeeded"), first["status"]
    run = check_night(ground, "first-night")
    assert run.git_revision is not None

    begin_night(ground, "second-night")
    ground.wait_for_pod(lambda pod: is_running_for(pod, "-train-", 3.0))
    (runner,) = list_runners(ground, "second-night")
    ground.connection.request("delete", f"/api/v1/namespaces/{ground.namespace}/pods/{runner['metadata']['name']}")
    second = await_night(ground, "second-night")

    assert 1 == second["status"].get("succeeded"), second["status"]
    check_night(ground, "second-night")
    (replaced,) = list_runners(ground, "second-night")
    assert runner["metadata"]["uid"] != replaced["metadata"]["uid"]
    log = read_log(ground.connection, ground.namespace, replaced["metadata"]["name"])
    assert "run second-night is resumed" in log

    helm.uninstall(RELEASE)

    jobs = f"/apis/batch/v1/namespaces/{ground.namespace}/jobs"
    wait_for(lambda: not ground.connection.list_items(jobs), "nights and cells to be gone")
    check_night(ground, "second-night")  # the bucket keeps them
