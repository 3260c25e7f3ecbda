"""Say whether a run goes on and for how long: what has no result yet is missing only when the run has ended."""

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runner.local.host_lock import find_measured_run
from runner.terminal import format_wait

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.results.collection import Collection


@dataclass(frozen=True, kw_only=True)
class RunState:
    """What is known of a run that lacks results."""

    is_running: bool | None
    """Whether its runner is at work; None: it runs elsewhere, and the store does not say."""
    seconds_left: float | None = None
    """Of a run that goes on on this machine, the time that its remaining repeats will take; None: not known."""

    def describe(self, number: int) -> str:
        """Return what is to be said of so many planned repeats without a result."""
        if self.is_running is None:
            return f"{number} not there yet"
        if not self.is_running:
            return f"{number} missing"
        wait = "" if self.seconds_left is None else f", about {format_wait(self.seconds_left)} left"
        return f"{number} to go, running{wait}"


def find_run_state(collection: "Collection") -> RunState:
    run = collection.run
    if run.executor != "local" or run.hostname != socket.gethostname():
        return RunState(is_running=None)
    if find_measured_run() != run.run_id:
        return RunState(is_running=False)
    return RunState(is_running=True, seconds_left=_estimate_seconds_left(collection))


def _estimate_seconds_left(collection: "Collection") -> float | None:
    """Estimate how long the missing repeats take: each as its cell's mean so far, or as the mean of all cells."""
    from collector.results.frames import MISSING

    results = collection.results
    seconds = (results["finished_at"] - results["started_at"]).dt.total_seconds()
    by_cell = seconds.groupby(results["cell_id"]).transform("mean").fillna(seconds.mean())
    left = by_cell[results["status"] == MISSING]
    return None if left.isna().any() else float(left.sum())
