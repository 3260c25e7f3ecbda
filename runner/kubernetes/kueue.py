"""Read the objects of Kueue that say why a suspended Job does not start.

Kueue makes a Workload of each Job that it manages, and says in the Workload's conditions what becomes of it:
https://kueue.sigs.k8s.io/docs/concepts/workload/. Its API version v1beta1 is no longer served from Kueue 0.20 on
(https://github.com/kubernetes-sigs/kueue/issues/13957); v1beta2 is served from 0.15 on
(https://github.com/kubernetes-sigs/kueue/blob/main/CHANGELOG/CHANGELOG-0.15.md). What is read here is in both.

A Job in a queue is never given up: its quota may come back, or its queue be started again, as long as the run lasts.
"""

import math
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.failures import WARN_SECONDS
from runner.kubernetes.tracked_jobs import OngoingRun, TrackedJob

GROUP = "kueue.x-k8s.io"
JOB_UID_LABEL = "kueue.x-k8s.io/job-uid"
"""What Kueue ties a Workload to its Job by."""
MAX_UIDS = 50
"""How many Jobs one request asks about: their ids are in its URL, which servers on the way may limit to 8 KB."""
NO_KUEUE = f"the cluster has no Kueue ({GROUP}), which would start them"
NO_WORKLOAD = "Kueue has made no Workload of the Job: does it run, and does it manage the Jobs of this namespace?"
NO_REASON = "Kueue has not said why"


def find_api_version(connection: Connection) -> str | None:
    """Return the API version that the cluster prefers, such as `kueue.x-k8s.io/v1beta2`; None: it has no Kueue."""
    try:
        return str(connection.get_object(f"/apis/{GROUP}")["preferredVersion"]["groupVersion"])
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise


def explain_queued_jobs(connection: Connection, namespace: str, job_uids: Sequence[str]) -> dict[str, str]:
    """Return why Kueue has not started the suspended Jobs, by the Job's uid; Jobs that it has admitted are left out.

    Where the user may not list Workloads, that is what is said of each. ApiError if the server does not answer.
    """
    version = find_api_version(connection)
    if version is None:
        return dict.fromkeys(job_uids, NO_KUEUE)
    waits = dict.fromkeys(job_uids, NO_WORKLOAD)
    path = f"/apis/{version}/namespaces/{namespace}/workloads"
    for begin in range(0, len(job_uids), MAX_UIDS):
        selector = f"{JOB_UID_LABEL} in ({','.join(job_uids[begin : begin + MAX_UIDS])})"
        try:
            workloads = connection.list_items(path, labelSelector=selector, resourceVersion="0")  # from its cache
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            hint = "`benchmatrix setup --queue QUEUE --user NAME` by an administrator allows it"
            return dict.fromkeys(job_uids, f"why they wait is not known: {error.message}; {hint}")
        for workload in workloads:
            uid = workload["metadata"]["labels"][JOB_UID_LABEL]
            wait = read_wait(workload)
            if wait is None:
                waits.pop(uid, None)
            else:
                waits[uid] = wait
    return waits


def read_wait(workload: Mapping[str, Any]) -> str | None:
    """Return why a Workload waits, in Kueue's words as far as it has any; None if it is admitted or has finished."""
    status = workload.get("status") or {}
    conditions = {item["type"]: item for item in status.get("conditions") or ()}
    if any(conditions.get(name, {}).get("status") == "True" for name in ("Finished", "Admitted")):
        return None
    if workload["spec"].get("active") is False:
        return f"its Workload {workload['metadata']['name']} was deactivated"
    reserved = conditions.get("QuotaReserved", {})
    if reserved.get("status") == "True":
        return _describe_checks(status)
    return str(reserved.get("message", "")) or NO_REASON


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


def _describe_checks(status: Mapping[str, Any]) -> str:
    pending = [item for item in status.get("admissionChecks") or () if item.get("state") != "Ready"]
    texts = [f"{item['name']} is {item.get('state')} {item.get('message', '')}".strip() for item in pending]
    return f"it has its quota and waits for admission checks: {'; '.join(texts) or 'none is named'}"


READ_SECONDS = WARN_SECONDS
"""The Workloads of suspended Jobs are read so often: one request, which the API server answers from its cache."""
NUM_SAMPLES = 5
"""So many Jobs of a kind are asked about, the oldest: they request the same, and Kueue explains the one it tried."""
_NUMBERS = re.compile(r"\d+")

CellKind = tuple[str, int, int]
"""Pool and GPUs: what cells of a run request differs in nothing else."""


@dataclass(kw_only=True)
class QueuedJobs:
    """Watches the suspended Jobs of a session."""

    run: OngoingRun
    _waiting_since: dict[CellKind, float] = field(default_factory=dict, repr=False)
    """Since when (time.monotonic) there are suspended Jobs of a kind, and none that Kueue has started."""
    _next_request: float = math.inf

    def check(self) -> None:
        """Read the Workloads of suspended Jobs if it is time to; to be called about once a second."""
        now = time.monotonic()
        suspended: defaultdict[CellKind, list[TrackedJob]] = defaultdict(list)
        for tracked in self.run.jobs.list_unfinished():
            if tracked.state == "in-flight" and tracked.job is not None:
                cell = tracked.repeat.planned.cell
                kind = (tracked.node_kind, cell.num_gpus, cell.tenants)
                if tracked.job.is_suspended:
                    suspended[kind].append(tracked)
                else:
                    self._waiting_since[kind] = now
        self._waiting_since = {kind: self._waiting_since.get(kind, now) for kind in suspended}
        self._next_request = min(self._next_request, now + READ_SECONDS) if suspended else math.inf
        if now >= self._next_request:
            self._next_request = now + READ_SECONDS
            samples = {kind: sorted(jobs, key=_find_age)[:NUM_SAMPLES] for kind, jobs in suspended.items()}
            uids = [tracked.job.uid for jobs in samples.values() for tracked in jobs if tracked.job is not None]
            self.run.dispatcher.request(partial(self._explain, uids), partial(self._tell, samples))

    def _explain(self, job_uids: Sequence[str]) -> Mapping[str, str]:
        """Return why each Job waits, or that it is not known; on a request thread."""
        try:
            return explain_queued_jobs(self.run.connection, self.run.namespace, job_uids)
        except ApiError as error:  # what the run needs is asked for, and refused, elsewhere
            return dict.fromkeys(job_uids, f"why they wait is not known: {error.message}")

    def _tell(self, samples: Mapping[CellKind, Sequence[TrackedJob]], waits: Mapping[str, str]) -> None:
        """Warn, unless the Jobs merely wait for their turn while others of their kind run."""
        for kind, jobs in samples.items():
            # Some may have been started since.
            found = [each for each in jobs if each.job and each.job.is_suspended and each.job.uid in waits]
            if found and time.monotonic() - self._waiting_since.get(kind, math.inf) >= WARN_SECONDS:
                slug, message = found[0].repeat.planned.cell.slug, waits[found[0].job.uid if found[0].job else ""]
                words = f"in the queue, not started: {message} (waiting: {slug}, for example)"
                self.run.dispatcher.warn(words, f"queue {kind} {_NUMBERS.sub('', message)}")


def _find_age(tracked: TrackedJob) -> tuple[float, str]:
    return (tracked.job.created_at.timestamp() if tracked.job else math.inf), tracked.name
