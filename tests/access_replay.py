"""Given jobs, played through the simulation's fair share: what runs when, to be held against a real Kueue."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import simpy

from access_scenarios import make_choice
from collector.access.scenario import Group
from collector.access.simulation import FairPool, Job


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A job that is submitted at a fixed time, whatever became of earlier ones."""

    at: float
    """Hours of the calendar."""
    user: int
    hours: float
    """Alone on the GPU that the lengths are of."""


@dataclass(kw_only=True)
class Replay:
    """Holds what the simulation did with jobs, which are named by their index; times are in the submissions' unit."""

    submissions: Sequence[Submission]
    groups: Sequence[Group]
    """Of one user each, with quota and weight."""
    num_gpus: int
    running_after: dict[float, frozenset[int]] = field(default_factory=dict)
    """By the time of each submission and end, the jobs that have a GPU once it was handled."""
    first_starts: dict[int, float] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)
    num_preempted: int = 0

    def run(self) -> "Replay":
        """Play all jobs to their end."""
        env = simpy.Environment()
        pool = FairPool(env, make_choice(*self.groups, num_gpus=self.num_gpus), np.random.default_rng())

        def note() -> None:
            running = frozenset(job.number for queue in pool.queues for job in queue.running)
            self.running_after[env.now] = running
            for number in running:
                self.first_starts.setdefault(number, env.now)

        def follow(job: Job) -> simpy.events.ProcessGenerator:
            yield job.ended
            self.ends[job.number] = env.now
            note()

        def submit() -> simpy.events.ProcessGenerator:
            for number, found in enumerate(self.submissions):
                yield env.timeout(found.at - env.now)
                job = Job(number=number, user=found.user, submitted_at=env.now, work=found.hours, ended=env.event())
                pool.submit(job)
                env.process(follow(job))
                note()

        env.process(submit())
        env.run()
        self.num_preempted = pool.num_admissions - len(self.submissions)
        return self
