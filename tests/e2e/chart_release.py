"""Installs the chart in a cluster with real pods, starts its scheduled runs by hand, and awaits their ends."""

import json
from collections.abc import Mapping
from typing import Any

from real_cluster import STORE_SECRET, RealCluster, wait_for

from chart import make_job, make_values
from runner.kubernetes.connection import Connection

RELEASE, FULLNAME = "sweeps", "sweeps-benchmatrix"
RUN_SECONDS = 900.0
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def make_restricted_namespace(real_cluster: RealCluster) -> None:
    """Create the namespace of the test: it takes only restricted pods, and has the store's keys."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": real_cluster.namespace, "labels": RESTRICTED}}
    real_cluster.connection.request("create", "/api/v1/namespaces", body=json.dumps(body).encode())
    real_cluster.make_store_secret()


def make_schedule_values(
    real_cluster: RealCluster, control: str, jax: str, matrix: Mapping[str, Any], **changes: Any
) -> dict[str, Any]:
    """Return values that run a matrix of JAX on the CPU; `changes` as for make_values."""
    repository, _, tag = control.rpartition(":")
    return make_values(
        image__repository=repository,
        image__tag=tag,
        store={
            "url": real_cluster.store_url,
            "endpointUrl": real_cluster.s3.endpoint_url,
            "region": "us-east-1",
            "secret": STORE_SECRET,
        },
        profile__images={"jax": {"cpu": jax}},
        customMatrix=matrix,
        networkPolicy__store__ports=[real_cluster.s3.port],
        runner__resources={"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        **changes,
    )


def start_scheduled_run(real_cluster: RealCluster, name: str) -> None:
    """Start a scheduled run now, as `kubectl create job --from` does."""
    path = f"/apis/batch/v1/namespaces/{real_cluster.namespace}"
    body = make_job(real_cluster.connection.get_object(f"{path}/cronjobs/{FULLNAME}"), name)
    real_cluster.connection.request("create", f"{path}/jobs", body=json.dumps(body).encode())


def list_runners(real_cluster: RealCluster, job_name: str) -> list[dict[str, Any]]:
    return [
        pod
        for pod in real_cluster.list_pods()
        if pod["metadata"]["labels"].get("batch.kubernetes.io/job-name") == job_name
    ]


def await_scheduled_run(real_cluster: RealCluster, name: str, seconds: float = RUN_SECONDS) -> dict[str, Any]:
    """Return the Job of a scheduled run once it has ended, within `seconds`; print the log of its runner."""
    path = f"/apis/batch/v1/namespaces/{real_cluster.namespace}/jobs/{name}"

    def find_ended() -> dict[str, Any] | None:
        job = real_cluster.connection.get_object(path)
        ends = [item["type"] for item in job["status"].get("conditions", ()) if item["status"] == "True"]
        return job if {"Complete", "Failed"} & set(ends) else None

    job: dict[str, Any] = wait_for(find_ended, f"the end of {name}", seconds)
    for pod in list_runners(real_cluster, name):
        print(read_log(real_cluster.connection, real_cluster.namespace, pod["metadata"]["name"]))
    return job


def read_log(connection: Connection, namespace: str, pod: str) -> str:
    return connection.request("get", f"/api/v1/namespaces/{namespace}/pods/{pod}/log").decode(errors="replace")
