"""The progress of a run, here and on clusters: a live line, plain lines or JSON lines, and metrics for Prometheus."""

import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.live import Live
from rich.text import Text

from bench.errors import UserError
from bench.probes.cpu import TICKS_PER_SECOND, list_own_pids
from bench.schema import Device, Result, Run, Validity
from runner.matrix import Repeat
from runner.terminal import STATUS_STYLES, can_redraw, format_wait, join_printable

if TYPE_CHECKING:  # runs on this machine need neither
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from runner.kubernetes.connection import Connection
    from runner.kubernetes.tracked_jobs import Cost, TrackedJob, TrackedJobs

PROGRESS_SECONDS = 30.0
"""Between two lines of progress where no line is drawn again: 120 an hour, and nobody takes the run for stuck."""


class EstimateDocument(BaseModel):
    """Estimates how long the missing repeats of one device will take."""

    device: Device
    num_repeats: int
    num_known: int
    """Repeats of cells of which earlier results say how long they take; the others count like the nearest."""
    num_guessed: int = 0
    """Of these others, those of which not even that is known."""
    expected_hours: float
    """Node-hours."""
    most_hours: float
    """Node-hours if every repeat took its time limit."""
    expected_cost: float | None
    """Null: the nodes have no price."""
    most_cost: float | None = None
    currency: str | None
    price: str | None = None
    """What an hour costs and where that is from, in words."""


class RunEvent(BaseModel):
    """A line of `benchmatrix run --json`. Lines of `progress` and `ended` also count repeats by status, as in `ok: 3`.

    The description of a field begins with the events that have it; the others leave it out.
    """

    model_config = ConfigDict(extra="allow")

    event: Literal["estimated", "begun", "progress", "finished", "warning", "ended"]
    run_id: str | None = None
    """begun, ended."""
    matrix: str | None = None
    """begun, estimated: the name of the matrix."""
    store: str | None = None
    """begun, estimated: its URL."""
    num_cells: int | None = None
    """begun, estimated: planned cells."""
    num_repeats: int | None = None
    """begun, estimated: planned repeats, those that the store has already among them."""
    num_missing: int | None = None
    """estimated: repeats that are left to measure."""
    estimates: tuple[EstimateDocument, ...] | None = None
    """estimated: with --dry-run, which measures nothing, the only event."""
    done: int | None = None
    """progress: repeats that this command has measured."""
    running: int | None = None
    """progress: repeats that are being measured."""
    waiting: int | None = None
    """progress: Jobs that wait for a node or an image; 0 on this machine."""
    suspended: int | None = None
    """progress: Jobs that wait in a queue of Kueue; 0 on this machine."""
    to_submit: int | None = None
    """progress: repeats that have not begun: no Job, or their turn has not come."""
    seconds_left: float | None = None
    """progress: about how long the rest will take; null: not known yet."""
    cost: float | None = None
    """progress: what the run has cost about, where prices are known."""
    currency: str | None = None
    cell_id: str | None = None
    """finished."""
    repeat: int | None = None
    """finished: the number of the repeat, from 1."""
    job: str | None = None
    """finished: the name of the Job; null on this machine."""
    status: str | None = None
    """finished: how the repeat ended; `ok` is well. `missing`: its record does not count, and `error` says why."""
    step_seconds: float | None = None
    """finished: the centre of its step times; null: it has none."""
    verdict: str | None = None
    """finished: valid, suspect and so on; null: there is none."""
    error: str | None = None
    """finished: why it did not end well."""
    preempted: int | None = None
    """finished: how many pods of the repeat were preempted; 0 on this machine."""
    message: str | None = None
    """warning: what keeps cells from running."""
    is_ok: bool | None = None
    """ended: whether every planned repeat of the run has ended well."""
    reason: str | None = None
    """ended: why before everything was measured: `interrupted` or `cancelled`; null: for none of these reasons."""
    num_contaminated: int | None = None
    """ended: how many of the repeats that ended ok do not count, since others disturbed them."""
    report: str | None = None
    """ended: the path of the report; null: none was written."""


