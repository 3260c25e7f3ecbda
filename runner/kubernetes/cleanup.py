"""Cancelling a run and deleting its Jobs; results in the store stay."""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus

from bench.errors import UserError
from bench.store import Store
from runner.kubernetes.api_errors import ApiError, to_user_error
from runner.kubernetes.cancellation import leave_mark
from runner.kubernetes.connection import Connection
from runner.kubernetes.object_status import CANCELLED, JobStatus, read_job_status
from runner.kubernetes.rendering.job_name import POOL_LABEL, select_run

NUM_THREADS = 16
MAX_ROUNDS = 30
"""How often Jobs are listed again that a runner submitted in between: it stops at the first marked one that it sees."""
ROUND_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many Jobs a command deleted and how many it left."""

    num_deleted: int
    num_left: int
    """Finished ones."""


@dataclass(frozen=True, kw_only=True)
class JobCleaner:
    """Cancels and deletes the Jobs of one run."""

    connection: Connection
    namespace: str
    run_id: str
    store: Store | None = None
    """Where a cancellation puts its mark, for runners that do not see their Jobs at present. None: nowhere."""
    pool: str | None = None
    """The pool whose Jobs are meant. None: those of all pools."""

    def cancel(self) -> Counts:
        """Mark the unfinished Jobs, so that a runner that follows them stops, and delete them and their pods.

        UserError if the API server or the store refuses, or a runner still submits Jobs.
        """
        try:
            return self._cancel()
        except ApiError as error:
            raise to_user_error(error, self.connection.context) from error

    def end_unfinished(self) -> int:
        """Delete the unfinished Jobs and their pods, once the runner has stopped; return how many they were.

        Of all pools, unless `pool` names one. UserError if the API server refuses.
        """
        try:
            return self._delete_unfinished(with_mark=False).num_deleted
        except ApiError as error:
            raise to_user_error(error, self.connection.context) from error

    def clean(self, *, force: bool) -> Counts:
        """Delete all Jobs of the run. UserError if some are unfinished and not to be cancelled by `force`."""
        try:
            jobs = self._list()
            unfinished = [job for job in jobs if job.end is None]
            if unfinished and not force:
                raise UserError(
                    f"run {self.run_id}: {len(unfinished)} of its {len(jobs)} Jobs are not finished; wait for them, "
                    f"end them with `benchmatrix cancel {self.run_id}`, or add --force"
                )
            num_cancelled = self._cancel().num_deleted if unfinished else 0
            num_finished = len(self._list())
            self.connection.request(
                "deletecollection", self._path, query=self._select | {"propagationPolicy": "Background"}
            )
        except ApiError as error:
            raise to_user_error(error, self.connection.context) from error
        return Counts(num_deleted=num_cancelled + num_finished, num_left=0)

    @property
    def _path(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def _select(self) -> dict[str, str]:
        pool = f",{POOL_LABEL}={self.pool}" if self.pool else ""
        return {"labelSelector": f"{select_run(self.run_id)}{pool}"}

    def _list(self) -> list[JobStatus]:
        """Return the Jobs of the run, except those that are being deleted."""
        found = self.connection.list_items(self._path, **self._select)
        return [read_job_status(job) for job in found if "deletionTimestamp" not in job["metadata"]]

    def _cancel(self) -> Counts:
        if self.store is not None:
            self._check_access()
            leave_mark(self.store, self.run_id)  # before a Job is deleted: a runner that misses one finds the mark
        return self._delete_unfinished(with_mark=True)

    def _delete_unfinished(self, *, with_mark: bool) -> Counts:
        num_deleted = 0
        for _ in range(MAX_ROUNDS):
            jobs = self._list()
            unfinished = [job for job in jobs if job.end is None]
            if not unfinished:
                return Counts(num_deleted=num_deleted, num_left=len(jobs))
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
        """Raise ApiError if the Jobs cannot be listed: a mark must not stop the runner of a run that continues."""
        self.connection.request("list", self._path, query=self._select | {"limit": "1"})

    def _for_each(self, jobs: Sequence[JobStatus], act: Callable[[JobStatus], None]) -> None:
        with ThreadPoolExecutor(NUM_THREADS, "cancel") as pool:
            for future in [pool.submit(act, job) for job in jobs]:
                future.result()

    def _mark(self, job: JobStatus) -> None:
        body = json.dumps({"metadata": {"annotations": {CANCELLED: "true"}}}).encode()
        self._ignoring_deleted("patch", job, {}, body)

    def _delete(self, job: JobStatus) -> None:
        self._ignoring_deleted("delete", job, {"propagationPolicy": "Background"}, None)

    def _ignoring_deleted(self, verb: str, job: JobStatus, query: dict[str, str], body: bytes | None) -> None:
        try:
            self.connection.request(
                verb, f"{self._path}/{job.name}", query=query, body=body, content_type="application/merge-patch+json"
            )
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
