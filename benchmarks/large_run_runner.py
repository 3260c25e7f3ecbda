"""The runner that large_run.py measures: `benchmatrix run --no-report` with a folder as its store.

Beside what users see, it prints a line of JSON at each stage and every half a minute: seconds, CPU seconds, MiB,
requests.
"""

import json
import resource
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402

from bench.store import Store  # noqa: E402
from runner.kubernetes.connection import Connection  # noqa: E402
from runner.kubernetes.run import ClusterRun, ClusterTarget  # noqa: E402
from runner.kubernetes.tracked_jobs import TrackedJobs  # noqa: E402
from runner.progress import ClusterProgress  # noqa: E402
from runner.runs import NO_RETRIES  # noqa: E402

FIGURE_SECONDS = 30.0


class Figures:
    """Prints what the runner has taken so far."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._started = time.monotonic()

    def print(self, stage: str) -> None:
        """Print the figures, with the stage that is over."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        seconds = time.monotonic() - self._started
        cpu, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        figures = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1), "mib_at_most": round(memory)}
        print(json.dumps({"stage": stage} | figures | {"requests": self._connection.num_requests}), flush=True)


class MeteredProgress(ClusterProgress):
    """The progress that users see, and the figures."""

    def __init__(self, console: Console, figures: Figures, connection: Connection) -> None:
        super().__init__(console)
        self._figures, self._connection = figures, connection
        self._next_figures = 0.0
        self._has_created = False

    def tick(self, jobs: TrackedJobs) -> None:
        """Print the figures when what is missing is known, when the first Job was created, and now and then."""
        super().tick(jobs)
        has_created = bool(self._connection.num_requests["create jobs"])
        if time.monotonic() >= self._next_figures or has_created != self._has_created:
            stage = "running" if has_created == self._has_created else "first Jobs created"
            self._next_figures, self._has_created = time.monotonic() + FIGURE_SECONDS, has_created
            self._figures.print(f"{stage}, {jobs.count('done')} of {len(jobs)} done")


def main() -> None:
    """Measure the run of a folder that large_run.py made."""
    folder, context, max_in_flight = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    connection = Connection(context=context)
    figures = Figures(connection)
    figures.print("imports")
    # Only the kubelets write records, and they have the folder: so the runner takes it for a bucket.
    store = Store(url="s3://bucket/large", backend=Store.open(f"file://{folder}/store").backend)
    run = ClusterRun(
        matrix=str(folder / "large.yaml"),
        target=ClusterTarget.find(context, str(folder / "mine.yaml"), None, None),
        store=store,
        run_id="large",
        start_new=False,
        retries=NO_RETRIES,
        max_in_flight=max_in_flight,
        unschedulable_seconds=900.0,
    )
    chosen = run.choose_run()
    figures.print("plan")
    console = Console(markup=False, emoji=False, highlight=False)
    with MeteredProgress(console, figures, connection) as progress:
        run.measure(chosen, connection, progress, console)
    figures.print("end")


if __name__ == "__main__":
    main()
