"""A task whose Job is over or given up comes in, its terminal record, found in the store or written, goes out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from bench.delivery import find_marked_record
from bench.errors import UserError
from bench.exit_codes import EXIT_RESULT_IN_LOG
from bench.schema import Result
from bench.store import Store, parse_result_key, result_key, results_prefix
from runner.kubernetes.connection import (
    FORBIDDEN,
    NOT_FOUND,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
    UNREACHABLE,
    ApiError,
    Connection,
)
from runner.kubernetes.job_outcomes import Ending, choose_telling_pod, explain_job
from runner.kubernetes.object_status import CONTAINER, JobStatus, PodStatus, read_pod_status
from runner.kubernetes.tasks import Task

LOG_LINES = 20
LOG_PATIENCE_SECONDS = 60.0
"""How long a log is asked for again that a node does not hand out: the node may be gone for good."""
FAILED_CREATE = "FailedCreate"


@dataclass(frozen=True, kw_only=True)
class ResultRecorder:
    """Sees to it that what is over has its record."""

    connection: Connection
    namespace: str
    store: Store

    def find_record(self, task: Task) -> Result | None:
        """Return the record of the task's round; None where the store has none yet."""
        keys = []
        for key in self.store.list_keys(f"{results_prefix(task.key.run_id)}{task.key.cell_id}"):
            parts = parse_result_key(key)
            if parts is not None and parts.repeat == task.key.number:
                keys.append(key)
        if len(keys) <= task.key.retry_round:
            return None
        found = [result for result in map(self._try_to_read, keys) if result is not None]
        return max(found, key=lambda result: result.finished_at) if found else self._read(keys[0])

    def record_finished(self, task: Task, job: JobStatus) -> Result:
        """Return the record of a task whose Job has finished; one that is not there is written."""
        found = self.find_record(task)
        if found is not None:
            return found
        pods = self._list_pods(task)
        logged = self._take_from_log(task, pods)
        if logged is not None:
            return logged
        return self._write(task, explain_job(job, pods, self.store.url), job, pods)

    def give_up(self, task: Task, ending: Ending) -> Result:
        """Delete the Job of a task that cannot start, write its record and return it."""
        self.delete_job(task.name)
        found = self.find_record(task)  # it may have started at the last moment
        return found or self._write(task, ending, task.job, list(task.pods.values()))

    def delete_job(self, name: str) -> None:
        """Delete a Job and its pods; one that is gone already is no fault."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"
        try:
            self.connection.request("delete", path, query={"propagationPolicy": "Background"})
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    def read_no_pod_words(self, task: Task) -> str:
        """Return why the Job controller could make no pod of a Job; empty where it says nothing."""
        query = {"fieldSelector": f"involvedObject.kind=Job,involvedObject.name={task.name},reason={FAILED_CREATE}"}
        events = self.connection.list_items(f"/api/v1/namespaces/{self.namespace}/events", **query)
        newest = max(events, key=lambda event: str(event.get("lastTimestamp") or ""), default=None)
        return str(newest.get("message", "")) if newest else ""

    def read_leaving_words(self, task: Task) -> str:
        """Return what is wrong with a pod of the Job that should have ended; empty where there is none."""
        for pod in self._fetch_pods(task):
            metadata, node = pod["metadata"], pod["spec"].get("nodeName", "")
            until = metadata.get("deletionTimestamp")
            if until and datetime.fromisoformat(until) < datetime.now(UTC):
                return (
                    f"pod {metadata['name']} should have ended by {until}, but node {node} does not say that it has; "
                    f"if that machine is lost, `kubectl delete node {node}`"
                )
        return ""

    def _try_to_read(self, key: str) -> Result | None:
        """Return a record; None where it is damaged, as those are for whose sake a repeat is measured again."""
        try:
            return Result.model_validate_json(self.store.get(key))
        except ValidationError:
            return None

    def _read(self, key: str) -> Result:
        try:
            return Result.model_validate_json(self.store.get(key))
        except ValidationError as error:
            raise UserError(
                f"{self.store.url}/{key}: no record of this version ({error.errors()[0]['msg']}); do the images have "
                "the version of this tool?"
            ) from error

    def _list_pods(self, task: Task) -> list[PodStatus]:
        """Return the task's pods."""
        pods = list(task.pods.values())
        if not any(pod.exit_code is not None and not pod.disruption for pod in pods):  # the feed may lag
            pods = [read_pod_status(pod) for pod in self._fetch_pods(task)] or pods
        return pods

    def _take_from_log(self, task: Task, pods: Sequence[PodStatus]) -> Result | None:
        """Store and return the record that a pod left in its log, as it could not reach the store; None of none."""
        for pod in (pod for pod in pods if pod.exit_code == EXIT_RESULT_IN_LOG):
            path = f"/api/v1/namespaces/{self.namespace}/pods/{pod.name}/log"
            query = {"container": CONTAINER, "tailLines": str(LOG_LINES)}
            log = self._read_log(path, query)
            data = None if log is None else find_marked_record(log.decode(errors="replace"))
            result = None if data is None else Result.model_validate_json(data)
            if result and (result.run_id, result.cell_id, result.repeat) == (task.key.run_id, *task.repeat.key):
                self._put(result)
                return result
        return None

    def _read_log(self, path: str, query: dict[str, str]) -> bytes | None:
        """Return a log; None where the pod is gone, or its node does not hand it out: the record is lost then."""
        deadline = time.monotonic() + self.connection.patience_seconds
        while True:
            try:
                return self.connection.request("get", path, query=query, patience_seconds=LOG_PATIENCE_SECONDS)
            except ApiError as error:
                tells_of_log = error.reason != UNREACHABLE and error.status not in (UNAUTHORIZED, TOO_MANY_REQUESTS)
                if error.status == FORBIDDEN or (not tells_of_log and time.monotonic() > deadline):
                    raise
                if tells_of_log:
                    return None

    def _fetch_pods(self, task: Task) -> list[dict[str, Any]]:
        query = {"labelSelector": f"batch.kubernetes.io/job-name={task.name}"}
        return self.connection.list_items(f"/api/v1/namespaces/{self.namespace}/pods", **query)

    def _write(self, task: Task, ending: Ending, job: JobStatus | None, pods: Sequence[PodStatus]) -> Result:
        """Write the record of what died before it could. Its attempt is the pod's id: two runners write the same."""
        status, failure = ending
        pod = choose_telling_pod(pods)
        started_at = (pod and (pod.started_at or pod.created_at)) or (job and job.created_at) or datetime.now(UTC)
        finished_at = (pod and pod.ended_at) or (job and job.ended_at) or datetime.now(UTC)
        attempt = pod.uid if pod else job.uid if job else task.name
        cell = task.repeat.planned.cell
        result = Result(
            run_id=task.key.run_id,
            cell=cell,
            cell_id=cell.cell_id,
            repeat=task.key.number,
            attempt=attempt,
            status=status,
            written_by="runner",
            started_at=started_at,
            finished_at=max(started_at, finished_at),
            error=failure,
        )
        self._put(result)
        return result

    def _put(self, result: Result) -> None:
        self.store.put(result_key(result.run_id, result.cell_id, result.repeat, result.attempt), result.to_json())
