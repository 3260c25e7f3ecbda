"""Time what cluster_scale.py compares the runner with: a bare loop of the official client that sends ready bodies."""

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import kubernetes.client
import kubernetes.config
import kubernetes.watch
from runs import Setup

from runner.kubernetes.rendering import JobRenderer
from runner.kubernetes.tracked_jobs import TrackedJob

NUM_BARE_THREADS = 16


def time_bare_submission(setup: Setup, renderer: JobRenderer, jobs: Sequence[TrackedJob]) -> float:
    """Return the seconds that 16 threads of the official client take to send ready bodies."""
    bodies = [renderer.render(tracked.repeat.planned, tracked.key) for tracked in jobs]
    api = open_bare_client()
    start = time.monotonic()
    send_bare(api, setup.profile.namespace, bodies)
    return time.monotonic() - start


def time_bare_run(setup: Setup, renderer: JobRenderer, jobs: Sequence[TrackedJob]) -> float:
    """Return the seconds from the first create of a bare loop to the last Job's completion, by one watch."""
    bodies = [renderer.render(tracked.repeat.planned, tracked.key) for tracked in jobs]
    api, namespace = open_bare_client(), setup.profile.namespace
    start = time.monotonic()
    sender = threading.Thread(target=send_bare, args=(api, namespace, bodies))
    sender.start()
    done: set[str] = set()
    version = "0"
    while len(done) < len(bodies):
        watch = kubernetes.watch.Watch()
        stream = watch.stream(api.list_namespaced_job, namespace, resource_version=version, timeout_seconds=300)
        for event in stream:
            job = event["object"]
            version = job.metadata.resource_version
            if job.status.completion_time:
                done.add(job.metadata.name)
            if len(done) == len(bodies):
                break
    sender.join()
    return time.monotonic() - start


def open_bare_client() -> Any:
    """Return the official client's batch API over one pool of connections."""
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(config_file=os.environ["KUBECONFIG"], client_configuration=configuration)
    configuration.connection_pool_maxsize = NUM_BARE_THREADS
    return kubernetes.client.BatchV1Api(kubernetes.client.ApiClient(configuration))


def send_bare(api: Any, namespace: str, bodies: Sequence[bytes]) -> None:
    """Send all bodies as they are from 16 threads, over the client's pool of connections."""
    client = api.api_client
    url = f"{client.configuration.host}/apis/batch/v1/namespaces/{namespace}/jobs"
    headers = {"Content-Type": "application/json", **client.default_headers}
    client.update_params_for_auth(headers, [], ["BearerToken"], "", "POST", None)

    def send(body: bytes) -> None:
        answer = client.rest_client.pool_manager.request("POST", url, body=body, headers=headers)
        assert answer.status == 201, answer.data

    with ThreadPoolExecutor(NUM_BARE_THREADS) as pool:
        list(pool.map(send, bodies))
