"""Print what happens in a run as JSON lines, with the same events on this machine and on clusters."""

import json
import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.text import Text

from bench.schema import Result, Run, Validity
from runner.terminal import STATUS_STYLES, join_printable

PROGRESS_SECONDS = 30.0
"""Between two lines of progress where no line is drawn again: 120 an hour, and nobody takes the run for stuck."""


class EstimateDocument(BaseModel):
    """What the missing repeats of one device will take."""

    device: str
    num_repeats: int
    num_known: int
    """Repeats of cells of which earlier results say how long they take; the others count like the nearest, or by a
    guess, as `run --dry-run` says."""
    expected_hours: float
    """Node-hours."""
    most_hours: float
    """Node-hours if every repeat took its time limit."""
    expected_cost: float | None
    """Null: the nodes have no price."""
    currency: str | None


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
        """Print which run is measured."""
        sizes = {"num_cells": len(run.cells), "num_repeats": run.num_repeats}
        self.report("begun", run_id=run.run_id, matrix=run.matrix, store=store_url, **sizes)

    def finish(
        self, result: Result, *, job: str | None = None, num_preempted: int = 0, fault: str | None = None
    ) -> None:
        """Print how a repeat ended; `fault`: why its record does not count, and nothing of what it says is printed."""
        said: dict[str, Any] = {
            "status": result.status,
            "step_seconds": result.samples.center_step_seconds if result.samples else None,
            "verdict": result.validity.verdict if result.validity else None,
            "error": result.error.message if result.error else None,
        }
        if fault is not None:
            said = dict.fromkeys(said) | {"status": MISSING, "error": describe_fault(fault)}
        self.report("finished", cell_id=result.cell_id, repeat=result.repeat, job=job, **said, preempted=num_preempted)

    def report(self, event: str, **values: Any) -> None:
        """Print an event; `values` are fields of RunEvent, and numbers of repeats by status."""
        document = RunEvent.model_validate({"event": event, **values})
        line = json.dumps(document.model_dump(exclude_unset=True))
        self._console.print(line, soft_wrap=True, markup=False, highlight=False)


MISSING = "missing"
"""The status of a repeat without a record that counts, as the collector has it."""
DETAIL = re.compile(r": |, (?:more|less) than ")
"""Where the details of a reason begin, which the report has."""


def describe_end(result: Result, slug: str, planned: int, *extras: str, fault: str | None = None) -> Text:
    """Return the line of a repeat that has its record: of how many, status, step time, verdict and reason.

    `slug`: of its cell, `planned`: its number of repeats. `extras`: what stands before the step time. `fault`: why the
    record does not count; nothing of what it says is shown then.
    """
    status = result.status if fault is None else MISSING
    line = Text.assemble((f"{status:<8}", STATUS_STYLES.get(status, "red")), slug)
    line.append(f"  repeat {result.repeat}/{planned}")
    for extra in extras:
        line.append(f"  {extra}")
    if fault is not None:
        line.append(f"  {describe_fault(fault)}")
        return line
    if result.samples:
        milliseconds = result.samples.center_step_seconds * 1e3
        line.append(f"  step {milliseconds:,.0f} ms" if milliseconds >= 100 else f"  step {milliseconds:.3g} ms")
        if (factor := find_lengthening(result)) > 1:
            line.append(f"  window {factor} times as long (steps on two levels)")
    if result.validity and result.validity.verdict != "valid":
        line.append(f"  {describe_verdict(result.validity)}", style="yellow")
    if result.error:
        line.append(f"  {join_printable(result.error.message)}")
    return line


def describe_fault(fault: str) -> str:
    """Return that a record does not count, and why."""
    return f"its record does not count: {join_printable(fault)}"


def describe_verdict(validity: Validity) -> str:
    """Return a verdict with the short form of its reason: `contaminated (others kept 1.4 of 2 cores busy)`."""
    messages = (reason.message for reason in validity.reasons if reason.verdict == validity.verdict)
    reason = join_printable(DETAIL.split(next(messages, ""), maxsplit=1)[0])
    return f"{validity.verdict} ({reason})" if reason else validity.verdict


def find_lengthening(result: Result) -> int:
    """Return how many times as long as its cell asks for the timed window was: 1, or 2 or 4 for steps on two levels.

    A window that was not lengthened ends with the first step that has its number and its time, so that it never has
    twice of both. The window of a cell with tenants lasts until the last of them has its own.
    """
    cell, seconds = result.cell, result.phases.steady_seconds
    if result.samples is None or seconds is None or result.tenancy is not None:
        return 1
    num_steps = len(result.samples.step_seconds)
    factors = (
        factor
        for factor in (4, 2)
        if num_steps >= factor * cell.num_steps and seconds >= factor * cell.min_seconds and num_steps > 2
    )
    return next(factors, 1)
