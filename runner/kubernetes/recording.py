"""Find or write the terminal record of a repeat whose Job has finished, is missing or is given up."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from bench.errors import EXIT_RESULT_IN_LOG, UserError
from bench.schema import Failure, InvalidDocumentError, Result, read_result, read_time_of_day
from bench.store import (
    MAX_DOCUMENT_BYTES,
    KeyMissing,
    ResultKey,
    StoreUnreachable,
    UnreadableObject,
    parse_result_key,
    result_key,
    results_prefix,
)
from bench.worker.delivery import find_marked_record
from runner.kubernetes.connection import UNREACHABLE, ApiError, delete_exactly
from runner.kubernetes.failures import (
    JOB_NAME_LABEL,
    STATUSES,
    choose_decisive_pod,
    explain_job,
    has_only_waited,
    judge_job,
    read_reasons,
)
from runner.kubernetes.names import CONTAINER
from runner.kubernetes.objects import JobStatus, PodStatus, read_pod_status
from runner.kubernetes.tracked_jobs import OngoingRun, TrackedJob

LOG_LINES = 20
MAX_LOG_BYTES = 2 * MAX_DOCUMENT_BYTES
"""A record in a log is packed and in Base64, which makes it a third longer where it cannot be packed."""
LOG_PATIENCE_SECONDS = 60.0
"""How long requests for a log are repeated that its node does not answer: the node may be gone for good."""


@dataclass(frozen=True, kw_only=True)
class EndedFromOutside:
    """A Job that failed for a reason that is not the cell's: the repeat is to be measured again."""

    pods: tuple[PodStatus, ...]
    is_node_fault: bool
    """Its node was at fault; otherwise its pod was taken down in a way that the Job's rules do not see."""


