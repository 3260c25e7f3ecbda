"""Cancel a run and delete its Jobs, with the pods that `kubectl delete job --cascade=orphan` left; results stay."""

import json
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from bench.errors import UserError
from bench.store import Store, cancelled_key, cancelled_prefix, confirmation_run_id
from runner.kubernetes.connection import Connection, delete_exactly
from runner.kubernetes.names import POOL_LABEL, make_path, select_run
from runner.kubernetes.objects import END_PHASES, JobStatus, PodStatus, read_pod_status, read_remaining_job
from runner.kubernetes.setup import CANCEL_PERMISSIONS, check_permissions
from runner.kubernetes.tracked_jobs import Dispatcher
from runner.runs import is_stored, read_run
from runner.sources import read_user_name

# The mark of a cancellation is there before a Job is deleted. So a runner looks for one where it finds a Job deleted,
# and creates none until it has the answer. Clocks are not compared: the marks that exist when a runner starts are of
# earlier cancellations, any other one is meant for it.


class RunCancelled(Exception):  # noqa: N818  (an answer rather than an error)
    """Is raised in the runner after somebody cancelled its run with `benchmatrix cancel`."""


def leave_mark(store: Store, run_id: str) -> None:
    """Leave a mark. What it says is for people: a runner only checks whether there is one."""
    said = {"run_id": run_id, "cancelled_at": str(datetime.now(UTC)), "hostname": socket.gethostname()}
    mark = json.dumps(said | {"user": read_user_name()}).encode()
    store.put(cancelled_key(run_id, uuid4().hex), mark, retry_seconds=0)  # somebody is waiting


def list_marks(store: Store, run_id: str) -> frozenset[str]:
    return frozenset(store.list_keys(cancelled_prefix(run_id)))


@dataclass(kw_only=True)
class CancellationWatcher:
    """Raises RunCancelled on the main thread where there is a mark that did not exist when the runner started."""

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
        if self.is_checking:  # that look may miss a mark which has just been left
            self._is_asked_again = True
            return
        self.is_checking = True
        ids, store = self.run_ids, self.store
        self.dispatcher.record(lambda: {m for run_id in ids for m in list_marks(store, run_id)}, self._handle_marks)

    def _handle_marks(self, marks: set[str]) -> None:
        if marks - self.known:
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


@dataclass(frozen=True, kw_only=True)
class Deleted:
    """How many unfinished Jobs of a run were deleted, or would be, and how many finished ones stay."""

    run_id: str
    num_deleted: int
    num_left: int


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
        """Delete the unfinished Jobs; return how many there were. UserError if a runner goes on to submit Jobs."""
        num_deleted = 0
        with self.connection.explain_refusals():
            for _ in range(MAX_ROUNDS):
                unfinished = [job for job in self._list_jobs(fieldSelector=NOT_COMPLETE) if job.end is None]
                if not unfinished:
                    return num_deleted
                self._delete("jobs", unfinished)
                num_deleted += len(unfinished)
                time.sleep(ROUND_SECONDS)
        raise UserError(
            f"run {self.run_id}: its runner still submits Jobs, {num_deleted} were deleted so far; end the runner with "
            "Ctrl-C, then give this command again"
        )

    def clean(self, *, force: bool, is_dry_run: bool = False) -> int:
        """Delete all Jobs of the run, and its pods without a Job; return how many Jobs there were.

        Raise UserError if some are unfinished, unless `force` cancels them first.
        """
        with self.connection.explain_refusals():
            path = make_path(self.namespace, "pods")
            query = {"labelSelector": select_run(self.run_id, store_url=self.store.url)}
            pods = [pod for pod in self.connection.read_items(path, read_orphaned_pod, query) if pod is not None]
            jobs = self._list_jobs()
            unfinished = [job.name for job in jobs if job.end is None]
            unfinished += [pod.name for pod in pods if pod.phase not in END_PHASES]
            if unfinished and not force:
                raise UserError(
                    f"run {self.run_id}: {len(unfinished)} of its {len(jobs) + len(pods)} Jobs, and pods without a "
                    f"Job, are not finished, such as {unfinished[0]}; wait for them, end the Jobs with `benchmatrix "
                    f"cancel {self.run_id}`, or add --force"
                )
            num_cancelled = 0
            if not is_dry_run:
                if unfinished:
                    num_cancelled = self.cancel()[0].num_deleted
                    jobs = self._list_jobs()
                self._delete("jobs", jobs)
                self._delete("pods", pods)
            return num_cancelled + len(jobs)

    def _list_jobs(self, **query: str) -> list[JobStatus]:
        pool = f",{POOL_LABEL}={self.pool}" if self.pool else ""
        query["labelSelector"] = f"{select_run(self.run_id, store_url=self.store.url)}{pool}"
        found = self.connection.read_items(make_path(self.namespace, "jobs"), read_remaining_job, query)
        return [job for job in found if job is not None]

    def _delete(self, kind: str, objects: Sequence[JobStatus] | Sequence[PodStatus]) -> None:
        def delete(found: JobStatus | PodStatus) -> None:
            delete_exactly(self.connection, f"{make_path(self.namespace, kind)}/{found.name}", found.uid)

        with ThreadPoolExecutor(NUM_THREADS) as threads:
            list(threads.map(delete, objects))  # after an error or Ctrl-C, those that have not begun are dropped


def read_orphaned_pod(pod: dict[str, Any]) -> PodStatus | None:
    """Return what matters of a pod that nobody owns, as one of a Job that was deleted without it; None of any other."""
    metadata = pod["metadata"]
    return None if metadata.get("ownerReferences") or "deletionTimestamp" in metadata else read_pod_status(pod)
