"""Steps a tenant's workload from the rehearsal to the end of the window that all tenants have in common."""

from collections.abc import Callable
from time import perf_counter

from bench.measure.harness import StepRecorder, WatchWindow, Workload
from bench.probes.cpu import CpuWatch
from bench.schema import CommonWindow, CpuUse, Samples
from bench.tenants.meeting import ARRIVAL_SECONDS, POLL_SECONDS, NoCommonWindowError

# The tenants begin within a look at the store of each other (POLL_SECONDS): the pace is taken from the second half of a
# second, and of three steps at the least. Clocks of a GPU that fell idle are up again by then (bench.measure.passes).
REHEARSAL_SECONDS = 1.0
REHEARSAL_NUM_STEPS = 3
# The counters of GPU and CPUs are read so long before the window: reading them keeps nobody from stepping inside it.
WATCH_SECONDS = 0.1


class TenantStepper:
    """Runs one step after another, and notes when each began and ended."""

    def __init__(self, workload: Workload, recorder: StepRecorder, clock: Callable[[], float] = perf_counter) -> None:
        self._workload = workload
        self._recorder = recorder
        self._clock = clock
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._waits: list[float] = []

    def rehearse(self) -> float:
        """Step for REHEARSAL_SECONDS, and return the seconds per step of the second half."""
        begin = self._clock()
        while len(self._ends) < REHEARSAL_NUM_STEPS or self._clock() < begin + REHEARSAL_SECONDS:
            self._step()
        middle = len(self._ends) // 2
        return (self._ends[-1] - self._starts[middle]) / (len(self._ends) - middle)

    def await_window(self, find_window: Callable[[], CommonWindow | None]) -> CommonWindow:
        """Step until the window is set, and return it. Raise NoCommonWindowError where there is none."""
        deadline = self._clock() + ARRIVAL_SECONDS
        next_look = self._clock()
        while True:
            if self._clock() >= next_look:
                window = find_window()
                if window is not None:
                    break
                if self._clock() > deadline:
                    raise NoCommonWindowError(f"no window was set within {ARRIVAL_SECONDS:.0f} s")
                next_look = self._clock() + POLL_SECONDS
            self._step()
        if window.called_off is not None:
            raise NoCommonWindowError(window.called_off)
        return window

    def run(self, window: CommonWindow, watch: WatchWindow) -> CpuUse | None:
        start, end = _get_times(window)
        while self._clock() < start - WATCH_SECONDS:
            self._step()
        with watch():
            cpu_watch = CpuWatch(self._recorder.failures)
            while self._clock() < end:
                self._step()
            return cpu_watch.end()

    def select(self, window: CommonWindow, *, reached_steady: bool) -> tuple[Samples, float, float]:
        """Return the steps within the window, the seconds that they took, and how late the first one began.

        The recorder gets these steps. Raise NoCommonWindowError where the window does not hold a whole step, or this
        tenant was not there all the time.
        """
        start, end = _get_times(window)
        inside = [
            index
            for index, (begun, ended) in enumerate(zip(self._starts, self._ends, strict=True))
            if begun >= start and ended <= end
        ]
        if not inside:
            raise NoCommonWindowError(
                f"no step of this tenant lies within the window of {end - start:.1f} s as a whole"
            )
        if self._starts[0] > start or self._ends[-1] < end:
            raise NoCommonWindowError("this tenant did not step during the whole window")
        first, last = inside[0], inside[-1]
        self._recorder.steps += [self._ends[index] - self._starts[index] for index in inside]
        samples = Samples(  # without device_step_seconds: events of a GPU include what other tenants had it for
            warmup_step_seconds=tuple(self._recorder.warmup_steps),
            step_seconds=tuple(self._recorder.steps),
            reached_steady=reached_steady,
            data_wait_seconds=tuple(self._waits[index] for index in inside) if self._waits else None,
            max_queued_batches=self._workload.feed.max_queued_batches if self._workload.feed else None,
            summarized_by="mean",  # turns of time-slicing make some steps long: their median is no rate
        )
        return samples, self._ends[last] - self._starts[first], self._starts[first] - start

    def _step(self) -> None:
        begun = self._clock()
        self._workload.run_step()
        self._workload.synchronize()
        self._ends.append(self._clock())
        self._starts.append(begun)
        if self._workload.feed is not None:
            self._waits.append(self._workload.feed.wait_seconds)


def _get_times(window: CommonWindow) -> tuple[float, float]:
    assert window.start_seconds is not None  # it was not called off
    assert window.end_seconds is not None
    return window.start_seconds, window.end_seconds
