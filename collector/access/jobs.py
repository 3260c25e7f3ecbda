"""Keep account of a job on its way through the simulation: what is left of it, and how long it waited."""

import math
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Job:
    """One job of one user. Times are hours of the calendar, work is hours alone on the GPU that it runs on."""

    number: int
    """In the order of submission."""
    user: int
    submitted_at: float
    work: float
    checkpoint_work: float | None = None
    """Work between two checkpoints. None: nothing is saved."""
    left: float = field(init=False)
    """Work that is still to be done."""
    waiting_since: float | None = field(init=False)
    """None while it runs, and after its end."""
    waited: float = 0.0
    """Hours of waiting that are over."""
    ended_at: float | None = None
    admission: int = 0
    """In the order of admissions; of its last one."""
    num_interruptions: int = 0

    def __post_init__(self) -> None:
        self.left = self.work
        self.waiting_since = self.submitted_at

    def run(self, now: float) -> None:
        """Count the hours that it waited: it runs from now on."""
        self.waited = self.measure_wait(now)
        self.waiting_since = None

    def interrupt(self, now: float) -> float:
        """Put it back to its last checkpoint, to wait again; return the work that is lost."""
        done = self.work - self.left
        saved = 0.0 if self.checkpoint_work is None else math.floor(done / self.checkpoint_work) * self.checkpoint_work
        self.left = self.work - saved
        self.num_interruptions += 1
        self.waiting_since = now
        return done - saved

    def measure_wait(self, now: float) -> float:
        """Return the hours until now in which it was there and did not run."""
        return self.waited + (0.0 if self.waiting_since is None else now - self.waiting_since)

    def measure_turnaround(self, now: float) -> float:
        """Return the hours from its submission to its end, or until now where it has none."""
        return (now if self.ended_at is None else self.ended_at) - self.submitted_at
