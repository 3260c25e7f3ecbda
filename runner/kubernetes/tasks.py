"""The repeats that a run still lacks, each with what is known of its Job: counted by state, found by name."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from bench.schema import FailureKind
from runner.kubernetes.object_status import JobStatus, PodStatus
from runner.kubernetes.rendering.job_name import JobKey
from runner.matrix.plan import Repeat

TaskState = Literal["to-submit", "submitting", "in-flight", "recording", "done"]


@dataclass(kw_only=True)
class Task:
    """One repeat that is to be measured."""

    repeat: Repeat
    key: JobKey
    state: TaskState = "to-submit"
    job: JobStatus | None = None
    """The feed's latest word of it; None: none was seen, or it has gone."""
    pods: dict[str, PodStatus] = field(default_factory=dict)
    """By name: those that wait or failed."""
    disrupted: set[str] = field(default_factory=set)
    """Ids of pods that their nodes took down: preempted, evicted, lost."""
    waiting_for: FailureKind | None = None
    """What its pod waits for, as the kind of failure that it would become; None: for nothing that is known."""
    waiting_since: float | None = None
    """When (time.monotonic) it was first seen to wait for that; None: it does not."""
    no_pod_since: float | None = None
    """When its Job was first seen to have no pod, or itself not seen; None: it has one."""
    num_asked: int = 0
    """How often the Job controller was asked why there is none."""
    no_pod_words: str = ""
    """What it said."""
    leaving_words: str = ""
    """Of a pod that should have gone and has not: its node may be lost."""

    def forget_waiting(self) -> None:
        """Nothing is known to keep it from running."""
        self.waiting_for = self.waiting_since = None

    def forget_no_pod(self) -> None:
        """Its Job has a pod, or shall have none yet."""
        self.no_pod_since, self.num_asked, self.no_pod_words, self.leaving_words = None, 0, "", ""

    @property
    def name(self) -> str:
        """Of the Job."""
        return self.key.job_name


class Tasks:
    """All tasks of a run. Jobs of other runs, or of a former round, are not among them."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._by_name = {task.name: task for task in tasks}
        self._counts = Counter(task.state for task in self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._by_name.values())

    def find(self, job_name: str) -> Task | None:
        """Return the task of a Job; None where it is none of this run's."""
        return self._by_name.get(job_name)

    def count(self, *states: TaskState) -> int:
        """Return how many tasks are in one of the states."""
        return sum(self._counts[state] for state in states)

    def move(self, task: Task, state: TaskState) -> None:
        """Bring a task into another state."""
        self._counts[task.state] -= 1
        self._counts[state] += 1
        task.state = state
