"""Measures a workload: times its first step, its warm-up and every step of the timed window. Knows no framework.

One step is timed from its call until the device has finished its work: the wall time is what a user waits for. Where
the framework has events on the device, the time between two of them is kept beside it.
"""

import gc
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from statistics import median
from time import perf_counter
from typing import Any, Protocol

from bench.data.feed import BatchFeed
from bench.errors import UserError
from bench.measure.levels import find_levels
from bench.probes import try_probe
from bench.probes.cpu import watch_cpus
from bench.schema import Cell, CpuUse, Device, Phases, Samples
from bench.schema.document import MIN_STEP_SECONDS

# The warm-up is over when the median of the last steps is within this share of the median of as many before them.
# Three steps each: fewer follow single outliers, more cost seconds on CPUs. 5% is below what is worth reporting.
STEADY_NUM_STEPS = 3
STEADY_TOLERANCE = 0.05
# One step each where a step takes a second or more: it is a mean over what makes single short steps differ.
STEADY_LONG_STEP_SECONDS = 1.0
# Nor before this time: a GPU raises its clocks for some tenths of a second, and six of its steps can take 3 ms.
STEADY_MIN_SECONDS = 0.5
# Nor before so many times the batches that an input pipeline can hold ready: they were prepared while the model
# compiled. Once they are used up the pipeline delivers at its own pace; the second time gives it room to settle there.
STEADY_NUM_QUEUES = 2
# Steps that jump between two levels make the window this many times as long at the most. They stay on a level for some
# seconds: four windows of two seconds see several jumps, and more time is better spent on another repeat.
MAX_LENGTHENING = 4
# Events are made before the window, for a fifth more steps than it is going to have by the steps of the warm-up.
EVENTS_PER_EXPECTED_STEP = 1.2
# No more than these at once: a fifth of a second to make, some tens of megabytes. More are made when they are used up.
MAX_EXPECTED_STEPS = 50_000


class DeviceTimer(Protocol):
    """Events on the device's own clock."""

    def make_event(self) -> Any:
        """Return a new event, ready to be recorded without delay."""

    def record(self, event: Any) -> None:
        """Queue an event behind all work queued so far."""

    def read_seconds(self, start: Any, end: Any) -> float:
        """Return the seconds between two events that have happened."""


class Workload:
    """A model with its data, ready on its device to be stepped."""

    device_timer: DeviceTimer | None = None
    feed: BatchFeed | None = None
    """The input pipeline; None: synthetic data."""

    def spin_up(self) -> None:
        """Keep the cell's GPUs busy until their clocks are up (bench.measure.passes)."""

    def run_step(self) -> None:
        """Start one step; may return before the device has finished it."""

    def synchronize(self) -> None:
        """Return when the device has finished everything started."""

    def reset_peak_memory(self) -> None:
        """Forget the peaks of the framework's allocator, as far as it can."""

    def device_kind(self) -> Device:
        """Return where the last step's result lives."""
        raise NotImplementedError

    def is_compiled(self) -> bool:
        """Return whether the steps ran as programs that the framework made of them, by what it shows of that."""
        raise NotImplementedError


WatchWindow = Callable[[], AbstractContextManager[None]]
"""Is entered just before a timed window and left just after it."""


class StepRecorder:
    """Records each step's time as the step ends, so that a measurement that is ended early keeps what it has."""

    def __init__(self, failures: list[str] | None = None) -> None:
        self.failures: list[str] = [] if failures is None else failures
        """One line for each thing beside the steps that could not be read."""
        self.warmup_steps: list[float] = []
        self.steps: list[float] = []
        self.data_waits: list[float] = []


def measure(
    workload: Workload,
    cell: Cell,
    phases: Phases,
    recorder: StepRecorder | None = None,
    watch_window: WatchWindow = nullcontext,
) -> tuple[Phases, Samples, CpuUse | None]:
    """Run first step, warm-up and timed window of `workload`; `recorder` receives each step as it ends.

    Returns `phases` completed, the raw samples, and who used the CPUs from just before the window to just after it. All
    times are wall seconds of `time.perf_counter`.
    """
    recorder = recorder or StepRecorder()
    durations, reached_steady = start_up_workload(workload, cell, recorder)
    window = TimedWindow(workload, recorder)
    window.prepare_events(_count_expected_steps(cell, recorder.warmup_steps))
    gc.collect()  # before the reset: what is garbage would count as the window's peak
    workload.reset_peak_memory()
    with watch_window():
        end_cpu_watch = watch_cpus(recorder.failures)
        steady_seconds = window.run(cell)
        cpu_use = end_cpu_watch()
    _check_clock("timed window", recorder.steps)
    samples = Samples(
        warmup_step_seconds=tuple(recorder.warmup_steps),
        step_seconds=tuple(recorder.steps),
        device_step_seconds=window.read_events(),
        reached_steady=reached_steady,
        data_wait_seconds=tuple(recorder.data_waits) if workload.feed else None,
        max_queued_batches=workload.feed.max_queued_batches if workload.feed else None,
        summarized_by="mean" if find_levels(recorder.steps) else "median",
    )
    return phases.model_copy(update={**durations, "steady_seconds": steady_seconds}), samples, cpu_use


