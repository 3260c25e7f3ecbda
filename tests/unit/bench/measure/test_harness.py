"""The harness, with a workload whose clock only its own steps move."""

from collections.abc import Iterator
from itertools import chain, count, cycle, repeat
from typing import Any

import pytest

from bench.data.feed import BatchFeed
from bench.errors import UserError
from bench.measure.harness import StepRecorder, is_steady, measure, run_steps
from bench.probes.cpu import CpuCounters, read_cpu_counters
from bench.schema import Cell, Phases, Samples
from bench.verdicts import judge_validity
from factories import make_cell, present
from scripted_workload import Clock, ScriptedTimer, ScriptedWorkload
from validity_inputs import make_inputs

BUILT = Phases(import_seconds=3.0, build_seconds=2.0)


def run(clock: Clock, cell: Cell, *durations: float) -> tuple[Phases, Samples]:
    """Measure a workload that takes `durations`, the last of them for ever."""
    phases, samples, _ = measure(ScriptedWorkload(clock, chain(durations, repeat(durations[-1]))), cell, BUILT)
    return phases, samples


# What is timed


def test_a_clock_that_cannot_tell_steps_apart_ends_the_measurement_in_words(clock: Clock) -> None:
    with pytest.raises(UserError, match="warm-up: a step took 0 s by this machine's clock"):
        run(clock, make_cell(num_warmup_steps=2, num_steps=2), 7.0, 0.0, 0.0, 40.0)
    with pytest.raises(UserError, match="timed window: a step took 0 s by this machine's clock"):
        run(clock, make_cell(num_warmup_steps=2, num_steps=2), 7.0, 20.0, 20.0, 0.0, 40.0)


def test_events_of_the_device_that_cannot_be_read_cost_only_the_devices_times(clock: Clock) -> None:
    class Unreadable(ScriptedTimer):
        def read_seconds(self, start: list[float], end: list[float]) -> float:
            raise RuntimeError("event was not recorded")

    recorder = StepRecorder()
    workload = ScriptedWorkload(clock, repeat(0.5), device_timer=Unreadable())
    _, samples, _ = measure(workload, make_cell(num_steps=2), BUILT, recorder)
    assert (samples.device_step_seconds, samples.step_seconds) == (None, (0.5, 0.5))
    assert recorder.failures == ["device times of the steps: RuntimeError: event was not recorded"]


def test_an_asynchronous_workload_is_timed_to_the_end_of_its_work_and_every_phase_holds_its_own_steps(
    clock: Clock,
) -> None:
    durations = chain([7.0], [0.5] * 6, [0.25, 0.75, 0.5])
    workload = ScriptedWorkload(clock, durations, is_asynchronous=True, launch_seconds=0.125)
    phases, samples, _ = measure(workload, make_cell(num_warmup_steps=6, num_steps=3), BUILT)
    assert samples.step_seconds == (0.375, 0.875, 0.625)
    assert samples.warmup_step_seconds == (0.625,) * 6
    assert (phases.first_step_seconds, phases.warmup_seconds, phases.steady_seconds) == (7.125, 3.75, 1.875)
    assert (phases.import_seconds, phases.build_seconds, phases.spin_up_seconds) == (3.0, 2.0, None)
    assert phases.is_complete
    assert (samples.device_step_seconds, samples.data_wait_seconds, samples.max_queued_batches) == (None, None, None)


def test_the_clock_is_read_before_a_step_and_after_the_device_has_finished(clock: Clock) -> None:
    run(clock, make_cell(num_warmup_steps=6, num_steps=2), 0.5)
    first_step = ["clock", "step", "synchronize", "clock"]
    warm_up = ["clock", *["clock", "step", "synchronize", "clock", "clock"] * 6]
    window = ["synchronize", "clock", *["clock", "step", "synchronize", "clock"] * 2]
    assert clock.log == [*first_step, *warm_up, "reset", *window]