class RunEvents:
    """Prints the events of a run to a console, each as a JSON document on a line of its own."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def begin(self, run: Run, store_url: str) -> None:
        sizes = {"num_cells": len(run.cells), "num_repeats": run.num_repeats}
        self.report("begun", run_id=run.run_id, matrix=run.matrix, store=store_url, **sizes)

    def report(self, event: str, **values: Any) -> None:
        """Print an event; `values` are fields of RunEvent, and numbers of repeats by status."""
        document = RunEvent.model_validate({"event": event, **values})
        line = json.dumps(document.model_dump(exclude_unset=True))
        self._console.print(line, soft_wrap=True, markup=False, highlight=False)


DETAIL = re.compile(r": |, (?:more|less) than ")
"""Where the details of a reason begin, which the report has."""


def describe_end(result: Result, repeat: Repeat, *extras: str) -> Text:
    line = Text.assemble((f"{result.status:<8}", STATUS_STYLES.get(result.status, "red")), describe_repeat(repeat))
    for extra in extras:
        line.append(f"  {extra}")
    if result.samples:
        milliseconds = result.samples.center_step_seconds * 1e3
        line.append(f"  step {milliseconds:,.0f} ms" if milliseconds >= 100 else f"  step {milliseconds:.3g} ms")
    if result.validity and result.validity.verdict != "valid":
        line.append(f"  {describe_verdict(result.validity)}", style="yellow")
    if result.error:
        line.append(f"  {join_printable(result.error.message)}")
    return line


def describe_repeat(repeat: Repeat) -> str:
    return f"{repeat.planned.cell.slug}, repeat {repeat.number}/{repeat.planned.repeats}"


def describe_verdict(validity: Validity) -> str:
    """Return a verdict with the short form of its reason: `contaminated (others kept 1.4 of 2 cores busy)`."""
    messages = (reason.message for reason in validity.reasons if reason.verdict == validity.verdict)
    reason = join_printable(DETAIL.split(next(messages, ""), maxsplit=1)[0])
    return f"{validity.verdict} ({reason})" if reason else validity.verdict


class Progress(ABC):
    """Counts the repeats of a run that have ended, and shows how far it is.

    In a terminal that is a live line, elsewhere a line now and then, or `events` as JSON lines instead.
    """

    def __init__(self, console: Console, events: RunEvents | None = None) -> None:
        self._console = console
        self._events = events
        redraws = can_redraw(console) and events is None
        self._live = Live(console=console, auto_refresh=False, transient=True) if redraws else None
        self.num_by_status: Counter[str] = Counter()
        self._num_contaminated = self._num_warnings = 0
        self._started = self._next_line = time.monotonic()

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    @abstractmethod
    def count_states(self) -> dict[str, int]:
        """Return how many repeats are in which state, by the names of LABELS."""

    def estimate_seconds_left(self) -> float | None:
        counts = self.count_states()
        done = counts.get("done", 0)
        return (sum(counts.values()) - done) * (time.monotonic() - self._started) / done if done else None

    def describe_now(self) -> str:
        """Name the one thing that the run is doing at this moment; an empty text where there is none or several."""
        return ""

    def find_cost(self) -> "Cost | None":
        """Return what the run has cost so far, about; None if prices are not known."""
        return None

    def warn(self, message: str) -> None:
        self._num_warnings += 1
        if self._events:
            self._events.report("warning", message=message)
        else:
            self._console.print(f"warning: {join_printable(message)}", style="yellow", highlight=False, soft_wrap=True)

    def _count(
        self, repeat: Repeat, result: Result, *extras: str, job: str | None = None, num_preempted: int = 0
    ) -> None:
        self.num_by_status[result.status] += 1
        if result.status == "ok" and result.validity:
            self._num_contaminated += result.validity.is_contaminated
        if self._events:
            self._events.report(
                "finished",
                cell_id=result.cell_id,
                repeat=result.repeat,
                job=job,
                status=result.status,
                step_seconds=result.samples.center_step_seconds if result.samples else None,
                verdict=result.validity.verdict if result.validity else None,
                error=result.error.message if result.error else None,
                preempted=num_preempted,
            )
        else:
            self._console.print(describe_end(result, repeat, *extras), highlight=False, soft_wrap=True)

    def show(self) -> None:
        lines = [*filter(None, [self.describe_now()]), self.format_line()]
        if self._live:
            self._live.update(Text("\n".join(lines), overflow="ellipsis", no_wrap=True), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + PROGRESS_SECONDS
            if self._events:
                left, cost = self.estimate_seconds_left(), self.find_cost()
                said = {} if cost is None else {"cost": cost.amount, "currency": cost.currency}
                self._events.report("progress", **self.count_states(), **self.num_by_status, seconds_left=left, **said)
            else:
                self._console.print("; ".join(lines), highlight=False, soft_wrap=True)

    def format_line(self) -> str:
        counts, left, cost = self.count_states(), self.estimate_seconds_left(), self.find_cost()
        parts = [f"{counts[name]} {label}" for name, label in LABELS.items() if counts[name]]
        if failed := sum(number for status, number in self.num_by_status.items() if status != "ok"):
            parts.append(f"{failed} of the done failed")
        if self._num_contaminated:
            parts.append(f"{self._num_contaminated} contaminated")
        if left is not None:
            parts.append(f"about {format_wait(left)} left")
        if cost is not None:
            parts.append(f"about {cost} so far")
        return ", ".join(parts)


class LocalProgress(Progress):
    """The progress of a run on this machine, and who disturbs it. Changes once a second; has no thread.

    `retry_command`: measures contaminated repeats again; None: nobody is told who disturbs.
    """

    def __init__(
        self,
        console: Console,
        repeats: Sequence[Repeat],
        events: RunEvents | None = None,
        retry_command: str | None = None,
    ) -> None:
        super().__init__(console, events)
        self._left = list(repeats)
        self._began = self._started
        self._retry_command = retry_command
        self._others: Processes = {}
        self._num_contaminated_in_a_row = 0
        self._now: Repeat | None = None

    def start_repeat(self, repeat: Repeat) -> None:
        self._now = repeat
        self._began = time.monotonic()
        self._others = read_others() if self._retry_command else {}
        self.show()

    def finish_repeat(self, repeat: Repeat, result: Result) -> None:
        seconds = time.monotonic() - self._began
        self._left.remove(repeat)
        self._now = None
        self._count(repeat, result, f"{seconds:.1f} s")
        is_contaminated = result.validity is not None and result.validity.is_contaminated
        self._num_contaminated_in_a_row = self._num_contaminated_in_a_row + 1 if is_contaminated else 0
        if self._num_contaminated_in_a_row >= NUM_IN_A_ROW and self._retry_command:
            self._name_disturbers(seconds, self._retry_command)
            self._retry_command = None
        self.show()

    def _name_disturbers(self, seconds: float, retry_command: str) -> None:
        names = name_busiest(self._others, read_others(), seconds)
        busiest = f"; busiest beside the run: {', '.join(names)}" if names else ""
        self.warn(
            f"{NUM_IN_A_ROW} repeats in a row were contaminated and do not count{busiest}. End what "
            "disturbs and let the run go on, or press Ctrl-C: what is finished is kept. This measures the contaminated "
            f"repeats again, when the machine is quiet: {retry_command}"
        )

    def count_states(self) -> dict[str, int]:
        done, running = self.num_by_status.total(), int(self._now is not None)
        return {"done": done, "running": running, "waiting": 0, "suspended": 0, "to_submit": len(self._left) - running}

    def describe_now(self) -> str:
        if self._now is None:
            return ""
        return f"measuring {describe_repeat(self._now)}, {time.monotonic() - self._began:.0f} s"


class ClusterProgress(Progress):
    """The progress of a run on a cluster, which Prometheus can read."""

    def __init__(self, console: Console, events: RunEvents | None = None) -> None:
        super().__init__(console, events)
        self._num_preempted = 0
        self._jobs: TrackedJobs | None = None
        self._states: dict[str, int] = {}
        self._connection: Connection | None = None

    def serve_metrics(self, connection: "Connection", port: int) -> "CollectorRegistry":
        """Serve the counts of the run and of its requests at `/metrics`; return them."""
        from prometheus_client import CollectorRegistry, start_http_server

        self._connection, registry = connection, CollectorRegistry()
        registry.register(self)
        try:
            start_http_server(port, registry=registry)
        except OSError as error:
            raise UserError(f"--metrics-port {port}: {error.strerror}; name another port") from error
        return registry

    def tick(self, jobs: "TrackedJobs") -> None:
        self._jobs, self._states = jobs, count_states(jobs)
        self.show()

    def finish(self, tracked: "TrackedJob", result: Result) -> None:
        num_disrupted = len(tracked.disrupted_pod_uids)
        self._num_preempted += num_disrupted
        extras = [f"after {num_disrupted} preempted"] if num_disrupted else []
        self._count(tracked.repeat, result, *extras, job=tracked.name, num_preempted=num_disrupted)

    def count_states(self) -> dict[str, int]:
        return self._states

    def find_cost(self) -> "Cost | None":
        return None if self._jobs is None else self._jobs.cost

    def collect(self) -> Iterator["Metric"]:
        """Yield what a scrape reads, in a thread of its own."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        repeats = GaugeMetricFamily("benchmatrix_repeats", "Repeats of the run by state.", labels=["state"])
        for state, number in list(self._states.items()):
            repeats.add_metric([state], number)
        results = CounterMetricFamily("benchmatrix_results", "Terminal records by status.", labels=["status"])
        for status, number in list(self.num_by_status.items()):
            results.add_metric([status], number)
        requests = CounterMetricFamily("benchmatrix_api_requests", "Requests to the API server.", labels=["request"])
        for request, number in list(self._connection.num_requests.items()) if self._connection else ():
            requests.add_metric([request], number)
        yield from (repeats, results, requests)
        yield CounterMetricFamily("benchmatrix_preempted_pods", "Pods that their nodes took down.", self._num_preempted)
        yield CounterMetricFamily("benchmatrix_warnings", "Warnings given to the user.", self._num_warnings)


