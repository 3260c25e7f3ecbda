"""Prometheus metrics of a runner: the progress of its run and its requests to the API server."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bench.errors import UserError
from bench.schema import Result
from runner.kubernetes.connection import Connection
from runner.kubernetes.observer import ClusterObserver
from runner.kubernetes.progress import ClusterProgress, count_states
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs


def observe_with_metrics(
    progress: ClusterProgress, connection: Connection, port: int | None, more: Collector | None = None
) -> ClusterObserver:
    """Return an observer that shows progress and, with a port, serves metrics at `/metrics` as well, and `more`."""
    if port is None:
        return progress
    observer = MeteredObserver(progress=progress, connection=connection)
    registry = CollectorRegistry()
    registry.register(observer)
    if more is not None:
        registry.register(more)
    try:
        start_http_server(port, registry=registry)
    except OSError as error:
        raise UserError(f"--metrics-port {port}: {error.strerror}; name another port") from error
    return observer


@dataclass(kw_only=True)
class MeteredObserver(Collector):
    """Passes every report on, and keeps the counts that a scrape reads."""

    progress: ClusterProgress
    connection: Connection
    _states: dict[str, int] = field(default_factory=dict)
    _num_warnings: int = 0
    _num_preempted: int = 0

    def tick(self, jobs: TrackedJobs) -> None:
        """Count the repeats by state."""
        self._states = count_states(jobs)
        self.progress.tick(jobs)

    def finish(self, tracked: TrackedJob, result: Result) -> None:
        """Count the pods that were preempted before."""
        self._num_preempted += len(tracked.disrupted_pod_uids)
        self.progress.finish(tracked, result)

    def warn(self, message: str) -> None:
        self._num_warnings += 1
        self.progress.warn(message)

    def collect(self) -> Iterator[Metric]:
        repeats = GaugeMetricFamily("benchmatrix_repeats", "Repeats of the run by state.", labels=["state"])
        for state, number in list(self._states.items()):
            repeats.add_metric([state], number)
        yield repeats
        results = CounterMetricFamily("benchmatrix_results", "Terminal records by status.", labels=["status"])
        for status, number in list(self.progress.num_by_status.items()):
            results.add_metric([status], number)
        yield results
        requests = CounterMetricFamily("benchmatrix_api_requests", "Requests to the API server.", labels=["request"])
        for request, number in list(self.connection.num_requests.items()):
            requests.add_metric([request], number)
        yield requests
        yield GaugeMetricFamily(
            "benchmatrix_api_parallel_requests",
            "Requests allowed at once.",
            value=self.connection.rate_limiter.num_allowed,
        )
        yield CounterMetricFamily("benchmatrix_preempted_pods", "Pods that their nodes took down.", self._num_preempted)
        yield CounterMetricFamily("benchmatrix_warnings", "Warnings given to the user.", self._num_warnings)
