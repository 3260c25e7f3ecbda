"""Measures how long kernels keep the GPUs busy: steps under the framework's profiler, in a pass of their own.

Events around a step on the device (`device_step_seconds`) do not show it: they span the gaps between kernels.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from time import perf_counter
from typing import Literal

from bench.measure.harness import Workload
from bench.schema import DeviceProfile, GpuActivity

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
