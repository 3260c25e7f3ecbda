"""What a cluster session reports while it runs."""

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
