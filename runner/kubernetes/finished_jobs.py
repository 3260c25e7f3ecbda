"""Delete the Jobs that have finished and have their record, so that a long run does not fill etcd.

Nothing relies on them: progress and resuming rest on the records in the store. The newest stay, with their pods and
logs, until their `ttlSecondsAfterFinished`; none does where a quota counts them and leaves no room for others.
"""

import json
from collections import defaultdict, deque
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.object_status import JobStatus
from runner.kubernetes.placements import PlacementTracker
from runner.kubernetes.rendering.job_name import CELL_LABEL, REPEAT_LABEL, select_run

NUM_KEPT = 1000
"""Finished Jobs that stay: with their pods about 12 MB of etcd (about 12 KB each, docs/performance.md)."""
BATCH_SIZE = 50
"""Jobs that one request deletes. It names them in its URL, at most 64 bytes each: proxies accept URLs of 4 KB."""
NUM_DELETIONS = 2
"""Requests under way that delete. Each takes a while, because the API server deletes its Jobs one by one
(`--delete-collection-workers` is 1). More of them would take the threads and the places that records and new Jobs need.
https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/"""
MAX_KEPT = 5000
"""Finished Jobs at which no more are created until some are deleted: about 60 MB of etcd."""
COMPLETE = "status.successful=1"
"""The field selector of Jobs whose pod has succeeded: an unfinished Job of the same repeat is never deleted."""


@dataclass(frozen=True, kw_only=True)
class FinishedJob:
    """A Job that has finished and whose repeat has its terminal record in the store."""

    status: JobStatus
    attempt: str | None
    """The attempt that the record is of. None: an earlier runner saw it end."""


@dataclass(kw_only=True)
class FinishedJobs:
    """Keeps the newest finished Jobs of a run, and has the others deleted, many with one request."""

    dispatcher: Dispatcher
    connection: Connection
    namespace: str
    run_id: str
    fingerprint: str
    placements: PlacementTracker
    _kept: deque[FinishedJob] = field(default_factory=deque, repr=False)
    _is_room_needed: bool = False
    """Whether none stays."""
    _num_deletions: int = 0
    """Requests under way."""
    _is_refused: bool = False
    """Whether the runner has no right to delete many Jobs at once: then they stay until their TTL is over."""

    def add(self, job: FinishedJob) -> None:
        """Keep a finished Job; have the oldest deleted when there are enough of them."""
        self._kept.append(job)
        self._delete_more()

    def make_room(self) -> None:
        """Have all of them deleted, from now on: a quota that is used up counts them."""
        self._is_room_needed = True
        self._delete_more()

    @property
    def is_behind(self) -> bool:
        """Whether Jobs finish faster than the API server deletes them, and no more should be created for now."""
        return len(self._kept) >= MAX_KEPT and not self._is_refused

    def _delete_more(self) -> None:
        while self._has_batch() and self._num_deletions < NUM_DELETIONS and not self._is_refused:
            batch = [self._kept.popleft() for _ in range(min(BATCH_SIZE, len(self._kept)))]
            placed = self.placements.placed
            known = None if placed.issuperset(job.attempt for job in batch) else frozenset(placed)
            self._num_deletions += 1
            self.dispatcher.record(partial(self._delete, batch, known), self._handle_deleted)

    def _has_batch(self) -> bool:
        return bool(self._kept) if self._is_room_needed else len(self._kept) >= NUM_KEPT + BATCH_SIZE

    def _delete(self, batch: list[FinishedJob], placed: AbstractSet[str] | None) -> bool:
        """Delete the Jobs, after the placements that they lack were written; return whether the runner may.

        `placed`: the attempts whose placement is written. None: all of these Jobs' are.
        """
        by_number: defaultdict[int, list[FinishedJob]] = defaultdict(list)
        for job in batch:
            by_number[job.status.number].append(job)
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        try:
            for number, jobs in by_number.items():
                cells = ",".join(sorted({job.status.cell_id for job in jobs}))
                run = select_run(self.run_id, fingerprint=self.fingerprint)
                labels = f"{run},{REPEAT_LABEL}={number},{CELL_LABEL} in ({cells})"
                if placed is not None:
                    self.placements.recorder.write_others(labels, placed)
                query = {"labelSelector": labels, "fieldSelector": COMPLETE, "propagationPolicy": "Background"}
                self.connection.request("deletecollection", path, query=query)
            for job in batch:
                if job.status.end == "failed":
                    self._delete_one(path, job.status)
        except ApiError as error:  # their TTL deletes them
            self.dispatcher.warn_later(f"finished Jobs are not deleted: {error.message}", "deletion of finished Jobs")
            return error.status != HTTPStatus.FORBIDDEN
        return True

    def _delete_one(self, path: str, job: JobStatus) -> None:
        """Delete exactly this Job, and not another that was created under its name since."""
        body = {"propagationPolicy": "Background", "preconditions": {"uid": job.uid}}
        try:
            self.connection.request("delete", f"{path}/{job.name}", body=json.dumps(body).encode())
        except ApiError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise

    def _handle_deleted(self, is_allowed: bool) -> None:
        self._num_deletions -= 1
        self._is_refused = not is_allowed
        self._delete_more()
