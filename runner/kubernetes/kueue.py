"""Read the objects of Kueue that say why a suspended Job does not start.

Kueue makes a Workload of each Job that it manages, and says in the Workload's conditions what becomes of it:
https://kueue.sigs.k8s.io/docs/concepts/workload/. Its API version v1beta1 is no longer served from Kueue 0.20 on
(https://github.com/kubernetes-sigs/kueue/issues/13957); v1beta2 is served from 0.15 on
(https://github.com/kubernetes-sigs/kueue/blob/main/CHANGELOG/CHANGELOG-0.15.md).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection

GROUP = "kueue.x-k8s.io"
KNOWN_VERSIONS = ("v1beta2", "v1beta1")
"""The API versions whose fields this tool knows, in the order in which it prefers them."""
JOB_UID_LABEL = "kueue.x-k8s.io/job-uid"
"""What Kueue ties a Workload to its Job by."""
MAX_UIDS = 50
"""How many Jobs one request asks about: their ids are in its URL, which servers on the way may limit to 8 KB."""
NO_KUEUE = f"the cluster has no Kueue ({GROUP}), which would start them"
NO_WORKLOAD = "Kueue has made no Workload of the Job: does it run, and does it manage the Jobs of this namespace?"
NO_REASON = "Kueue has not said why"
_EXCEEDS = re.compile(r"maximum capacity|unavailable in ClusterQueue|doesn't match node affinity|untolerated taint")
"""What Kueue says of a flavour that can never hold the Job (pkg/scheduler/flavorassigner/flavorassigner.go)."""
_MUST_WAIT = re.compile(r"insufficient unused quota|preempt", re.IGNORECASE)
"""What it says of one that may hold the Job later."""
_LASTING_REASONS = frozenset({"Inadmissible", "Misconfigured", "Suspended", "ExceedsMaxQuota", "NoMatchingFlavor"})
"""Reasons of the condition QuotaReserved that waiting does not change: the first, and in its place the others where the
feature gate UnadmittedWorkloadsObservability (Kueue 0.19) is on; apis/kueue/v1beta2/workload_types.go."""


@dataclass(frozen=True, kw_only=True)
class QueueWait:
    """Why Kueue has not started a Job."""

    message: str
    """In Kueue's words, as far as it has any."""
    is_lasting: bool
    """Waiting does not help: somebody has to change the queue, its quota or the cells."""


class WorkloadsUnreadable(Exception):  # noqa: N818  (a degraded answer rather than an error)
    """The user may not list Workloads; the message says so."""


def find_api_version(connection: Connection) -> str | None:
    """Return the API version to use, `kueue.x-k8s.io/v1beta2` where the cluster serves it; None: it has no Kueue."""
    try:
        group = connection.get_object(f"/apis/{GROUP}")
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise
    return choose_api_version(group)


def choose_api_version(group: Mapping[str, Any]) -> str:
    """Return the API version to use of those that the discovery document of the group names."""
    served = {item["version"] for item in group["versions"]}
    for version in KNOWN_VERSIONS:
        if version in served:
            return f"{GROUP}/{version}"
    preferred: str = group["preferredVersion"]["groupVersion"]  # newer than this tool
    return preferred


def explain_queued_jobs(connection: Connection, namespace: str, job_uids: Sequence[str]) -> dict[str, QueueWait]:
    """Return why Kueue has not started the suspended Jobs, by the Job's uid; Jobs that it has admitted are left out.

    WorkloadsUnreadable if the user may not list Workloads; ApiError if the server does not answer.
    """
    version = find_api_version(connection)
    if version is None:
        return {uid: QueueWait(message=NO_KUEUE, is_lasting=True) for uid in job_uids}
    waits = {uid: QueueWait(message=NO_WORKLOAD, is_lasting=True) for uid in job_uids}
    for workload in _list_workloads(connection, f"/apis/{version}/namespaces/{namespace}/workloads", job_uids):
        uid = workload["metadata"]["labels"][JOB_UID_LABEL]
        wait = read_wait(workload)
        if wait is None:
            waits.pop(uid, None)
        else:
            waits[uid] = wait
    return waits


