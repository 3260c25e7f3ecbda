"""Cancel a run and delete its Jobs; results in the store stay."""

import json
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any

from bench.errors import UserError
from bench.store import Store
from runner.kubernetes.access_reviews import check_permissions
from runner.kubernetes.api_errors import ApiError, to_user_error
from runner.kubernetes.cancellation import (
    UNSIGNED,
    find_confirmation,
    leave_mark_that_counts,
    leave_mark_where_jobs_write,
)
from runner.kubernetes.connection import Connection
from runner.kubernetes.fingerprint import strip_store_url
from runner.kubernetes.foreign_jobs import select_own
from runner.kubernetes.object_status import CANCELLED, JobStatus, read_remaining_job
from runner.kubernetes.orphaned_pods import OrphanedPod, delete_orphaned_pods, find_orphaned_pods, name_pods
from runner.kubernetes.permissions import CANCEL_PERMISSIONS
from runner.kubernetes.rendering.job_name import POOL_LABEL, select_run
from runner.kubernetes.request_threads import RequestThreads

NUM_THREADS = 16
MAX_ROUNDS = 30
"""How often Jobs are listed again that a runner submitted in between: it stops at the first marked one that it sees."""
ROUND_SECONDS = 1.0
UID_CHANGED = "metadata.uid: Invalid value"
"""What the API server says of a patch for another object than the one that has the name
(ValidateObjectMetaAccessorUpdate in pkg/api/validation/objectmeta.go of k8s.io/apimachinery)."""
NOT_COMPLETE = "status.successful=0"
"""The field selector of Jobs none of whose pods has succeeded: unfinished or failed ones. Kubernetes has no other for
the status of a Job (SelectableFields in pkg/registry/batch/job/strategy.go of Kubernetes)."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many Jobs a command deleted and how many it left."""

    num_deleted: int
    num_left: int
    """Finished ones."""
    num_pods: int = 0
    """Pods whose Job was gone: deleted, or to be deleted."""
    num_running_pods: int = 0
    """Those of them that had not ended."""
    pods_left: str = ""
    """Why pods whose Job is gone are left, or are not known; empty: none is."""
    unmarked_reason: str = ""
    """Why a cancellation could leave no mark in the store; empty: it has left one."""
    confirmation: "tuple[str, Counts] | None" = None
    """The id of the run that measures again what was suspected in this one, and the counts of its cancellation."""

    @property
    def remedy(self) -> str:
        """The option with which the same command leaves a mark."""
        return "--sign FILE, a key that the runner trusts" if self.unmarked_reason == UNSIGNED else "--store URL"


