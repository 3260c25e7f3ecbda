"""What the cluster executor tells in; a live line, plain lines or JSON lines out."""

import json
import time
from collections import Counter
from statistics import median
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from bench.schema import Result
from runner.kubernetes.tasks import Task, Tasks
from runner.terminal_text import STATUS_STYLES, format_wait, join_printable

PLAIN_SECONDS = 30.0
"""Between two lines of progress where there is no terminal."""


class ClusterProgress:
    """Counts what is done and shows it. `as_json`: one JSON document per line instead."""

    def __init__(self, console: Console, *, as_json: bool) -> None:
        self._console = console
        self._as_json = as_json
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        if as_json:
            self._live = None
        self.num_by_status: Counter[str] = Counter()
        self._started = time.monotonic()
        self._next_line = self._started + PLAIN_SECONDS

    def __enter__(self) -> "ClusterProgress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def tick(self, tasks: Tasks) -> None:
        """Bring the live line up to date, or print a plain one now and then."""
        if self._live:
            self._live.update(Text(self.describe(tasks), overflow="ellipsis", no_wrap=True), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + PLAIN_SECONDS
            if self._as_json:
                self._print_json("progress", **count_states(tasks), **self.num_by_status)
            else:
                self._console.print(self.describe(tasks), soft_wrap=True)

    def finish_task(self, task: Task, result: Result) -> None:
        """Count the repeat and print its line."""
        self.num_by_status[result.status] += 1
        if self._as_json:
            error = result.error.message if result.error else None
            identity = {"cell_id": result.cell_id, "repeat": result.repeat, "job": task.name}
            self._print_json("finished", **identity, status=result.status, error=error, preempted=len(task.disrupted))
            return
        line = Text.assemble((f"{result.status:<8}", STATUS_STYLES[result.status]), task.repeat.planned.cell.slug)
        line.append(f"  repeat {result.repeat}/{task.repeat.planned.repeats}")
        if result.samples:
            line.append(f"  step {median(result.samples.step_seconds) * 1e3:.3g} ms")
        if task.disrupted:
            line.append(f"  after {len(task.disrupted)} preempted")
        if result.error:
            line.append(f"  {join_printable(result.error.message)}")
        self._console.print(line, highlight=False, soft_wrap=True)

    def warn(self, message: str) -> None:
        """Print what keeps cells from running."""
        if self._as_json:
            self._print_json("warning", message=message)
        else:
            self._console.print(f"warning: {join_printable(message)}", style="yellow", soft_wrap=True)

    def describe(self, tasks: Tasks) -> str:
        """Return the state of the run in a line."""
        counts = count_states(tasks)
        parts = [f"{counts[name]} {word}" for name, word in _WORDS.items() if counts[name]]
        if failed := sum(number for status, number in self.num_by_status.items() if status != "ok"):
            parts.append(f"{failed} of the done failed")
        done, elapsed = tasks.count("done"), time.monotonic() - self._started
        if done:
            rate = done / elapsed
            parts.append(f"{rate * 60:.3g}/min, about {format_wait((len(tasks) - done) / rate)} left")
        return ", ".join(parts)

    def _print_json(self, event: str, **values: Any) -> None:
        self._console.print(json.dumps({"event": event} | values), soft_wrap=True)


_WORDS = {"done": "done", "running": "running", "waiting": "waiting", "suspended": "queued", "to_submit": "to submit"}


def count_states(tasks: Tasks) -> dict[str, int]:
    """Return how many tasks are done, running, waiting for a node or an image, queued by Kueue, or to be submitted."""
    jobs = [task.job for task in tasks if task.state == "in-flight" and task.job is not None]
    running = sum(job.num_ready > 0 for job in jobs)
    suspended = sum(job.is_suspended for job in jobs)
    in_flight = tasks.count("in-flight", "submitting", "recording")
    return {
        "done": tasks.count("done"),
        "running": running,
        "waiting": in_flight - running - suspended,
        "suspended": suspended,
        "to_submit": tasks.count("to-submit"),
    }
