"""Cancel a run and delete its Jobs, and pods whose Job is gone; results in the store stay.

`kubectl delete job --cascade=orphan` leaves such pods, which no controller deletes, and one that runs measures on. That
the Job is gone is what the API server says: the pod has no owner any more, and no Job has the uid that the Job
controller wrote into the pod.
"""

import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pydantic import AwareDatetime

from bench.errors import UserError
from bench.schema import Document
from bench.store import Store, cancelled_key, cancelled_prefix, confirmation_run_id
from collector.units import join_some
from runner.kubernetes.connection import Connection, delete_exactly
from runner.kubernetes.names import POOL_LABEL, RUN_LABEL, select_run
from runner.kubernetes.objects import JobStatus, read_remaining_job
from runner.kubernetes.setup import CANCEL_PERMISSIONS, check_permissions
from runner.kubernetes.tracked_jobs import Dispatcher
from runner.matrix import read_user_name
from runner.runs import is_stored, read_run

# Leaves marks of a run's cancellation in the store, and watches for them.
#
# The mark is there before a Job is deleted. So a runner looks for one where it finds a Job deleted, and creates none
# until it has the answer. Clocks are not compared: the marks that exist when a runner starts are of earlier
# cancellations, any other one is meant for it.


class RunCancelled(Exception):  # noqa: N818  (an answer rather than an error)
    """Is raised in the runner after somebody cancelled its run with `benchmatrix cancel`."""


class Cancellation(Document):
    """The content of a mark, for people: a runner only checks whether there is one."""

    run_id: str
    cancelled_at: AwareDatetime
    hostname: str
    user: str


def leave_mark(store: Store, run_id: str) -> None:
    document = Cancellation(
        run_id=run_id, cancelled_at=datetime.now(UTC), hostname=socket.gethostname(), user=read_user_name()
    )
    store.put_with_short_retries(cancelled_key(run_id, uuid4().hex), document.to_json())  # somebody is waiting


def list_marks(store: Store, run_id: str) -> frozenset[str]:
    return frozenset(store.list_keys(cancelled_prefix(run_id)))


@dataclass(kw_only=True)
class CancellationWatcher:
    """Checks for marks that did not exist when the runner started, with one look at them for all checks that wait."""

    dispatcher: Dispatcher
    store: Store
    run_ids: tuple[str, ...]
    """The run, and others whose cancellation ends it too: of a confirmation, its night."""
    known: frozenset[str]
    """The marks that existed at the start."""
    is_checking: bool = False
    """Whether a request is under way; no Job is to be created until it is answered."""
    _is_asked_again: bool = False

    def check(self) -> None:
        """Look for a mark; raise RunCancelled on the main thread if there is one."""
        if self.is_checking:  # that look may miss a mark which has just been left
            self._is_asked_again = True
            return
        self.is_checking = True
        self.dispatcher.record(self._list_marks, self._handle_marks)

    def _list_marks(self) -> frozenset[str]:
        return frozenset[str]().union(*(list_marks(self.store, run_id) for run_id in self.run_ids)) - self.known

    def _handle_marks(self, marks: frozenset[str]) -> None:
        if marks:
            raise RunCancelled
        is_asked_again, self.is_checking, self._is_asked_again = self._is_asked_again, False, False
        if is_asked_again:
            self.check()


NUM_THREADS = 16
MAX_ROUNDS = 30
"""How often Jobs are listed again that a runner submitted in between: it stops when it has seen one deleted."""
ROUND_SECONDS = 1.0
NOT_COMPLETE = "status.successful=0"
"""The field selector of Jobs none of whose pods has succeeded: unfinished or failed ones. Kubernetes has no other for
the status of a Job (SelectableFields in pkg/registry/batch/job/strategy.go of Kubernetes)."""
CONTROLLER_LABEL = "batch.kubernetes.io/controller-uid"
"""The uid of the Job that a pod was made for (https://kubernetes.io/docs/reference/labels-annotations-taints/)."""
MAX_NAMED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class OrphanedPod:
    """A pod of a cell whose Job is gone."""

    name: str
    uid: str
    job_uid: str
    run_id: str
    has_ended: bool


@dataclass(frozen=True, kw_only=True)
class Deleted:
    """What of a run was deleted, or would be."""

    run_id: str
    num_deleted: int
    """Jobs."""
    num_left: int = 0
    """Finished Jobs that stay."""
    num_pods: int = 0
    """Pods whose Job was gone."""


