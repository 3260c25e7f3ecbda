"""Decide by policy which of the waiting jobs is admitted next, and whether one that runs has to make room."""

import heapq
from collections.abc import Sequence
from typing import Protocol

from collector.access.fair_share import Queue, run_cycle
from collector.access.gpus import GpuPool
from collector.access.jobs import Job


class Admission(Protocol):
    """Admits jobs to a pool."""

    def submit(self, job: Job) -> None:
        """Take a job that was just submitted."""

    def end(self, job: Job) -> None:
        """Learn that a job has ended."""


class FirstComeAdmission:
    """Admits jobs in the order of their submission while the pool has places; with one place a GPU, exclusive use."""

    def __init__(self, pool: GpuPool) -> None:
        self._pool = pool
        self._waiting: list[tuple[float, int, Job]] = []

    def submit(self, job: Job) -> None:
        """Take a job that was just submitted."""
        heapq.heappush(self._waiting, (job.submitted_at, job.number, job))
        self._admit()

    def end(self, job: Job) -> None:
        """Learn that a job has ended."""
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._pool.num_admitted < self._pool.capacity:
            self._pool.admit(heapq.heappop(self._waiting)[2])


class FairShareAdmission:
    """Admits and preempts as Kueue does, with a queue per user."""

    def __init__(self, pool: GpuPool, queues: Sequence[Queue]) -> None:
        self._pool = pool
        self._queues = queues
        self._num_admissions = 0
        self.num_preempted = 0

    def submit(self, job: Job) -> None:
        """Take a job that was just submitted."""
        self._queues[job.user].push(job)
        self._schedule()

    def end(self, job: Job) -> None:
        """Learn that a job has ended."""
        self._queues[job.user].running.remove(job)
        self._schedule()

    def _schedule(self) -> None:
        """Run cycles until one decides nothing."""
        while True:
            cycle = run_cycle(self._queues, self._pool.capacity)
            for queue, job in cycle.preempted:
                queue.running.remove(job)
                queue.push(job)
                self._pool.evict(job)
                self.num_preempted += 1
            for queue, job in cycle.admitted:
                queue.pop()
                queue.running.append(job)
                self._num_admissions += 1
                job.admission = self._num_admissions
                self._pool.admit(job)
            if not cycle.admitted and not cycle.preempted:
                return