LABELS = {"done": "done", "running": "running", "waiting": "waiting", "suspended": "queued", "to_submit": "to go"}


def count_states(jobs: "TrackedJobs") -> dict[str, int]:
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


MIN_NAMED_CORES = 0.05
"""A process that takes less of a core disturbs nobody (a desktop's clock, an idle browser)."""
NUM_NAMES = 3
"""Processes that are named: who has more to close looks for them anyway."""
MAX_OTHER_SHARE = 0.10
"""Of the cores. As bench.verdicts.checks: a CPU cell that lacks a tenth of its cores is contaminated."""
NUM_IN_A_ROW = 2
"""One contaminated repeat may be a passing backup; after two, the next will most likely be so too."""

Processes = Mapping[tuple[int, int], tuple[str, float]]
"""The name of each process of others and its CPU seconds since it began, by its id and when it started: ids are given
again."""


def read_others() -> Processes:
    """Return the processes that this one did not start."""
    own, found = list_own_pids(), {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            head, _, tail = stat.read_text(errors="replace").rpartition(")")
            fields = tail.split()  # proc(5): behind the name the 12th and 13th are utime and stime, the 20th starttime
            seconds = (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
            if int(stat.parent.name) not in own:
                found[int(stat.parent.name), int(fields[19])] = (head.partition("(")[2], seconds)
    return found


def name_busiest(before: Processes, after: Processes, seconds: float) -> list[str]:
    """Return who kept cores busy between two readings, such as `ffmpeg (1.3 cores, process 4711)`, the busiest first.

    Nobody where these are too few cores to disturb: who is named is taken for the culprit.
    """
    cores = {key: (taken - before.get(key, ("", 0.0))[1]) / seconds for key, (_, taken) in after.items()}
    busiest = [key for key in sorted(cores, key=lambda key: -cores[key])[:NUM_NAMES] if cores[key] >= MIN_NAMED_CORES]
    if sum(cores[key] for key in busiest) <= MAX_OTHER_SHARE * len(os.sched_getaffinity(0)):
        return []
    return [f"{join_printable(after[key][0])} ({cores[key]:.1f} cores, process {key[0]})" for key in busiest]
