"""The progress of a run on a cluster: a live line, plain lines or JSON lines, and metrics for Prometheus."""

import time
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from rich.console import Console
from rich.live import Live
from rich.text import Text

from bench.errors import UserError
from bench.schema import Result
from runner.kubernetes.connection import Connection
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs
from runner.run_events import PROGRESS_SECONDS, RunEvents, describe_end
from runner.terminal import can_redraw, format_wait, join_printable


class ClusterProgress(Collector):
    """Counts the repeats of a run that have ended, and shows that as text, or with `as_json` as lines of JSON."""

    def __init__(self, console: Console, *, as_json: bool) -> None:
        self._console = console
        self._events = RunEvents(console) if as_json else None
        redraws = can_redraw(console) and not as_json
        self._live = Live(console=console, auto_refresh=False, transient=True) if redraws else None
        self.num_by_status: Counter[str] = Counter()
        self._num_warnings = self._num_preempted = 0
        self._states: dict[str, int] = {}
        self._connection: Connection | None = None
        self._started = time.monotonic()
        self._next_line = self._started + PROGRESS_SECONDS

    def __enter__(self) -> "ClusterProgress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def serve_metrics(self, connection: Connection, port: int) -> CollectorRegistry:
        """Serve the counts of the run and of its requests at `/metrics`; return them."""
        self._connection, registry = connection, CollectorRegistry()
        registry.register(self)
        try:
            start_http_server(port, registry=registry)
        except OSError as error:
            raise UserError(f"--metrics-port {port}: {error.strerror}; name another port") from error
        return registry

    def tick(self, jobs: TrackedJobs) -> None:
        self._states = count_states(jobs)
        if self._live:
            self._live.update(Text(self.format_line(jobs), overflow="ellipsis", no_wrap=True), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + PROGRESS_SECONDS
            if self._events:
                cost = {} if jobs.cost is None else {"cost": jobs.cost.amount, "currency": jobs.cost.currency}
                left = {"seconds_left": self._estimate_seconds_left(jobs)}
                self._events.report("progress", **self._states, **self.num_by_status, **left, **cost)
            else:
                self._console.print(self.format_line(jobs), soft_wrap=True)

    def finish(self, tracked: TrackedJob, result: Result) -> None:
        num_disrupted = len(tracked.disrupted_pod_uids)
        self.num_by_status[result.status] += 1
        self._num_preempted += num_disrupted
        if self._events:
            self._events.finish(result, job=tracked.name, num_preempted=num_disrupted)
            return
        extras = [f"after {num_disrupted} preempted"] if num_disrupted else []
        planned = tracked.repeat.planned
        line = describe_end(result, planned.cell.slug, planned.repeats, *extras)
        self._console.print(line, highlight=False, soft_wrap=True)

    def warn(self, message: str) -> None:
        self._num_warnings += 1
        if self._events:
            self._events.report("warning", message=message)
        else:
            self._console.print(f"warning: {join_printable(message)}", style="yellow", soft_wrap=True)

    def format_line(self, jobs: TrackedJobs) -> str:
        counts = count_states(jobs)
        parts = [f"{counts[name]} {label}" for name, label in _LABELS.items() if counts[name]]
        if failed := sum(number for status, number in self.num_by_status.items() if status != "ok"):
            parts.append(f"{failed} of the done failed")
        left = self._estimate_seconds_left(jobs)
        if left is not None:
            rate = jobs.count("done") / (time.monotonic() - self._started)
            parts.append(f"{rate * 60:.3g}/min, about {format_wait(left)} left")
        if jobs.cost is not None:
            parts.append(f"about {jobs.cost} so far")
        return ", ".join(parts)

    def _estimate_seconds_left(self, jobs: TrackedJobs) -> float | None:
        """Return how long the rest takes at the rate so far; None before the first repeat is done."""
        done, elapsed = jobs.count("done"), time.monotonic() - self._started
        return (len(jobs) - done) * elapsed / done if done else None

    def collect(self) -> Iterator[Metric]:
        """Yield what a scrape reads, in a thread of its own."""
        repeats = GaugeMetricFamily("benchmatrix_repeats", "Repeats of the run by state.", labels=["state"])
        for state, number in list(self._states.items()):
            repeats.add_metric([state], number)
        results = CounterMetricFamily("benchmatrix_results", "Terminal records by status.", labels=["status"])
        for status, number in list(self.num_by_status.items()):
            results.add_metric([status], number)
        requests = CounterMetricFamily("benchmatrix_api_requests", "Requests to the API server.", labels=["request"])
        for request, number in list(self._connection.num_requests.items()) if self._connection else ():
            requests.add_metric([request], number)
        num_allowed = self._connection.rate_limiter.num_allowed if self._connection else 0
        yield from (repeats, results, requests)
        yield GaugeMetricFamily("benchmatrix_api_parallel_requests", "Requests allowed at once.", num_allowed)
        yield CounterMetricFamily("benchmatrix_preempted_pods", "Pods that their nodes took down.", self._num_preempted)
        yield CounterMetricFamily("benchmatrix_warnings", "Warnings given to the user.", self._num_warnings)


_LABELS = {"done": "done", "running": "running", "waiting": "waiting", "suspended": "queued", "to_submit": "to submit"}


def count_states(jobs: TrackedJobs) -> dict[str, int]:
    unfinished = jobs.list_unfinished()  # not all: this is called once a second
    known = [tracked.job for tracked in unfinished if tracked.state == "in-flight" and tracked.job is not None]
    running = sum(job.num_ready > 0 for job in known)
    suspended = sum(job.is_suspended for job in known)
    in_flight = jobs.count("in-flight", "submitting", "recording")
    return {
        "done": jobs.count("done"),
        "running": running,
        "waiting": in_flight - running - suspended,
        "suspended": suspended,
        "to_submit": jobs.count("to-submit"),
    }
