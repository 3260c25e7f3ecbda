"""Decide as Kueue's fair share does: queues of one cohort borrow from each other, and take back by preemption.

The rules are those of Kueue 0.19.2 with fair sharing enabled, its default preemption strategies and feature gates, and
ClusterQueues with `reclaimWithinCohort: Any` and `withinClusterQueue: Never`, for jobs of one GPU and equal priority:
https://github.com/kubernetes-sigs/kueue/tree/v0.19.2, pkg/scheduler/{scheduler,fair_sharing_iterator}.go,
pkg/scheduler/preemption, pkg/cache/scheduler/fair_sharing.go. The words (share, nominal quota, cycle) are Kueue's.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from collector.access.jobs import Job


@dataclass(kw_only=True)
class Queue:
    """A ClusterQueue with one LocalQueue: the jobs of one user."""

    nominal: int
    """GPUs that it is guaranteed."""
    weight: float
    running: list[Job] = field(default_factory=list)
    """In the order of admission."""
    _pending: list[tuple[float, int, Job]] = field(default_factory=list)

    def push(self, job: Job) -> None:
        """Queue a job, for the first or another time; its place is that of its submission."""
        heapq.heappush(self._pending, (job.submitted_at, job.number, job))

    def pop(self) -> Job:
        """Take the first job out."""
        return heapq.heappop(self._pending)[2]

    @property
    def head(self) -> Job | None:
        """The job that was submitted first."""
        return self._pending[0][2] if self._pending else None

    @property
    def num_pending(self) -> int:
        """Number of jobs that wait in it."""
        return len(self._pending)

    @property
    def is_borrowing(self) -> bool:
        """Whether it uses more than it is guaranteed."""
        return len(self.running) > self.nominal

    def compute_share(self, total: int, more: int = 0) -> float:
        """Return Kueue's share value with `more` jobs: what is borrowed of all that can be lent, by weight; from 0."""
        return max(0, len(self.running) + more - self.nominal) / total / self.weight


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """What one scheduling cycle decides."""

    admitted: tuple[tuple[Queue, Job], ...]
    preempted: tuple[tuple[Queue, Job], ...]


def run_cycle(queues: Sequence[Queue], total: int) -> Cycle:
    """Return which heads are admitted to `total` GPUs, and which jobs are preempted for others.

    Every queue nominates its head. They are taken by the share that their queue would have, then by the time of
    submission; a head that finds no free GPU may name a job to preempt, and is admitted in a later cycle. The queues
    are not changed.

    Cycles that preempt come to an end: the larger of the two shares that a preemption changes becomes smaller.
    """
    free = total - sum(len(queue.running) for queue in queues)
    nominated = [(queue, head) for queue in queues if (head := queue.head) is not None]
    nominated.sort(key=lambda entry: (entry[0].compute_share(total, 1), entry[1].submitted_at, entry[1].number))
    has_room = free > 0  # a head is nominated to fit, or to preempt, by what was free when the cycle began
    admitted: list[tuple[Queue, Job]] = []
    preempted: list[tuple[Queue, Job]] = []
    for queue, head in nominated:
        if has_room and free > 0:
            admitted.append((queue, head))
            free -= 1
        elif not has_room:
            found = find_target(queue, queues, total)
            # Two heads of a cycle do not preempt the same job: the later one is skipped.
            if found is not None and all(job is not found[1] for _, job in preempted):
                preempted.append(found)
    return Cycle(admitted=tuple(admitted), preempted=tuple(preempted))


def find_target(queue: Queue, queues: Sequence[Queue], total: int) -> tuple[Queue, Job] | None:
    """Return the job that is preempted so that the head of `queue` fits, with its queue, or None.

    Each queue that borrows offers the job that was admitted last. The one with the largest share is asked first; of
    equal ones that whose job was admitted last. First by the strategy LessThanOrEqualToFinalShare (the share of `queue`
    with the head is at most that of the other without its job), then by LessThanInitialShare (it is less than that of
    the other as it is).
    """
    share = queue.compute_share(total, 1)
    borrowing = [other for other in queues if other is not queue and other.is_borrowing]
    borrowing.sort(key=lambda other: (other.compute_share(total), other.running[-1].admission), reverse=True)
    by_final_share = (other for other in borrowing if share <= other.compute_share(total, -1))
    by_initial_share = (other for other in borrowing if share < other.compute_share(total))
    found = next(by_final_share, None) or next(by_initial_share, None)
    return None if found is None else (found, found.running[-1])
