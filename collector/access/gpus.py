"""Simulate GPUs: jobs that share one and slow each other, GPUs that are rented, started and interrupted.

Kubernetes' part of the simulation: what a policy admitted is placed here, as a scheduler with an autoscaler would.
"""

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import simpy

from collector.access.jobs import Job

SMALLEST_WORK = 1e-9
"""Hours; less is the rounding error of a job's progress, and counts as done."""


class State(Enum):
    """Whether a GPU can run jobs."""

    OFF = auto()
    STARTING = auto()
    UP = auto()


@dataclass(frozen=True, kw_only=True)
class Renting:
    """How GPUs come and go that are paid by the hour."""

    start_hours: float
    idle_hours: float
    interruptions_per_hour: float = 0.0
    is_always_on: bool = False


class Gpu:
    """One GPU and the jobs on it."""

    def __init__(self) -> None:
        self.tenants: list[Job] = []
        self.state = State.OFF
        self.advanced_at = 0.0
        self.paid_since: float | None = None
        self.version = 0
        """Counts the changes; what was scheduled before the last one no longer holds."""

    def change(self) -> int:
        """Make all that was scheduled void, and return the new version."""
        self.version += 1
        return self.version


class GpuPool:
    """All GPUs of an alternative, at most `max_tenants` jobs on each."""

    def __init__(
        self,
        env: simpy.Environment,
        *,
        size: int,
        num_users: int,
        rates: Sequence[float],
        renting: Renting | None = None,
        generator: np.random.Generator | None = None,
    ) -> None:
        """Make the pool.

        `rates[n - 1]` is the work that each of n tenants gets done in an hour; there can be as many as rates. `renting`
        None: the GPUs are there all the time. `generator` draws the interruptions.
        """
        self._env = env
        self._rates = rates
        self._renting = renting
        self._generator = generator or np.random.default_rng(0)
        self._gpus = [Gpu() for _ in range(size)]
        self._unplaced: list[Job] = []
        self._paid_hours = 0.0
        self.capacity = size * len(rates)
        self.num_admitted = 0
        self.work_by_user = np.zeros(num_users)
        """Work that is done and not lost, in hours alone on such a GPU."""
        self.busy_hours = 0.0
        self.lost_work = 0.0
        self.num_interruptions = 0
        self.on_end: Callable[[Job], None] = lambda job: None
        self.may_start: Callable[[], bool] = lambda: True
        """Whether a job may be started; one that runs goes on."""
        if renting is None or renting.is_always_on:
            for gpu in self._gpus:
                self._open(gpu)

    def admit(self, job: Job) -> None:
        """Run a job as soon as there is a place for it."""
        self.num_admitted += 1
        self._put(job)
        self.place()

    def evict(self, job: Job) -> None:
        """Stop a job that was admitted; it waits again, from its last checkpoint on."""
        self.num_admitted -= 1
        if job in self._unplaced:
            self._unplaced.remove(job)
            return
        gpu = next(gpu for gpu in self._gpus if job in gpu.tenants)
        self._advance(gpu)
        gpu.tenants.remove(job)
        self._lose(job)
        self._plan(gpu)

    def place(self) -> None:
        """Put waiting jobs where there is room, on the GPU with the fewest; start rented GPUs for the others."""
        while self._unplaced and self.may_start():
            running = [gpu for gpu in self._gpus if gpu.state is State.UP and len(gpu.tenants) < len(self._rates)]
            if not running:
                self._start_more()
                return
            self._run(self._unplaced.pop(0), min(running, key=lambda gpu: len(gpu.tenants)))

    def advance(self) -> None:
        """Bring all that is counted up to now."""
        for gpu in self._gpus:
            self._advance(gpu)

    @property
    def paid_hours(self) -> float:
        """Hours for which GPUs were up or starting until now, of all together."""
        since = (gpu.paid_since for gpu in self._gpus if gpu.paid_since is not None)
        return self._paid_hours + sum(self._env.now - begun for begun in since)

    def _put(self, job: Job) -> None:
        insort(self._unplaced, job, key=lambda waiting: (waiting.submitted_at, waiting.number))

    def _start_more(self) -> None:
        num_starting = sum(gpu.state is State.STARTING for gpu in self._gpus)
        num_wanted = -(-len(self._unplaced) // len(self._rates)) - num_starting
        for gpu in [gpu for gpu in self._gpus if gpu.state is State.OFF][: max(0, num_wanted)]:
            self._start(gpu)

    def _start(self, gpu: Gpu) -> None:
        assert self._renting is not None  # others are always up
        gpu.state, gpu.paid_since = State.STARTING, self._env.now
        self._call_later(gpu, self._renting.start_hours, lambda: self._open(gpu))

    def _open(self, gpu: Gpu) -> None:
        if gpu.paid_since is None:
            gpu.paid_since = self._env.now
        gpu.state, gpu.advanced_at = State.UP, self._env.now
        if self._renting is not None and self._renting.interruptions_per_hour:
            # Its own event, not one of `version`: what runs on the GPU does not keep the cloud from taking it.
            hours = float(self._generator.exponential(1 / self._renting.interruptions_per_hour))
            opened = gpu.paid_since
            event = self._env.timeout(hours)
            event.callbacks.append(lambda _: self._interrupt(gpu, opened))
        self._plan(gpu)
        self.place()

    def _close(self, gpu: Gpu) -> None:
        assert gpu.paid_since is not None
        self._paid_hours += self._env.now - gpu.paid_since
        gpu.state, gpu.paid_since = State.OFF, None
        gpu.change()

    def _interrupt(self, gpu: Gpu, opened: float) -> None:
        if gpu.paid_since != opened:
            return  # it was given back meanwhile
        self._advance(gpu)
        self.num_interruptions += 1
        jobs, gpu.tenants = gpu.tenants, []
        self._close(gpu)
        for job in jobs:
            self._lose(job)
            self._put(job)
        if self._renting is not None and self._renting.is_always_on:
            self._start(gpu)
        self.place()

    def _lose(self, job: Job) -> None:
        lost = job.interrupt(self._env.now)
        self.lost_work += lost
        self.work_by_user[job.user] -= lost

    def _run(self, job: Job, gpu: Gpu) -> None:
        self._advance(gpu)
        job.run(self._env.now)
        gpu.tenants.append(job)
        self._plan(gpu)

    def _advance(self, gpu: Gpu) -> None:
        hours = self._env.now - gpu.advanced_at
        gpu.advanced_at = self._env.now
        if not gpu.tenants or not hours:
            return
        self.busy_hours += hours
        work = hours * self._rates[len(gpu.tenants) - 1]
        for job in gpu.tenants:
            done = min(work, job.left)
            job.left -= done
            self.work_by_user[job.user] += done

    def _plan(self, gpu: Gpu) -> None:
        """Schedule what happens to a GPU next, after any change of its tenants."""
        if gpu.tenants:
            work = min(job.left for job in gpu.tenants)
            self._call_later(gpu, work / self._rates[len(gpu.tenants) - 1], lambda: self._finish(gpu))
        elif self._renting is not None and not self._renting.is_always_on:
            self._call_later(gpu, self._renting.idle_hours, lambda: self._close(gpu))
        else:
            gpu.change()

    def _finish(self, gpu: Gpu) -> None:
        self._advance(gpu)
        ended = [job for job in gpu.tenants if job.left <= SMALLEST_WORK]
        gpu.tenants = [job for job in gpu.tenants if job.left > SMALLEST_WORK]
        self.num_admitted -= len(ended)
        self._plan(gpu)
        for job in ended:
            job.ended_at = self._env.now
        self.place()
        for job in ended:
            self.on_end(job)

    def _call_later(self, gpu: Gpu, hours: float, act: Callable[[], None]) -> None:
        """Call `act` after some hours, unless the GPU has changed until then."""
        version = gpu.change()

        def act_if_unchanged(_: simpy.Event) -> None:
            if gpu.version == version:
                act()

        self._env.timeout(max(0.0, hours)).callbacks.append(act_if_unchanged)