@dataclass(frozen=True, kw_only=True)
class JobCleaner:
    """Cancels and deletes the Jobs of one run."""

    connection: Connection
    namespace: str
    run_id: str
    store: Store | None = None
    """Where the run's results are, and a cancellation puts its mark for runners that do not see their Jobs at present.
    Jobs with results elsewhere are another run's of the same name. None: the one that the Jobs name."""
    pool: str | None = None
    """The pool whose Jobs are meant. None: those of all pools."""
    open_store: Callable[[str], Store] = Store.open
    """Opens the store that the Jobs name."""

    def cancel(self) -> Counts:
        """Mark the unfinished Jobs, so that a runner that follows them stops, and delete them and their pods.

        If the run is a night whose suspicions are being measured again, the same is done with its confirmation.
        UserError if the API server or the store refuses, a runner still submits Jobs, or nothing was done that a runner
        would see: no mark, and no unfinished Job.
        """
        try:
            counts, store = self._cancel()
            again = None if store is None else find_confirmation(store, self.run_id)
            if again is None:
                return counts
            return replace(counts, confirmation=(again, replace(self, run_id=again, store=store)._cancel()[0]))
        except ApiError as error:
            raise to_user_error(error, self.connection.context) from error

    def preview(self) -> Counts:
        """Return which Jobs a cancellation deletes and which it leaves, and delete none."""
        try:
            jobs = self._list()
        except ApiError as error:
            raise to_user_error(error, self.connection.context) from error
        num_unfinished = sum(job.end is None for job in jobs)
        return Counts(num_deleted=num_unfinished, num_left=len(jobs) - num_unfinished)

    def preview_cleaning(self) -> Counts:
        """Return what `clean` would delete, and delete nothing: the Jobs as `preview` does, and orphaned pods."""
        pods, pods_left = self._find_orphaned_pods()
        num_running = sum(not pod.has_ended for pod in pods)
        return replace(self.preview(), num_pods=len(pods), num_running_pods=num_running, pods_left=pods_left)

    def end_unfinished(self) -> int:
        """Delete the unfinished Jobs and their pods, once the runner has stopped; return how many they were.

        Of all pools, unless `pool` names one. UserError if the API server refuses.
        """
        try:
            return self._delete_unfinished(with_mark=False).num_deleted
        except ApiError as error:
            raise to_user_error(error, self.connection.context) from error

    def clean(self, *, force: bool) -> Counts:
        """Delete all Jobs of the run, and its pods whose Job is gone.

        Raise UserError if some are unfinished, unless `force` cancels them.
        """
        pods, pods_left = self._find_orphaned_pods()
        try:
            jobs = self._list()
            unfinished = [job for job in jobs if job.end is None]
            if not force:
                self._refuse_unfinished(jobs, pods)
            num_cancelled = self._cancel()[0].num_deleted if unfinished else 0
            finished = self._list() if unfinished else jobs
            self._for_each(finished, self._delete)
        except ApiError as error:
            raise to_user_error(error, self.connection.context) from error
        counts = Counts(num_deleted=num_cancelled + len(finished), num_left=0, pods_left=pods_left)
        return self._delete_pods(pods, counts)

    def _refuse_unfinished(self, jobs: Sequence[JobStatus], pods: Sequence[OrphanedPod]) -> None:
        num_unfinished = sum(job.end is None for job in jobs)
        if num_unfinished:
            raise UserError(
                f"run {self.run_id}: {num_unfinished} of its {len(jobs)} Jobs are not finished; wait for them, "
                f"end them with `benchmatrix cancel {self.run_id}`, or add --force"
            )
        running = [pod for pod in pods if not pod.has_ended]
        if running:
            raise UserError(
                f"run {self.run_id}: pods whose Job is gone run on: {name_pods(running)}; wait for them, or add --force"
            )

    def _find_orphaned_pods(self) -> tuple[list[OrphanedPod], str]:
        """Return the pods of the run whose Job is gone, and why they are not known; UserError as `_list`."""
        try:
            found = find_orphaned_pods(self.connection, self.namespace, select_run(self.run_id))
            jobs = self._list() if found and self.store is None else []
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise to_user_error(error, self.connection.context) from error
            return [], f"whether pods are left whose Job is gone is not known: {error.message}"
        url = None if self.store is None else self.store.url
        both: list[JobStatus | OrphanedPod] = [*jobs, *found]
        select_own(both, url, self.namespace, self.run_id)  # which run is meant must be clear
        return select_own(found, url, self.namespace, self.run_id), ""

    def _delete_pods(self, pods: Sequence[OrphanedPod], counts: Counts) -> Counts:
        """Delete the pods; return the counts with them, or with the reason why the user may not."""
        try:
            delete_orphaned_pods(self.connection, self.namespace, pods)
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise to_user_error(error, self.connection.context) from error
            return replace(counts, pods_left=f"pods whose Job is gone are left: {name_pods(pods)}: {error.message}")
        return replace(counts, num_pods=len(pods), num_running_pods=sum(not pod.has_ended for pod in pods))

    @property
    def _path(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def _select(self) -> dict[str, str]:
        pool = f",{POOL_LABEL}={self.pool}" if self.pool else ""
        return {"labelSelector": f"{select_run(self.run_id)}{pool}"}

    def _list(self, **query: str) -> list[JobStatus]:
        """Return the Jobs of the run, except those that are being deleted. UserError if it is not clear which run."""
        found = self.connection.read_items(self._path, read_remaining_job, self._select | query)
        url = None if self.store is None else self.store.url
        return select_own([job for job in found if job is not None], url, self.namespace, self.run_id)

    def _cancel(self) -> tuple[Counts, Store | None]:
        """Cancel this run alone; return what was done, and the store that has the mark."""
        store = self.store
        if store is None:
            jobs = self._list()  # nothing is deleted while it is not clear which run is meant
            urls = {strip_store_url(job.store_url) for job in jobs if job.store_url}
            store, unmarked_reason = leave_mark_where_jobs_write(urls, self.run_id, self.open_store)
        else:  # before a Job is deleted: a runner that misses one finds the mark
            self._check_access()
            unmarked_reason = leave_mark_that_counts(store, self.run_id)
        counts = replace(self._delete_unfinished(with_mark=True), unmarked_reason=unmarked_reason)
        if unmarked_reason and not counts.num_deleted:
            raise UserError(
                f"run {self.run_id}: it has no unfinished Job in namespace {self.namespace}, and {unmarked_reason}: "
                "if its runner goes on (a cell in a pause has no Job), it was not told; give this command again with "
                f"{counts.remedy}"
            )
        return counts, store

    def _delete_unfinished(self, *, with_mark: bool) -> Counts:
        num_deleted = 0
        for _ in range(MAX_ROUNDS):
            unfinished = [job for job in self._list(fieldSelector=NOT_COMPLETE) if job.end is None]
            if not unfinished:
                return Counts(num_deleted=num_deleted, num_left=len(self._list()))
            if with_mark:  # all before the first is deleted: a runner would create an unmarked one again
                self._for_each(unfinished, self._mark)
            self._for_each(unfinished, self._delete)
            num_deleted += len(unfinished)
            time.sleep(ROUND_SECONDS)
        raise UserError(
            f"run {self.run_id}: its runner still submits Jobs, {num_deleted} were deleted so far; end the runner "
            "with Ctrl-C, then give this command again"
        )

    def _check_access(self) -> None:
        """Raise UserError if the Jobs cannot be deleted: a mark must not stop the runner of a run that continues.

        ApiError if they cannot be listed.
        """
        check_permissions(self.connection, self.namespace, CANCEL_PERMISSIONS, "`cancel`")
        self.connection.request("list", self._path, query=self._select | {"limit": "1"})

    def _for_each(self, jobs: Sequence[JobStatus], act: Callable[[JobStatus], None]) -> None:
        """Act on the Jobs, NUM_THREADS at a time. At Ctrl-C, requests under way are not waited for."""
        errors = queue.SimpleQueue[Exception | None]()
        with RequestThreads(NUM_THREADS, "cancel") as threads:
            for job in jobs:
                threads.submit(partial(_report, act, job, errors))
            for error in [errors.get() for _ in jobs]:
                if error is not None:
                    raise error

    def _mark(self, job: JobStatus) -> None:
        body = {"metadata": {"uid": job.uid, "annotations": {CANCELLED: "true"}}}
        self._change("patch", job, body, "application/merge-patch+json")

    def _delete(self, job: JobStatus) -> None:
        body = {"propagationPolicy": "Background", "preconditions": {"uid": job.uid}}
        self._change("delete", job, body, "application/json")

    def _change(self, verb: str, job: JobStatus, body: Mapping[str, Any], content_type: str) -> None:
        """Change exactly this Job, which was listed and looked at; nothing where it is gone, or another has its name.

        Labels name more: those of a Job that somebody copied, with results elsewhere, are alike.
        """
        try:
            self.connection.request(
                verb, f"{self._path}/{job.name}", body=json.dumps(body).encode(), content_type=content_type
            )
        except ApiError as error:
            is_another = error.status == HTTPStatus.CONFLICT or UID_CHANGED in error.message
            if error.status != HTTPStatus.NOT_FOUND and not is_another:
                raise


def _report(act: Callable[[JobStatus], None], job: JobStatus, errors: "queue.SimpleQueue[Exception | None]") -> None:
    try:
        act(job)
    except Exception as error:  # noqa: BLE001  (raised in the thread that waits)
        errors.put(error)
    else:
        errors.put(None)
