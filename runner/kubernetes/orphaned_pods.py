"""Finds the pods of cells whose Job is gone, and deletes them: no controller does, and one that runs measures on.

`kubectl delete job --cascade=orphan` leaves such pods. A pod is a run's as a Job is (runner.kubernetes.foreign_jobs):
by the labels of the run's cells, and by the store that its container writes to. That its Job is gone is what the API
server says: the pod has no owner any more, and no Job has the uid that the Job controller wrote into the pod.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from collector.word_lists import join_some
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection
from runner.kubernetes.object_status import read_store_url, read_uid
from runner.kubernetes.rendering.job_name import RUN_LABEL

CONTROLLER_LABEL = "batch.kubernetes.io/controller-uid"
"""The uid of the Job that a pod was made for (https://kubernetes.io/docs/reference/labels-annotations-taints/)."""
ENDED = ("Succeeded", "Failed")
MAX_NAMED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class OrphanedPod:
    """A pod of a cell whose Job is gone."""

    name: str
    uid: str
    job_uid: str
    run_id: str
    store_url: str
    """Of the store that its cell writes to; empty: it names none."""
    has_ended: bool


def find_orphaned_pods(
    connection: Connection, namespace: str, labels: str, fields: str | None = None
) -> list[OrphanedPod]:
    """Return the pods with these labels whose Job is gone, less those that are being deleted; ApiError.

    `fields`: a field selector of pods.
    """
    query = {"labelSelector": labels} | ({} if fields is None else {"fieldSelector": fields})
    found = connection.read_items(f"/api/v1/namespaces/{namespace}/pods", read_orphaned_pod, query)
    pods = [pod for pod in found if pod is not None]
    if not pods:
        return []
    # A pod that has lost its owner and not its Job is taken back by the Job controller.
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    jobs = set(connection.read_items(path, lambda job: read_uid(job["metadata"]), {"labelSelector": labels}))
    return [pod for pod in pods if pod.job_uid not in jobs]


def read_orphaned_pod(pod: dict[str, Any]) -> OrphanedPod | None:
    """Return what matters of a pod that a Job controller made and nobody owns; None of any other."""
    metadata = pod["metadata"]
    labels = metadata.get("labels", {})
    if metadata.get("ownerReferences") or "deletionTimestamp" in metadata or CONTROLLER_LABEL not in labels:
        return None
    return OrphanedPod(
        name=metadata["name"],
        uid=read_uid(metadata),
        job_uid=labels[CONTROLLER_LABEL],
        run_id=labels.get(RUN_LABEL, ""),
        store_url=read_store_url(pod["spec"]),
        has_ended=pod.get("status", {}).get("phase") in ENDED,
    )


def delete_orphaned_pods(connection: Connection, namespace: str, pods: Sequence[OrphanedPod]) -> None:
    """Delete these pods, and none that has taken the name of one since; ApiError where that is refused."""
    for pod in pods:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
        try:
            connection.request(
                "delete", f"/api/v1/namespaces/{namespace}/pods/{pod.name}", body=json.dumps(body).encode()
            )
        except ApiError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):  # it is gone, or another one now
                raise


def name_pods(pods: Sequence[OrphanedPod]) -> str:
    """Return the names of the first pods, and how many more there are."""
    return join_some([pod.name for pod in pods], MAX_NAMED)
