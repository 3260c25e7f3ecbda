"""The passes after the window: back to back, until the speed is flat, and under a profiler."""

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

import pytest

from bench.measure.passes import (
    DeviceActivity,
    find_flat_stretch,
    profile_steps,
    run_pipelined,
    run_sustained,
    summarize_activities,
)
from scripted_workload import Clock, ScriptedWorkload


def test_steps_are_synchronised_once_before_and_once_after(clock: Clock) -> None:
    workload = ScriptedWorkload(clock, repeat(0.25), is_asynchronous=True)
    window = run_pipelined(workload, 1.0, 0.5)
    # A fourth more steps than 1.0 / 0.5, rounded up.
    assert clock.log == ["synchronize", "clock", *["step"] * 3, "synchronize", "clock"]
    assert (window.num_steps, window.seconds, window.step_seconds) == (3, 0.75, 0.25)


@pytest.mark.parametrize(("step_seconds", "expected"), [(100.0, 2), (0.5, 3), (0.01, 125), (1e-6, 20_000)])
def test_the_number_of_steps_follows_from_a_synchronised_step_within_bounds(
    clock: Clock, step_seconds: float, expected: int
) -> None:
    workload = ScriptedWorkload(clock, repeat(step_seconds), is_asynchronous=True)
    assert run_pipelined(workload, 1.0, step_seconds).num_steps == expected


@pytest.mark.parametrize(
    ("durations", "max_seconds", "ends", "flat_after", "seconds"),
    [
        (repeat(0.5), 600.0, (0.5, 0.5), 0.0, 30.0),
        # 20 s at 0.5 s a step, then 0.625 s for ever: 8 steps in each window of 5 s.
        (chain(repeat(0.5, 40), repeat(0.625)), 600.0, (0.5, 0.625), 20.0, 50.0),
        ((0.5 * 1.001**number for number in range(10_000)), 60.0, None, None, pytest.approx(63.0, abs=3.0)),
    ],
    ids=["flat", "slows down", "keeps falling"],
)
def test_a_sustained_run_ends_after_a_flat_stretch_or_when_its_time_is_up(
    clock: Clock,
    durations: Iterator[float],
    max_seconds: float,
    ends: tuple[float, float] | None,
    flat_after: float | None,
    seconds: float,
) -> None:
    sustained = run_sustained(ScriptedWorkload(clock, durations, is_asynchronous=True), max_seconds)
    assert (sustained.flat_after_seconds, sustained.seconds) == (flat_after, seconds)
    assert ends in (None, (sustained.window_step_seconds[0], sustained.window_step_seconds[-1]))


@pytest.mark.parametrize(("last", "expected"), [(1.0099, 0.0), (1.0101, None)])
def test_windows_within_one_percent_of_each_other_are_flat(last: float, expected: float | None) -> None:
    assert find_flat_stretch([*[(5.0, 1.0)] * 6, (5.0, last)]) == expected


MICROSECONDS = 1_000.0


def make_activity(start: float, end: float, *, kind: Any = "kernel", device_index: int = 0) -> DeviceActivity:
    """Return an activity between two times in microseconds."""
    return DeviceActivity(
        device_index=device_index, kind=kind, start_ns=start * MICROSECONDS, end_ns=end * MICROSECONDS
    )


def test_each_gpu_is_summarised_by_itself_and_what_runs_at_once_counts_once() -> None:
    activities = [
        make_activity(15, 30),  # two streams at the same time
        make_activity(16, 17),
        make_activity(0, 5, device_index=1),
        make_activity(40, 42, kind="copy"),
        make_activity(10, 20),
    ]
    first, second = summarize_activities(activities)
    assert (first.device_index, first.num_kernels, first.num_copies) == (0, 3, 1)
    assert first.busy_seconds == pytest.approx(22e-6)
    assert (second.device_index, second.num_kernels, second.num_copies) == (1, 1, 0)
    assert second.busy_seconds == pytest.approx(5e-6)


def test_the_busy_share_is_the_kernels_time_over_the_step_that_no_profiler_slowed_down(clock: Clock) -> None:
    workload = ScriptedWorkload(clock, repeat(60e-6))

    def record(run: Callable[[], None]) -> list[DeviceActivity]:
        run()
        kernels = [make_activity(100.0 * number, 100.0 * number + 10) for number in range(5)]
        copies = [make_activity(100.0 * number + 20, 100.0 * number + 22, kind="copy") for number in range(5)]
        return kernels + copies

    profile = profile_steps(workload, record, source="tf.profiler", num_steps=5, center_step_seconds=48e-6)
    assert [entry for entry in clock.log if entry != "clock"] == ["step", "synchronize"] * 5
    assert profile.source == "tf.profiler"
    assert profile.step_seconds == pytest.approx((60e-6,) * 5)
    assert profile.kernel_seconds_per_step == pytest.approx(12e-6)
    assert profile.kernel_busy_share == pytest.approx(0.25)
    assert profile.profiled_busy_share == pytest.approx(0.2)
    (gpu,) = profile.gpus
    assert (gpu.num_kernels, gpu.num_copies) == (5, 5)


def test_a_profile_without_a_kernel_is_no_profile(clock: Clock) -> None:
    workload = ScriptedWorkload(clock, repeat(1.0))

    def record(run: Callable[[], None]) -> list[DeviceActivity]:
        run()
        return [make_activity(0, 1, kind="copy")]

    with pytest.raises(RuntimeError, match="torch.profiler recorded no kernel on a GPU"):
        profile_steps(workload, record, source="torch.profiler", num_steps=2, center_step_seconds=1.0)
