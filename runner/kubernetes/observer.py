"""What a cluster session reports while it runs."""

from collections.abc import Callable
from typing import Protocol

from bench.schema import Result
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs


class ClusterObserver(Protocol):
    """Receives the reports of a session, all on its main thread."""

    def tick(self, jobs: TrackedJobs) -> None:
        """Show the state of the run; called about once a second."""

    def finish(self, tracked: TrackedJob, result: Result) -> None:
        """Report a repeat that has its terminal record."""

    def warn(self, message: str) -> None:
        """Report something that keeps cells from running and that the user can fix."""


def warn_once(tell: Callable[[str], None]) -> Callable[[str, str], None]:
    """Return a function that tells a warning the first time that its cause comes; a session has its own way."""
    told: set[str] = set()

    def warn(message: str, dedup_key: str) -> None:
        if dedup_key not in told:
            told.add(dedup_key)
            tell(message)

    return warn