def test_peaks_are_forgotten_after_the_warm_up_and_garbage_is_collected_before(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.measure.harness.gc.collect", lambda: clock.log.append("collect"))
    run(clock, make_cell(num_steps=1), 0.5)
    events = [entry for entry in clock.log if entry in ("step", "collect", "reset")]
    assert events == [*["step"] * 7, "collect", "reset", "step"]


def test_the_cpus_counters_are_read_just_before_and_just_after_the_window(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> CpuCounters:
        clock.log.append("counters")
        return read_cpu_counters()

    monkeypatch.setattr("bench.probes.cpu.read_cpu_counters", read)
    workload = ScriptedWorkload(clock, repeat(0.5))
    _, _, cpu_use = measure(workload, make_cell(num_steps=2), BUILT)
    window = ["synchronize", "clock", *["clock", "step", "synchronize", "clock"] * 2]
    assert clock.log[-len(window) - 3 :] == ["reset", "counters", *window, "counters"]
    assert present(cpu_use).own_cores > 0


def test_the_steps_of_the_sampling_pass_run_to_their_end_for_as_long_as_asked(clock: Clock) -> None:
    workload = ScriptedWorkload(clock, repeat(0.5), is_asynchronous=True)
    assert run_steps(workload, 2.0) == 4
    assert run_steps(workload, 2.1) == 5
    assert run_steps(workload, 0.0) == 1
    assert clock.now == 105.0
    assert [entry for entry in clock.log if entry != "clock"] == ["step", "synchronize"] * 10


def test_device_times_are_those_between_the_two_events_of_each_timed_step_read_when_the_window_is_over(
    clock: Clock,
) -> None:
    class SlowToRead(ScriptedTimer):
        def read_seconds(self, start: list[float], end: list[float]) -> float:
            clock.advance(1000.0)
            return super().read_seconds(start, end)

    timer = SlowToRead()
    durations = chain([7.0], [0.5] * 6, [0.25, 0.5, 0.125])
    workload = ScriptedWorkload(clock, durations, is_asynchronous=True, launch_seconds=0.25, device_timer=timer)
    phases, samples, _ = measure(workload, make_cell(num_steps=3), BUILT)
    assert samples.device_step_seconds == (0.25, 0.5, 0.125)
    assert samples.step_seconds == (0.5, 0.75, 0.375)
    assert (phases.steady_seconds, len(timer.events)) == (1.625, 6)


# How long it goes on


@pytest.mark.parametrize(
    ("num_steps", "min_seconds", "expected"), [(1, 0.0, 1), (5, 2.0, 5), (5, 2.5, 5), (5, 2.6, 6), (30, 2.0, 30)]
)
def test_the_window_has_at_least_so_many_steps_and_seconds(
    clock: Clock, num_steps: int, min_seconds: float, expected: int
) -> None:
    _, samples = run(clock, make_cell(num_steps=num_steps, min_seconds=min_seconds), 0.5)
    assert len(samples.step_seconds) == expected


@pytest.mark.parametrize(("num_warmup_steps", "expected"), [(1, 6), (7, 7)])
def test_a_series_that_is_steady_from_the_start_ends_the_warm_up_at_its_minimum(
    clock: Clock, num_warmup_steps: int, expected: int
) -> None:
    _, samples = run(clock, make_cell(num_warmup_steps=num_warmup_steps), 0.5)
    assert (len(samples.warmup_step_seconds), samples.reached_steady) == (expected, True)


@pytest.mark.parametrize(
    ("max_warmup_seconds", "expected"), [(30.0, (512, True)), (0.25, (256, True)), (0.5, (512, True))]
)
def test_a_series_of_short_steps_is_not_called_steady_before_half_a_second_or_the_cap(
    clock: Clock, max_warmup_seconds: float, expected: tuple[int, bool]
) -> None:
    # Steps of 1/1024 s: the first six agree after 6 ms.
    phases, samples = run(clock, make_cell(max_warmup_seconds=max_warmup_seconds), 1 / 1024)
    assert (len(samples.warmup_step_seconds), samples.reached_steady) == expected
    assert min(0.5, max_warmup_seconds) == phases.warmup_seconds


def test_the_warm_up_goes_on_until_the_series_is_steady(clock: Clock) -> None:
    # After the first step, in halves: 8 4 2 | 1 1 1 | 1 1: steady when the last three and the three before are all 1.
    _, samples = run(clock, make_cell(), 4.5, 4.0, 2.0, 1.0, 0.5)
    assert samples.warmup_step_seconds == (4.0, 2.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5)
    assert samples.reached_steady


def test_of_steps_of_a_second_and_more_two_that_agree_are_enough(clock: Clock) -> None:
    _, samples = run(clock, make_cell(max_warmup_seconds=100.0), 9.0, 8.0, 4.0, 1.03125, 1.0)
    assert (samples.warmup_step_seconds, samples.reached_steady) == ((8.0, 4.0, 1.03125, 1.0), True)


def test_a_series_that_never_becomes_steady_is_cut_at_the_cap_and_said_to_be_unsteady(clock: Clock) -> None:
    growing = [0.5 * 1.1**number for number in range(100)]
    phases, samples = run(clock, make_cell(max_warmup_seconds=10.0), *growing)
    # 0.55 (1.1^n - 1) / 0.1 reaches 10 s with n = 11: 10.19; after 10 steps it is 8.77.
    assert (len(samples.warmup_step_seconds), samples.reached_steady) == (11, False)
    assert phases.warmup_seconds == pytest.approx(10.19, abs=0.01)


def test_the_minimum_of_warm_up_steps_is_taken_even_beyond_the_cap(clock: Clock) -> None:
    phases, samples = run(clock, make_cell(num_warmup_steps=8, max_warmup_seconds=1.0), 5.0)
    assert (len(samples.warmup_step_seconds), phases.warmup_seconds) == (8, 40.0)


@pytest.mark.parametrize(
    ("expected", "steps"),
    [
        (False, [0.01] * 5),
        (True, [0.01] * 6),
        (True, [0.1, 0.1, 0.1, 0.105, 0.105, 0.105]),
        (False, [0.1, 0.1, 0.1, 0.106, 0.106, 0.106]),
        (False, [0.1, 0.1, 0.1, 0.094, 0.094, 0.094]),
        (True, [0.01, 0.05, 0.01, 0.01, 0.001, 0.01]),  # one outlier in each half
        (False, [0.01, 0.05, 0.05, 0.01, 0.01, 0.01]),
        (False, [1.0, 1.5]),  # steps of a second and more count one by one
        # A known limit: 1.5% per step is 4.6% over three steps; thirty steps later the step takes 1.56 times as long.
        (True, [0.01 * 1.015**number for number in range(6)]),
    ],
)
def test_steady_means_that_the_medians_of_twice_three_steps_differ_by_at_most_5_percent(
    expected: bool, steps: list[float]
) -> None:
    assert is_steady(steps) == expected


def test_a_gpu_is_spun_up_before_the_first_step_in_a_phase_of_its_own(clock: Clock) -> None:
    workload = ScriptedWorkload(clock, chain([7.0], repeat(0.5)))
    phases, _, _ = measure(workload, make_cell(device="gpu"), BUILT)
    assert [entry for entry in clock.log if entry != "clock"][:2] == ["spin-up", "step"]
    assert (phases.spin_up_seconds, phases.first_step_seconds) == (1.0, 7.0)
    assert phases.is_complete


# Input pipelines


class LoadingWorkload(ScriptedWorkload):
    """Steps of 0.25 s, each on the next batch of a loader that can hold 32 ready, all of them at first."""

    def __init__(self, clock: Clock, seconds_per_batch: float) -> None:
        super().__init__(clock, repeat(0.25))
        self._batches = BatchFeed(self._load(seconds_per_batch), 32)
        self.feed = self._batches

    def run_step(self) -> None:
        next(self._batches)
        super().run_step()

    def _load(self, seconds_per_batch: float) -> Iterator[tuple[Any, ...]]:
        ready = [self._clock.now] * 32
        for number in count():
            self._clock.advance(max(0.0, ready[number] - self._clock.now))
            # There is room for the next one as soon as this one is handed out.
            ready.append(max(self._clock.now, ready[-1]) + seconds_per_batch)
            yield (number,)


def measure_loading(clock: Clock, seconds_per_batch: float, **fields: Any) -> tuple[Phases, Samples]:
    cell = make_cell(num_steps=10, **fields)
    phases, samples, _ = measure(LoadingWorkload(clock, seconds_per_batch), cell, BUILT)
    return phases, samples


def test_a_slow_loader_is_found_although_its_queue_was_filled_during_compilation(clock: Clock) -> None:
    # The queue feeds 32 + 16 + 8 + ... steps at full speed while the loader makes a batch in every other step.
    phases, samples = measure_loading(clock, 0.5)
    assert samples.warmup_step_seconds[:40] == (0.25,) * 40  # the six that a warm-up needs otherwise are among them
    assert len(samples.warmup_step_seconds) >= 64
    assert samples.data_wait_seconds == (0.25,) * 10
    assert samples.step_seconds == (0.5,) * 10
    validity = judge_validity(make_inputs(samples=samples, phases=phases))
    assert validity.verdict == "input-bound"
    assert "50% of their time (250 ms each)" in validity.reasons[0].message


def test_a_loader_that_keeps_up_is_not_waited_for(clock: Clock) -> None:
    phases, samples = measure_loading(clock, 0.0)
    assert (len(samples.warmup_step_seconds), samples.reached_steady) == (64, True)
    assert (samples.data_wait_seconds, samples.max_queued_batches) == ((0.0,) * 10, 32)
    assert judge_validity(make_inputs(samples=samples, phases=phases)).verdict == "valid"


def test_a_warm_up_that_cannot_use_up_the_queue_in_its_time_is_cut_off(clock: Clock) -> None:
    _, samples = measure_loading(clock, 0.0, max_warmup_seconds=10.0)
    assert (len(samples.warmup_step_seconds), samples.reached_steady) == (40, False)


# Two levels


def test_a_window_with_two_levels_is_lengthened_four_times_and_summarised_by_its_mean(clock: Clock) -> None:
    levels = cycle([*[0.5] * 8, *[0.75] * 4])
    durations = chain([7.0], repeat(0.5, 6), levels)
    workload = ScriptedWorkload(clock, durations, is_asynchronous=True, device_timer=ScriptedTimer())
    phases, samples, _ = measure(workload, make_cell(num_steps=24), BUILT)
    assert (len(samples.step_seconds), phases.steady_seconds) == (96, 56.0)
    assert samples.device_step_seconds == samples.step_seconds  # there are events for every step
    assert samples.summarized_by == "mean"
    assert samples.center_step_seconds == pytest.approx(7 / 12)


def test_a_window_is_lengthened_only_as_long_as_two_levels_are_seen(clock: Clock) -> None:
    # A jump in the first 24 steps, which is an outlier among 48.
    workload = ScriptedWorkload(clock, chain(repeat(0.5, 7), repeat(0.75, 4), repeat(0.5)))
    _, samples, _ = measure(workload, make_cell(num_steps=24), BUILT)
    assert (len(samples.step_seconds), samples.summarized_by, samples.center_step_seconds) == (48, "median", 0.5)