@dataclass(kw_only=True)
class ResultRecorder:
    """Uses store and cluster to see that every repeat has its record; its methods block, so call them in threads."""

    run: OngoingRun
    _has_read: bool = False
    """Whether a record of the run was read."""

    def find_record(self, tracked: TrackedJob) -> Result | None:
        """Return the newest record of this retry round; None: the store has none that can be read.

        Raise UserError where it has one of another version of this tool, and none of the run was read before: then the
        images are of that version, and no record of the run will be readable.
        """
        found = filter(None, map(self._try_to_read, self._list_keys(tracked)))
        return max(found, key=lambda result: result.finished_at, default=None)

    def record_finished(self, tracked: TrackedJob, job: JobStatus) -> Result | EndedFromOutside | None:
        """Return the record of a repeat whose Job has finished; write it if there is none.

        It is not written if the reason is not the cell's: the repeat is to be measured again. None if the Job waited
        for a node until its deadline: that says nothing of the cell, so the Job is deleted.
        """
        found = self.find_record(tracked)
        if found is not None:
            return found
        pods = list(tracked.pods.values())
        if not any(pod.exit_code is not None and not pod.disruption for pod in pods):
            pods = self._read_pods(tracked) or pods  # the informer may lag
        logged = self._take_from_log(tracked, pods)
        if logged is not None:
            return logged
        if has_only_waited(job, pods, tracked.repeat.planned.timeout_seconds):
            self.delete_job(tracked.name)
            return None
        decisive = choose_decisive_pod(pods)
        if (verdict := judge_job(job, decisive)) is not None:
            return EndedFromOutside(pods=tuple(pods), is_node_fault=verdict.node_fault)
        problem = ""
        if decisive is not None and not decisive.has_run and decisive.node:
            problem = read_reasons(self.run.connection, self.run.namespace).get(decisive.uid, "")
        failure = explain_job(job, pods, self.run.store.url, problem)
        return self.record_failure(tracked, failure, job, pods)

    def end(self, tracked: TrackedJob, failure: Failure | None) -> Result | None:
        """Delete a Job whose pod does not start; return the record of its repeat, or else that of `failure` if any."""
        self.delete_job(tracked.name)
        found = self.find_record(tracked)
        if found is not None or failure is None:
            return found
        return self.record_failure(tracked, failure, tracked.job, list(tracked.pods.values()))

    def delete_job(self, name: str, uid: str | None = None) -> None:
        delete_exactly(self.run.connection, f"{self.run.path('jobs')}/{name}", uid)

    def _list_keys(self, tracked: TrackedJob) -> list[str]:
        """Return the keys of the repeat's records, less those of earlier retry rounds."""
        prefix, keys = f"{results_prefix(tracked.key.run_id)}{tracked.key.cell_id}", []
        for key in self.run.store.list_keys(prefix):
            parts = parse_result_key(key)
            if parts is not None and parts.repeat == tracked.key.number and key not in tracked.earlier:
                keys.append(key)
        return keys

    def _try_to_read(self, key: str) -> Result | None:
        """Return a record; None if it does not count: that its cell damaged it is no reason to end the run."""
        try:
            data = self.run.store.get(key)
        except (KeyMissing, UnreadableObject):
            return None
        try:
            result = read_result(data)
        except InvalidDocumentError as error:
            if not self._has_read and not str(error).startswith("no JSON"):  # no cell that went wrong writes that
                raise UserError(
                    f"{self.run.store.url}/{key}: the record cannot be read ({error}); do the images have "
                    "the version of this tool?"
                ) from error
            return None
        self._has_read = True
        return result if ResultKey.of(result) == parse_result_key(key) else None

    def _read_pods(self, tracked: TrackedJob) -> list[PodStatus]:
        query = {"labelSelector": f"{JOB_NAME_LABEL}={tracked.name}"}
        pods = self.run.connection.read_items(self.run.path("pods"), read_pod_status, query)
        return [pod for pod in pods if pod.uid not in tracked.settled_uids]

    def find_record_or_pod(self, tracked: TrackedJob) -> Result | str:
        """Return the record of a Job that is gone, or the name of a pod that runs on without it; empty if neither is.

        `kubectl delete --cascade=orphan` leaves such a pod. Raise ApiError if the pods cannot be listed.
        """
        if (found := self.find_record(tracked)) is not None:
            return found
        running = (pod for pod in self._read_pods(tracked) if pod.phase == "Running" and not pod.is_deleted)
        return next((pod.name for pod in running), "")

    def _take_from_log(self, tracked: TrackedJob, pods: Sequence[PodStatus]) -> Result | None:
        """Return, and store, the record that a pod wrote into its log because it could not reach the store, or None."""
        for pod in (pod for pod in pods if pod.exit_code == EXIT_RESULT_IN_LOG):
            path = f"{self.run.path('pods')}/{pod.name}/log"
            query = {"container": CONTAINER, "tailLines": str(LOG_LINES), "limitBytes": str(MAX_LOG_BYTES)}
            try:
                log = self.run.connection.request("get", path, query=query, patience_seconds=LOG_PATIENCE_SECONDS)
                data = find_marked_record(log.decode(errors="replace"))
                result = None if data is None else read_result(data)
            except InvalidDocumentError:  # of another version of `bench`, or of somebody else
                continue
            except ApiError as error:
                if error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED):
                    raise
                if error.reason == UNREACHABLE or error.status == HTTPStatus.TOO_MANY_REQUESTS:
                    # Tried again as where the store is away.
                    raise StoreUnreachable(f"the record in the log of pod {pod.name}: {error.message}") from error
                continue  # the pod is gone, or its node does not answer: the record is lost
            wanted = (tracked.key.run_id, *tracked.repeat.key)
            if data and result is not None and (result.run_id, result.cell_id, result.repeat) == wanted:
                self.run.store.put(result_key(*ResultKey.of(result)), data)
                return result
        return None

    def record_failure(
        self, tracked: TrackedJob, failure: Failure, job: JobStatus | None, pods: Sequence[PodStatus]
    ) -> Result:
        """Write and return the record of a cell that died; if its attempt has a record already, return that one.

        The attempt is the pod's id, so that two runners write the same one, and so does the cell: what it measured must
        not be replaced by what a runner thinks of it.
        """
        pod = choose_decisive_pod(pods)
        started_at = (pod and (pod.started_at or pod.created_at)) or (job and job.created_at) or read_time_of_day()
        finished_at = (pod and pod.ended_at) or (job and job.ended_at) or read_time_of_day()
        attempt = pod.uid if pod else job.uid if job else tracked.name
        cell = tracked.repeat.planned.cell
        result = Result(
            run_id=tracked.key.run_id,
            cell=cell,
            cell_id=cell.cell_id,
            repeat=tracked.key.number,
            attempt=attempt,
            status=STATUSES.get(failure.kind, "failed"),
            written_by="runner",
            started_at=started_at,
            finished_at=max(started_at, finished_at),
            error=failure,
        )
        key = result_key(*ResultKey.of(result))
        if (left := self._try_to_read(key)) is not None:
            return left
        self.run.store.put(key, result.to_json())
        return result