def start_up_workload(workload: Workload, cell: Cell, recorder: StepRecorder) -> tuple[dict[str, float | None], bool]:
    """Run what comes before the timed window; return its seconds, as `Phases` names them, and if steps got steady."""
    spin_up_seconds = _time_call(workload.spin_up) if cell.device == "gpu" else None
    first_step_seconds = _time_call(lambda: _run_synchronized(workload))
    reached_steady, warmup_seconds = _warm_up(workload, cell, recorder.warmup_steps)
    _check_clock("warm-up", (first_step_seconds, *recorder.warmup_steps))
    durations = {
        "spin_up_seconds": spin_up_seconds,
        "first_step_seconds": first_step_seconds,
        "warmup_seconds": warmup_seconds,
    }
    return durations, reached_steady


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


class TimedWindow:
    """The timed window of one workload, run in one part or, where its steps have two levels, in several."""

    def __init__(self, workload: Workload, recorder: StepRecorder) -> None:
        self._workload = workload
        self._recorder = recorder
        self._events: list[tuple[Any, Any]] = []

    def prepare_events(self, num_steps: int) -> None:
        """Prepare events for so many more steps: making them between steps would leave work in their queue."""
        timer = self._workload.device_timer
        if timer is not None:
            self._events += [(timer.make_event(), timer.make_event()) for _ in range(num_steps)]
            self._workload.synchronize()

    def run(self, cell: Cell) -> float:
        num_steps, min_seconds = cell.num_steps, cell.min_seconds
        seconds = self._run_part(num_steps, min_seconds)
        length = 1
        while length < MAX_LENGTHENING and find_levels(self._recorder.steps):
            seconds += self._run_part(num_steps=length * num_steps, min_seconds=length * min_seconds)
            length *= 2
        return seconds

    def read_events(self) -> tuple[float, ...] | None:
        """Return the seconds between the two events of each step; None without events, or, noted, if one is wrong."""
        timer = self._workload.device_timer
        if timer is None:
            return None
        name, failures = "device times of the steps", self._recorder.failures  # the wall times stand without them
        events = self._events[: len(self._recorder.steps)]

        def read() -> tuple[float, ...]:
            seconds = tuple(timer.read_seconds(*pair) for pair in events)
            if min(seconds) <= 0:
                raise ValueError("an event of the GPU is not later than the one before it")
            return seconds

        return try_probe(failures, name, read, None)

    def _run_part(self, num_steps: int, min_seconds: float) -> float:
        """Time at least so many steps for at least so long; return the seconds that they took together."""
        workload, steps = self._workload, self._recorder.steps
        timer, feed = workload.device_timer, workload.feed
        # Looked up once: a step of a small model takes a tenth of a millisecond.
        run_step, synchronize, clock = workload.run_step, workload.synchronize, perf_counter
        append_wait, record = self._recorder.data_waits.append, timer.record if timer else None
        num_expected = len(steps) + num_steps
        synchronize()
        window_start = clock()
        while True:
            if record is None:
                start = clock()
                run_step()
            else:
                before, after = self._find_events(len(steps))
                record(before)
                start = clock()
                run_step()
                record(after)
            synchronize()
            end = clock()
            steps.append(end - start)
            if feed is not None:
                append_wait(feed.wait_seconds)
            if len(steps) >= num_expected and end - window_start >= min_seconds:
                return end - window_start

    def _find_events(self, index: int) -> tuple[Any, Any]:
        """Return the events of a step; where the steps got faster than expected, more are made first."""
        if index == len(self._events):
            self.prepare_events(min(index, MAX_EXPECTED_STEPS))
        return self._events[index]


def _check_clock(name: str, step_seconds: Sequence[float]) -> None:
    if min(step_seconds) < MIN_STEP_SECONDS:
        raise UserError(
            f"{name}: a step took {min(step_seconds):g} s by this machine's clock (CLOCK_MONOTONIC), which cannot tell "
            "its steps apart; look at /sys/devices/system/clocksource/clocksource0/current_clocksource, or give larger "
            "steps"
        )


def _count_expected_steps(cell: Cell, warmup_steps: list[float]) -> int:
    step_seconds = median(warmup_steps[-STEADY_NUM_STEPS:])
    expected = EVENTS_PER_EXPECTED_STEP * max(cell.num_steps, cell.min_seconds / step_seconds)
    return math.ceil(min(expected, MAX_EXPECTED_STEPS))


def _time_call(call: Callable[[], None]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def _run_synchronized(workload: Workload) -> None:
    workload.run_step()
    workload.synchronize()


def _warm_up(workload: Workload, cell: Cell, steps: list[float]) -> tuple[bool, float]:
    min_seconds = min(STEADY_MIN_SECONDS, cell.max_warmup_seconds)
    min_steps = STEADY_NUM_QUEUES * workload.feed.max_queued_batches if workload.feed else 0
    start = perf_counter()
    while True:
        steps.append(_time_call(lambda: _run_synchronized(workload)))
        seconds = perf_counter() - start
        if len(steps) < cell.num_warmup_steps:
            continue
        if len(steps) >= min_steps and seconds >= min_seconds and is_steady(steps):
            return True, seconds
        if seconds >= cell.max_warmup_seconds:
            return False, seconds