def read_wait(workload: Mapping[str, Any]) -> QueueWait | None:
    """Return why a Workload waits, or None if it is admitted or has finished."""
    status = workload.get("status") or {}
    conditions = {item["type"]: item for item in status.get("conditions") or ()}
    if any(conditions.get(name, {}).get("status") == "True" for name in ("Finished", "Admitted")):
        return None
    if workload["spec"].get("active") is False:
        return QueueWait(message=f"its Workload {workload['metadata']['name']} was deactivated", is_lasting=True)
    reserved = conditions.get("QuotaReserved", {})
    if reserved.get("status") == "True":
        return QueueWait(message=_describe_checks(status), is_lasting=False)
    message = str(reserved.get("message", ""))
    is_refused = bool(_EXCEEDS.search(message)) and not _MUST_WAIT.search(message)
    is_lasting = is_refused or reserved.get("reason") in _LASTING_REASONS
    return QueueWait(message=message or NO_REASON, is_lasting=is_lasting)


def describe_local_queue(connection: Connection, namespace: str, name: str) -> str:
    """Return a line about a LocalQueue: whose workloads it has, and why it is not active if it is not.

    What is not there, or may not be read, is said; ApiError if the server does not answer.
    """
    try:
        version = find_api_version(connection)
        if version is None:
            return f"queue {name}: the cluster has no Kueue ({GROUP})"
        queue = connection.get_object(f"/apis/{version}/namespaces/{namespace}/localqueues/{name}")
    except ApiError as error:
        if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            return f"queue {name}: {error.message}"
        raise
    status = queue.get("status") or {}
    counts = f"{status.get('pendingWorkloads', 0)} workloads wait, {status.get('admittedWorkloads', 0)} are admitted"
    inactive = read_inactivity(queue)
    return f"queue {name} of ClusterQueue {queue['spec']['clusterQueue']}: {inactive or counts}"


def read_inactivity(queue: Mapping[str, Any]) -> str:
    """Return why a LocalQueue or a ClusterQueue admits no workloads; empty if it does."""
    policy = queue["spec"].get("stopPolicy") or "None"
    if policy != "None":
        return f"it is stopped (stopPolicy {policy})"
    conditions = (queue.get("status") or {}).get("conditions") or ()
    active: Mapping[str, Any] = next((item for item in conditions if item["type"] == "Active"), {})
    if active.get("status") == "False":
        return f"it is not active: {active.get('message') or active.get('reason') or 'no reason given'}"
    return ""


def explain_forbidden(error: ApiError) -> str:
    """Return in words that Workloads may not be listed."""
    hint = "`benchmatrix setup --queue QUEUE --user NAME` by an administrator allows it"
    return f"why they wait is not known: {error.message}; {hint}"


def _list_workloads(connection: Connection, path: str, job_uids: Sequence[str]) -> Iterator[dict[str, Any]]:
    for begin in range(0, len(job_uids), MAX_UIDS):
        selector = f"{JOB_UID_LABEL} in ({','.join(job_uids[begin : begin + MAX_UIDS])})"
        try:
            yield from connection.list_items(path, labelSelector=selector, resourceVersion="0")  # from its cache
        except ApiError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                raise WorkloadsUnreadable(explain_forbidden(error)) from error
            raise


def _describe_checks(status: Mapping[str, Any]) -> str:
    """Return which admission checks a Workload with a quota waits for."""
    pending = [item for item in status.get("admissionChecks") or () if item.get("state") != "Ready"]
    texts = [f"{item['name']} is {item.get('state')} {item.get('message', '')}".strip() for item in pending]
    return f"it has its quota and waits for admission checks: {'; '.join(texts) or 'none is named'}"
