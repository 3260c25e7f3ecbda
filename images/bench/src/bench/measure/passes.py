"""The passes beside the timed window: spinning up before it; steps back to back, steps that run on and, last, steps
under the framework's profiler, after it.

In the timed window the device falls idle between the end of a step and the launch of the next one. Back to back, as
people train, the next step is launched while the device works on the last: what a launch costs is hidden as far as it
is shorter than the step. A GPU that has been idle runs at a fraction of its clock and takes tenths of a second to raise
it: what frameworks time meanwhile says little about which algorithm is faster. A device that heats up is slower after a
minute than at first. Events around a step on the device (`device_step_seconds`) do not show how long kernels keep it
busy: they span the gaps between kernels.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from statistics import median
from time import perf_counter
from typing import Literal

from bench.measure.harness import Workload, run_steps
from bench.schema import DeviceProfile, GpuActivity, PipelinedWindow, SustainedRun

# A GPU raises its clocks within some tenths of a second (harness.STEADY_MIN_SECONDS): a second is twice as long.
SPIN_UP_SECONDS = 1.0
# Operations element by element on this many float32 values, 32 MiB: a matrix product would leave the workspace of its
# library in the memory peaks. They take about as long as an operation takes to launch, so the GPU hardly falls idle.
NUM_ELEMENTS = 8 * 2**20
OPERATIONS_PER_BURST = 100


def spin_up(run_burst: Callable[[], None]) -> None:
    """Call `run_burst`, which keeps the device busy for some milliseconds and waits for it, for SPIN_UP_SECONDS."""
    end = perf_counter() + SPIN_UP_SECONDS
    while perf_counter() < end:
        run_burst()


# More steps than the timed window's median gives for the length asked for: back to back they take less, up to 17 % for
# Conv6 on an H200.
LENGTH_RESERVE = 1.25
# One step alone has nothing to overlap with.
MIN_STEPS = 2
# Two seconds of the shortest steps that were seen (0.1 ms). A CUDA stream takes about 1,000 launches and makes the host
# wait beyond, and queued steps have no memory each: PyTorch and TensorFlow reuse it in the order of the stream, JAX
# starts few programs ahead. So this bounds the length of the window only.
MAX_STEPS = 20_000


def run_pipelined(workload: Workload, seconds: float, step_seconds: float) -> PipelinedWindow:
    expected = LENGTH_RESERVE * seconds / step_seconds
    num_steps = math.ceil(min(max(expected, MIN_STEPS), MAX_STEPS))
    run_step = workload.run_step
    workload.synchronize()
    start = perf_counter()
    for _ in range(num_steps):
        run_step()
    workload.synchronize()
    return PipelinedWindow(num_steps=num_steps, seconds=perf_counter() - start)


# Long enough that single outliers hardly move the mean of a window, short enough to follow a device that heats up over
# tens of seconds.
WINDOW_SECONDS = 5.0
# The speed is flat where it stays within this share for this long: the clock of a GPU at its power limit moves by steps
# of 15 MHz, about 1 %, and a heat sink takes tens of seconds to warm up.
FLAT_TOLERANCE = 0.01
FLAT_SECONDS = 30.0


def run_sustained(workload: Workload, max_seconds: float) -> SustainedRun:
    windows: list[tuple[float, float]] = []
    start = perf_counter()
    while True:
        window_start = perf_counter()
        num_steps = run_steps(workload, WINDOW_SECONDS)
        end = perf_counter()
        windows.append((end - window_start, (end - window_start) / num_steps))
        flat_after = find_flat_stretch(windows)
        if flat_after is not None or end - start >= max_seconds:
            return SustainedRun(
                window_step_seconds=tuple(step_seconds for _, step_seconds in windows),
                seconds=end - start,
                flat_after_seconds=flat_after,
            )


def find_flat_stretch(windows: list[tuple[float, float]]) -> float | None:
    """Return when the flat stretch that ends now began, in seconds from the start; None where there is none.

    `windows`: length and seconds per step of each. The stretch takes at least FLAT_SECONDS, and no two of its windows
    differ by more than FLAT_TOLERANCE.
    """
    ends = list(accumulate(seconds for seconds, _ in windows))
    starts = [0.0, *ends[:-1]]
    least = most = windows[-1][1]
    found = None
    for start, (_, step_seconds) in zip(reversed(starts), reversed(windows), strict=True):
        least, most = min(least, step_seconds), max(most, step_seconds)
        if most > (1 + FLAT_TOLERANCE) * least:
            break
        if ends[-1] - start >= FLAT_SECONDS:
            found = start
    return found


NANOSECOND = 1e-9
ProfilerName = Literal["torch.profiler", "tf.profiler", "jax.profiler"]


@dataclass(frozen=True, kw_only=True)
class DeviceActivity:
    """One kernel or copy on a GPU, in nanoseconds of any one clock."""

    device_index: int
    kind: Literal["kernel", "copy"]
    start_ns: float
    end_ns: float


RecordActivities = Callable[[Callable[[], None]], Sequence[DeviceActivity]]
"""Call a function under the framework's profiler, and return what the GPUs did meanwhile."""


def profile_steps(
    workload: Workload, record: RecordActivities, num_steps: int, center_step_seconds: float, *, source: ProfilerName
) -> DeviceProfile:
    """Run `num_steps` steps under the profiler, each to its end, and return how long the GPUs were busy.

    `center_step_seconds`: of the timed window. Raise RuntimeError where the profiler saw no kernel.
    """
    step_seconds: list[float] = []

    def run() -> None:
        for _ in range(num_steps):
            start = perf_counter()
            workload.run_step()
            workload.synchronize()
            step_seconds.append(perf_counter() - start)

    gpus = summarize_activities(record(run))
    if not any(gpu.num_kernels for gpu in gpus):
        raise RuntimeError(f"{source} recorded no kernel on a GPU")
    kernel_seconds = max(gpu.busy_seconds for gpu in gpus) / num_steps
    return DeviceProfile(
        source=source,
        step_seconds=tuple(step_seconds),
        gpus=gpus,
        kernel_seconds_per_step=kernel_seconds,
        kernel_busy_share=kernel_seconds / center_step_seconds,
        profiled_busy_share=kernel_seconds / median(step_seconds[1:] or step_seconds),
    )


def summarize_activities(activities: Iterable[DeviceActivity]) -> tuple[GpuActivity, ...]:
    ordered = sorted(activities, key=lambda activity: (activity.device_index, activity.start_ns))
    gpus = []
    for index, group in groupby(ordered, lambda activity: activity.device_index):
        own = list(group)
        num_kernels = sum(one.kind == "kernel" for one in own)
        busy_seconds = measure_union((one.start_ns, one.end_ns) for one in own) * NANOSECOND
        counts = {"num_kernels": num_kernels, "num_copies": len(own) - num_kernels}
        gpus.append(GpuActivity(device_index=index, busy_seconds=busy_seconds, **counts))
    return tuple(gpus)


def measure_union(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length that intervals (start, end) cover together, in their unit. They come in order of their starts.

    Streams run kernels at the same time: their sum can be longer than the step.
    """
    covered = 0.0
    latest = float("-inf")
    for start, end in intervals:
        covered += max(0.0, end - max(start, latest))
        latest = max(latest, end)
    return covered
