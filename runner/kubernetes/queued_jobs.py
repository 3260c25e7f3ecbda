"""Warns why Kueue does not start Jobs of a run, in the words of their Workloads.

A Job in a queue is never given up: its quota may come back, or its queue be started again, as long as the run lasts.
"""

import math
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.kueue import QueueWait, WorkloadsUnreadable, explain_queued_jobs
from runner.kubernetes.pending_pods import WARN_SECONDS
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs

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

    dispatcher: Dispatcher
    connection: Connection
    namespace: str
    jobs: TrackedJobs
    _suspended_since: dict[CellKind, float] = field(default_factory=dict, repr=False)
    """Since when (time.monotonic) there has been a suspended Job of a kind."""
    _started_at: dict[CellKind, float] = field(default_factory=dict, repr=False)
    """When a Job of a kind was last seen that Kueue had started."""
    _next_request: float = math.inf

    def check(self) -> None:
        """Read the Workloads of suspended Jobs if it is time to; to be called about once a second."""
        now, suspended = time.monotonic(), self._sort_jobs()
        self._suspended_since = {kind: self._suspended_since.get(kind, now) for kind in suspended}
        self._next_request = min(self._next_request, now + READ_SECONDS) if suspended else math.inf
        if now >= self._next_request:
            self._next_request = now + READ_SECONDS
            samples = {kind: sorted(jobs, key=_find_age)[:NUM_SAMPLES] for kind, jobs in suspended.items()}
            uids = [tracked.job.uid for jobs in samples.values() for tracked in jobs if tracked.job is not None]
            self.dispatcher.request(partial(self._explain, uids), partial(self._tell, samples))

    def _sort_jobs(self) -> dict[CellKind, list[TrackedJob]]:
        """Return the suspended Jobs by kind, and note which kinds have Jobs that Kueue has started."""
        suspended: defaultdict[CellKind, list[TrackedJob]] = defaultdict(list)
        for tracked in self.jobs:
            if tracked.state == "in-flight" and tracked.job is not None:
                cell = tracked.repeat.planned.cell
                kind = (tracked.node_kind, cell.num_gpus, cell.tenants)
                if tracked.job.is_suspended:
                    suspended[kind].append(tracked)
                else:
                    self._started_at[kind] = time.monotonic()
        return suspended

    def _explain(self, job_uids: Sequence[str]) -> Mapping[str, QueueWait] | str:
        """Return why each Job waits, or in words why that is not known; on a request thread."""
        try:
            return explain_queued_jobs(self.connection, self.namespace, job_uids)
        except WorkloadsUnreadable as refusal:
            return str(refusal)
        except ApiError as error:  # what the run needs is asked for, and refused, elsewhere
            return f"why they wait is not known: {error.message}"

    def _tell(self, samples: Mapping[CellKind, Sequence[TrackedJob]], waits: Mapping[str, QueueWait] | str) -> None:
        for kind, jobs in samples.items():
            found = [(wait, tracked) for tracked in jobs if (wait := _find_wait(tracked, waits)) is not None]
            for wait, tracked in sorted(found, key=lambda pair: not pair[0].is_lasting)[:1]:
                self._warn(kind, tracked, wait)

    def _warn(self, kind: CellKind, tracked: TrackedJob, wait: QueueWait) -> None:
        """Warn, unless the Job merely waits for its turn while others of its kind run."""
        since = max(self._suspended_since.get(kind, math.inf), self._started_at.get(kind, 0.0))
        if wait.is_lasting or time.monotonic() - since >= WARN_SECONDS:
            message = f"in the queue, not started: {wait.message} (waiting: {tracked.repeat.planned.cell.slug}, "
            self.dispatcher.warn(f"{message}for example)", f"queue {kind} {_NUMBERS.sub('', wait.message)}")


def _find_wait(tracked: TrackedJob, waits: Mapping[str, QueueWait] | str) -> QueueWait | None:
    """Return why the Job waits, as far as that is known; None if it has been started since."""
    if tracked.job is None or not tracked.job.is_suspended:
        return None
    return QueueWait(message=waits, is_lasting=False) if isinstance(waits, str) else waits.get(tracked.job.uid)


def _find_age(tracked: TrackedJob) -> tuple[float, str]:
    return (tracked.job.created_at.timestamp() if tracked.job else math.inf), tracked.name
