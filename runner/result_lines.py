"""Say in a few words how a repeat ended, for progress lines of runs on this machine and on clusters."""

import re

from rich.text import Text

from bench.schema import Result, Validity
from runner.terminal_text import STATUS_STYLES, join_printable

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
