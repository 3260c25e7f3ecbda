"""How long kernels keep GPUs busy, from what a profiler saw; the steps of the pass and when there is none."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import pytest

from bench.measure.harness import DeviceTimer, Feed
from bench.measure.profile import DeviceActivity, measure_union, profile_steps, summarize_activities
from bench.schema import Device, Samples
from bench.worker.observe import Observer
from factories import make_cell

MICROSECONDS = 1_000.0


def make_activity(start: float, end: float, *, kind: Any = "kernel", device_index: int = 0) -> DeviceActivity:
    """Return an activity between two times in microseconds."""
    return DeviceActivity(
        device_index=device_index, kind=kind, start_ns=start * MICROSECONDS, end_ns=end * MICROSECONDS
    )


class ProfiledWorkload:
    """Counts steps; its profiler sees a kernel of 10 us and a copy of 2 us in each, on every one of `gpus`."""

    device_timer: DeviceTimer | None = None
    feed: Feed | None = None
    profiler_name = "torch.profiler"

    def __init__(self, *gpus: int, error: Exception | None = None) -> None:
        self._gpus = gpus
        self._error = error
        self.calls: list[str] = []

    def spin_up(self) -> None: ...

    def run_step(self) -> None:
        self.calls.append("step")

    def synchronize(self) -> None:
        self.calls.append("end")

    def reset_peak_memory(self) -> None:
        raise AssertionError("the peaks are those of the timed window")

    def device_kind(self) -> Device:
        return "gpu"

    def record_activities(self, run: Callable[[], None]) -> Sequence[DeviceActivity]:
        run()
        if self._error is not None:
            raise self._error
        starts = [100.0 * number for number in range(self.calls.count("step"))]
        return [
            activity
            for gpu in self._gpus
            for start in starts
            for activity in (
                make_activity(start, start + 10, device_index=gpu),
                make_activity(start + 20, start + 22, kind="copy", device_index=gpu),
            )
        ]


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], 0),
        ([(1, 3)], 2),
        ([(1, 3), (5, 6)], 3),  # a gap
        ([(1, 3), (2, 6)], 5),  # two streams at the same time
        ([(1, 9), (2, 3), (4, 10)], 9),  # one within another
        ([(1, 3), (3, 4)], 3),
        ([(1, 3), (1, 3)], 2),
    ],
)
def test_what_runs_at_once_counts_once_and_gaps_do_not_count(
    intervals: list[tuple[float, float]], expected: float
) -> None:
    assert measure_union(intervals) == expected


def test_each_gpu_is_summarised_by_itself_whatever_the_order_of_its_events() -> None:
    activities = [
        make_activity(15, 30),
        make_activity(0, 5, device_index=1),
        make_activity(40, 42, kind="copy"),
        make_activity(10, 20),
    ]
    first, second = summarize_activities(activities)
    assert (first.device_index, first.num_kernels, first.num_copies) == (0, 2, 1)
    assert first.busy_seconds == pytest.approx(22e-6)
    assert (second.device_index, second.num_kernels, second.num_copies) == (1, 1, 0)
    assert second.busy_seconds == pytest.approx(5e-6)


def test_the_busy_share_is_the_kernels_time_over_the_step_that_no_profiler_slowed_down() -> None:
    workload = ProfiledWorkload(0)
    profile = profile_steps(
        workload, workload.record_activities, source="tf.profiler", num_steps=5, center_step_seconds=48e-6
    )
    assert workload.calls == ["step", "end"] * 5
    assert (profile.source, len(profile.step_seconds)) == ("tf.profiler", 5)
    assert profile.kernel_seconds_per_step == pytest.approx(12e-6)
    assert profile.kernel_busy_share == pytest.approx(0.25)
    assert profile.profiled_busy_share == pytest.approx(12e-6 / median(profile.step_seconds[1:]))
    (gpu,) = profile.gpus
    assert (gpu.num_kernels, gpu.num_copies) == (5, 5)


@pytest.mark.parametrize("activities", [[], [make_activity(0, 1, kind="copy")]])
def test_a_profile_without_a_kernel_is_no_profile(activities: list[DeviceActivity]) -> None:
    workload = ProfiledWorkload()

    def record(run: Callable[[], None]) -> list[DeviceActivity]:
        run()
        return activities

    with pytest.raises(RuntimeError, match="torch.profiler recorded no kernel on a GPU"):
        profile_steps(workload, record, source="torch.profiler", num_steps=2, center_step_seconds=1.0)


SAMPLES = Samples(
    warmup_step_seconds=(1.0,), step_seconds=(1e-6, 24e-6, 1.0), device_step_seconds=None, reached_steady=True
)


def test_a_profiler_that_fails_is_noted_and_ends_nothing() -> None:
    workload: Any = ProfiledWorkload(0, error=RuntimeError("CUPTI_ERROR_NOT_INITIALIZED\nmore"))
    probes = Observer(make_cell(device="gpu"), 1)
    assert probes.profile_steps(workload, workload, SAMPLES) is None
    assert probes.failures == ["profiler pass: RuntimeError: CUPTI_ERROR_NOT_INITIALIZED"]
