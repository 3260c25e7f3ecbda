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


def warn_once(observer: ClusterObserver) -> Callable[[str, str], None]:
    """Return what reports each cause of a warning the first time that it comes, before there is a session."""
    told: set[str] = set()

    def warn(message: str, dedup_key: str) -> None:
        if dedup_key not in told:
            told.add(dedup_key)
            observer.warn(message)

    return warn
