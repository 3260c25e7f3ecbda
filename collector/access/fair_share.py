"""Fair share as Kueue gives it: queues of one cohort that borrow from each other, and take back by preemption.

The rules are those of Kueue 0.13.1 with fair sharing enabled, its default preemption strategies, and ClusterQueues
with `reclaimWithinCohort: Any` and `withinClusterQueue: Never`, for jobs of one GPU and of equal priority:
https://github.com/kubernetes-sigs/kueue/tree/v0.13.1, pkg/scheduler/{scheduler,fair_sharing_iterator}.go,
pkg/scheduler/preemption/preemption.go, pkg/cache/fair_sharing.go. The words (share, nominal quota, cycle) are Kueue's.
"""

import heapq
from collections.abc import Iterable, Sequence
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

    def compute_share(self, total: int, more: int = 0) -> int:
        """Return Kueue's share value with `more` jobs: what is borrowed over all that can be lent, by weight.

        In thousandths, rounded down twice, as Kueue has it: at the ratio, and after the division by the weight.
        """
        borrowed = len(self.running) + more - self.nominal
        return 0 if borrowed <= 0 else borrowed * 1000 // total * 1000 // round(self.weight * 1000)


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """What one scheduling cycle decides."""

    admitted: tuple[tuple[Queue, Job], ...]
    preempted: tuple[tuple[Queue, Job], ...]


def run_cycle(queues: Sequence[Queue], total: int, spared: Iterable[Job] = ()) -> Cycle:
    """Return which heads are admitted to `total` GPUs, and which jobs are preempted for others.

    Every queue nominates its head. They are taken by the share that their queue would have, then by the time of
    submission; a head that finds no free GPU may name a job to preempt, and is admitted in a later cycle. `spared` are
    not preempted: a job that got its GPU at this very moment, so that a moment has an end. The queues are not changed.
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
            found = find_target(queue, queues, total, spared)
            # Two heads of a cycle do not preempt the same job: the later one is skipped.
            if found is not None and all(job is not found[1] for _, job in preempted):
                preempted.append(found)
    return Cycle(admitted=tuple(admitted), preempted=tuple(preempted))


def find_target(
    queue: Queue, queues: Sequence[Queue], total: int, spared: Iterable[Job] = ()
) -> tuple[Queue, Job] | None:
    """Return the job that is preempted so that the head of `queue` fits, with its queue, or None.

    Queues that borrow are asked, the one with the largest share first, and give the job that was admitted last. First
    by the strategy LessThanOrEqualToFinalShare (the share of `queue` with the head is at most that of the other without
    its job), then by LessThanInitialShare (it is less than that of the other as it is).
    """
    excluded = set(map(id, spared))
    share = queue.compute_share(total, 1)
    found = [
        (other, job)
        for other in sorted(queues, key=lambda other: -other.compute_share(total))
        if other is not queue and other.is_borrowing and other.compute_share(total) > 0
        for job in [next((job for job in reversed(other.running) if id(job) not in excluded), None)]
        if job is not None
    ]
    by_final_share = (entry for entry in found if share <= entry[0].compute_share(total, -1))
    by_initial_share = (entry for entry in found if share < entry[0].compute_share(total))
    return next(by_final_share, None) or next(by_initial_share, None)
