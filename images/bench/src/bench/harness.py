"""Measures a workload: times its first step, its warm-up and every step of the timed window. Knows no framework.

One step is timed from its call until the device has finished its work: the wall time is what a user waits for. Where
the framework has events on the device, the time between two of them is kept beside it.
"""

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from statistics import median
from time import perf_counter
from typing import Any, Protocol

from bench.probes.cpu_use import compare_cpu_counters, read_cpu_counters
from bench.schema import Cell, CpuUse, Device, Phases, Samples

# The warm-up is over when the median of the last steps is within this share of the median of as many before them.
# Three steps each: fewer follow single outliers, more cost seconds on CPUs. 5% is below what is worth reporting.
STEADY_NUM_STEPS = 3
STEADY_TOLERANCE = 0.05
# One step each where a step takes a second or more: it is a mean over what makes single short steps differ.
STEADY_LONG_STEP_SECONDS = 1.0
# Nor before this time: a GPU raises its clocks for some tenths of a second, and six of its steps can take 3 ms.
STEADY_MIN_SECONDS = 0.5


class DeviceTimer(Protocol):
    """Events on the device's own clock."""

    def make_event(self) -> Any:
        """Return a new event, ready to be recorded without delay."""

    def record(self, event: Any) -> None:
        """Queue an event behind all work queued so far."""

    def read_seconds(self, start: Any, end: Any) -> float:
        """Return the seconds between two events that have happened."""


class Workload(Protocol):
    """A model with its data, ready on its device to be stepped."""

    device_timer: DeviceTimer | None

    def run_step(self) -> None:
        """Start one step; may return before the device has finished it."""

    def synchronize(self) -> None:
        """Return when the device has finished everything started."""

    def reset_peak_memory(self) -> None:
        """Forget the peaks of the framework's allocator."""

    def device_kind(self) -> Device:
        """Return where the last step's result lives."""


class StepRecorder:
    """Records each step's time as the step ends, so that a measurement that is ended early keeps what it has."""

    def __init__(self) -> None:
        self.warmup_steps: list[float] = []
        self.steps: list[float] = []


def measure(
    workload: Workload,
    cell: Cell,
    phases: Phases,
    recorder: StepRecorder | None = None,
    watch_window: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> tuple[Phases, Samples, CpuUse]:
    """Run first step, warm-up and timed window of `workload`; `recorder` receives each step as it ends.

    `watch_window` is entered just before the window and left just after it.

    Returns `phases` completed, the raw samples, and who used the CPUs from just before the window to just after it. All
    times are wall seconds of `time.perf_counter`.
    """
    recorder = recorder or StepRecorder()
    first_step_seconds = _time_call(lambda: _run_synchronized(workload))
    reached_steady, warmup_seconds = _warm_up(workload, cell, recorder.warmup_steps)
    gc.collect()  # before the reset: what is garbage would count as the window's peak
    workload.reset_peak_memory()
    with watch_window():
        counters = read_cpu_counters()
        events, steady_seconds = _run_window(workload, cell, recorder.steps)
        cpu_use = compare_cpu_counters(counters, read_cpu_counters())
    samples = Samples(
        warmup_step_seconds=tuple(recorder.warmup_steps),
        step_seconds=tuple(recorder.steps),
        device_step_seconds=_read_events(workload.device_timer, events),
        reached_steady=reached_steady,
    )
    done = {
        "first_step_seconds": first_step_seconds,
        "warmup_seconds": warmup_seconds,
        "steady_seconds": steady_seconds,
    }
    return phases.model_copy(update=done), samples, cpu_use


def run_steps(workload: Workload, seconds: float) -> int:
    """Run steps as in the timed window, each to its end, for at least `seconds`; return their number, at least 1."""
    num_steps = 0
    end = perf_counter() + seconds
    while True:
        _run_synchronized(workload)
        num_steps += 1
        if perf_counter() >= end:
            return num_steps


def is_steady(step_seconds: list[float]) -> bool:
    """Return whether the last steps take as long as the ones before them (see the STEADY constants).

    Tells a transient from a plateau, no more: a drift below 1.6% per step passes, and so does a plateau that ends
    later. Fast and slow steps in turns never pass. The raw series is stored: a reader can cut the warm-up elsewhere.
    """
    num_steps = 1 if step_seconds[-1] >= STEADY_LONG_STEP_SECONDS else STEADY_NUM_STEPS
    if len(step_seconds) < 2 * num_steps:
        return False
    last = median(step_seconds[-num_steps:])
    before = median(step_seconds[-2 * num_steps : -num_steps])
    return abs(last - before) <= STEADY_TOLERANCE * before


def _time_call(call: Callable[[], None]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def _run_synchronized(workload: Workload) -> None:
    workload.run_step()
    workload.synchronize()


def _warm_up(workload: Workload, cell: Cell, steps: list[float]) -> tuple[bool, float]:
    """Append the step times; return whether they became steady, and the seconds that the whole warm-up took."""
    min_seconds = min(STEADY_MIN_SECONDS, cell.max_warmup_seconds)
    start = perf_counter()
    while True:
        steps.append(_time_call(lambda: _run_synchronized(workload)))
        seconds = perf_counter() - start
        if len(steps) < cell.num_warmup_steps:
            continue
        if seconds >= min_seconds and is_steady(steps):
            return True, seconds
        if seconds >= cell.max_warmup_seconds:
            return False, seconds


def _run_window(workload: Workload, cell: Cell, steps: list[float]) -> tuple[list[tuple[Any, Any]], float]:
    """Append the wall seconds of the timed steps; return their event pairs, and the seconds of the window."""
    events: list[tuple[Any, Any]] = []
    timer = workload.device_timer
    workload.synchronize()
    window_start = perf_counter()
    while True:
        if timer is None:
            start = perf_counter()
            workload.run_step()
        else:  # the clock stands still while events are made: a step of a small model is launched in a millisecond
            before, after = timer.make_event(), timer.make_event()
            timer.record(before)
            start = perf_counter()
            workload.run_step()
            timer.record(after)
            events.append((before, after))
        workload.synchronize()
        end = perf_counter()
        steps.append(end - start)
        if len(steps) >= cell.num_steps and end - window_start >= cell.min_seconds:
            return events, end - window_start


def _read_events(timer: DeviceTimer | None, events: list[tuple[Any, Any]]) -> tuple[float, ...] | None:
    if timer is None:
        return None
    return tuple(timer.read_seconds(start, end) for start, end in events)