@dataclass(frozen=True, kw_only=True)
class JobCleaner:
    """Cancels and deletes the Jobs of one run."""

    connection: Connection
    namespace: str
    run_id: str
    store: Store
    """Where its results are: Jobs with results elsewhere are another run's of the same name."""
    pool: str | None = None
    """The pool whose Jobs are meant. None: those of all pools."""

    def cancel(self, *, is_dry_run: bool = False) -> list[Deleted]:
        """Leave a mark for the run's runners, and delete the unfinished Jobs and their pods.

        If the run is a night whose suspicions are being measured again, the same is done with its confirmation.
        UserError if the API server or the store refuses, or a runner still submits Jobs.
        """
        with self.connection.explain_refusals():
            if is_dry_run:
                jobs = self._list_jobs()
                num_unfinished = sum(job.end is None for job in jobs)
                return [Deleted(run_id=self.run_id, num_deleted=num_unfinished, num_left=len(jobs) - num_unfinished)]
            # A mark must not stop the runner of a run whose Jobs cannot be deleted.
            check_permissions(self.connection, self.namespace, CANCEL_PERMISSIONS, "`cancel`")
            leave_mark(self.store, self.run_id)
            num_deleted = self.end_unfinished()
            done = [Deleted(run_id=self.run_id, num_deleted=num_deleted, num_left=len(self._list_jobs()))]
            run = read_run(self.store, self.run_id)
            again = None if run is None else confirmation_run_id(run.matrix, self.run_id)
            if again is not None and is_stored(self.store, again):
                done += replace(self, run_id=again).cancel()
            return done

    def end_unfinished(self) -> int:
        """Delete the unfinished Jobs and their pods; return how many they were. UserError if the API server refuses."""
        num_deleted = 0
        with self.connection.explain_refusals():
            for _ in range(MAX_ROUNDS):
                unfinished = [job for job in self._list_jobs(fieldSelector=NOT_COMPLETE) if job.end is None]
                if not unfinished:
                    return num_deleted
                self._delete("/apis/batch/v1", "jobs", unfinished)
                num_deleted += len(unfinished)
                time.sleep(ROUND_SECONDS)
        raise UserError(
            f"run {self.run_id}: its runner still submits Jobs, {num_deleted} were deleted so far; end the runner with "
            "Ctrl-C, then give this command again"
        )

    def clean(self, *, force: bool, is_dry_run: bool = False) -> Deleted:
        """Delete all Jobs of the run, and its pods whose Job is gone.

        Raise UserError if some are unfinished, unless `force` cancels them first.
        """
        with self.connection.explain_refusals():
            labels = select_run(self.run_id, store_url=self.store.url)
            jobs, pods = self._list_jobs(), find_orphaned_pods(self.connection, self.namespace, labels)
            num_unfinished = sum(job.end is None for job in jobs)
            if num_unfinished and not force:
                raise UserError(
                    f"run {self.run_id}: {num_unfinished} of its {len(jobs)} Jobs are not finished; wait for them, "
                    f"end them with `benchmatrix cancel {self.run_id}`, or add --force"
                )
            if not force and (running := [pod for pod in pods if not pod.has_ended]):
                raise UserError(
                    f"run {self.run_id}: pods whose Job is gone run on: {name_pods(running)}; wait for them, or add "
                    "--force"
                )
            num_cancelled = 0
            if num_unfinished and not is_dry_run:
                num_cancelled = self.cancel()[0].num_deleted
                jobs = self._list_jobs()
            if not is_dry_run:
                self._delete("/apis/batch/v1", "jobs", jobs)
                self._delete("/api/v1", "pods", pods)
            return Deleted(run_id=self.run_id, num_deleted=num_cancelled + len(jobs), num_pods=len(pods))

    def _list_jobs(self, **query: str) -> list[JobStatus]:
        """Return the Jobs of the run, except those that are being deleted."""
        pool = f",{POOL_LABEL}={self.pool}" if self.pool else ""
        query["labelSelector"] = f"{select_run(self.run_id, store_url=self.store.url)}{pool}"
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        return [job for job in self.connection.read_items(path, read_remaining_job, query) if job is not None]

    def _delete(self, group: str, kind: str, objects: Sequence[JobStatus] | Sequence[OrphanedPod]) -> None:
        def delete(found: JobStatus | OrphanedPod) -> None:
            path = f"{group}/namespaces/{self.namespace}/{kind}/{found.name}"
            delete_exactly(self.connection, path, found.uid)

        with ThreadPoolExecutor(NUM_THREADS) as threads:
            list(threads.map(delete, objects))  # after an error or Ctrl-C, those that have not begun are dropped


def find_orphaned_pods(connection: Connection, namespace: str, labels: str) -> list[OrphanedPod]:
    """Return the pods with these labels whose Job is gone, less those that are being deleted; ApiError."""
    query = {"labelSelector": labels}
    found = connection.read_items(f"/api/v1/namespaces/{namespace}/pods", read_orphaned_pod, query)
    pods = [pod for pod in found if pod is not None]
    if not pods:
        return []
    # A pod that has lost its owner and not its Job is taken back by the Job controller.
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    jobs = set(connection.read_items(path, lambda job: job["metadata"]["uid"], query))
    return [pod for pod in pods if pod.job_uid not in jobs]


def read_orphaned_pod(pod: dict[str, Any]) -> OrphanedPod | None:
    """Return what matters of a pod that a Job controller made and nobody owns; None of any other."""
    metadata = pod["metadata"]
    labels = metadata.get("labels", {})
    if metadata.get("ownerReferences") or "deletionTimestamp" in metadata or CONTROLLER_LABEL not in labels:
        return None
    return OrphanedPod(
        name=metadata["name"],
        uid=metadata["uid"],
        job_uid=labels[CONTROLLER_LABEL],
        run_id=labels.get(RUN_LABEL, ""),
        has_ended=pod.get("status", {}).get("phase") in ("Succeeded", "Failed"),
    )


def name_pods(pods: Sequence[OrphanedPod]) -> str:
    return join_some([pod.name for pod in pods], MAX_NAMED)
