"""How the measuring loop deals with clocks that have to rise, with input pipelines and with steps of two levels."""

from collections.abc import Iterator
from itertools import chain, cycle, repeat
from typing import Any

import pytest

from bench.data.feed import BatchFeed
from bench.measure.harness import measure
from bench.schema import Phases, Samples
from bench.verdicts import judge_validity
from factories import make_cell
from scripted_workload import Clock, ScriptedTimer, ScriptedWorkload
from validity_inputs import make_inputs

BUILT = Phases(import_seconds=3.0, build_seconds=2.0)
Batches = Iterator[tuple[Any, ...]]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("bench.measure.harness.perf_counter", clock.read)
    monkeypatch.setattr("bench.data.feed.perf_counter", clock.read)
    return clock


class LoadingWorkload(ScriptedWorkload):
    """Steps of 0.25 s, each on the next batch of its feed."""

    def __init__(self, clock: Clock, batches: Batches, max_queued_batches: int) -> None:
        super().__init__(clock, repeat(0.25))
        self.feed = BatchFeed(batches, max_queued_batches)

    def run_step(self) -> None:
        assert isinstance(self.feed, BatchFeed)
        next(self.feed)
        super().run_step()


def load_slowly(clock: Clock, queue_size: int, seconds_per_batch: float) -> Batches:
    """Yield batches of a loader whose queue was full when the first was asked for; it makes one after the other."""
    ready = [clock.now] * queue_size
    for number in range(10**9):
        clock.advance(max(0.0, ready[number] - clock.now))
        # There is room for the next one as soon as this one is handed out.
        ready.append(max(clock.now, ready[-1]) + seconds_per_batch)
        yield (number,)


def load_at_once() -> Batches:
    yield from ((number,) for number in range(10**9))


# Clocks that have to rise


def test_a_gpu_is_spun_up_before_the_first_step_in_a_phase_of_its_own(clock: Clock) -> None:
    workload = ScriptedWorkload(clock, chain([7.0], repeat(0.5)))
    phases, _, _ = measure(workload, make_cell(device="gpu"), BUILT)
    assert [entry for entry in clock.log if entry != "clock"][:2] == ["spin-up", "step"]
    assert (phases.spin_up_seconds, phases.first_step_seconds) == (1.0, 7.0)
    assert phases.is_complete


def test_a_cpu_is_not_spun_up(clock: Clock) -> None:
    phases, _, _ = measure(ScriptedWorkload(clock, repeat(0.5)), make_cell(), BUILT)
    assert "spin-up" not in clock.log
    assert phases.spin_up_seconds is None
    assert phases.is_complete


# Input pipelines


def measure_loading(clock: Clock, batches: Batches, **fields: Any) -> tuple[Phases, Samples]:
    workload = LoadingWorkload(clock, batches, max_queued_batches=32)
    phases, samples, _ = measure(workload, make_cell(num_steps=10, **fields), BUILT)
    return phases, samples


def test_a_slow_loader_is_found_although_its_queue_was_filled_during_compilation(clock: Clock) -> None:
    # The queue feeds 32 + 16 + 8 + ... steps at full speed while the loader makes a batch in every other step.
    phases, samples = measure_loading(clock, load_slowly(clock, 32, 0.5))
    assert samples.warmup_step_seconds[:40] == (0.25,) * 40  # the six that a warm-up needs otherwise are among them
    assert len(samples.warmup_step_seconds) >= 64
    assert samples.data_wait_seconds == (0.25,) * 10
    assert samples.step_seconds == (0.5,) * 10
    validity = judge_validity(make_inputs(samples=samples, phases=phases))
    assert validity.verdict == "input-bound"
    assert "50% of their time (250 ms each)" in validity.reasons[0].message


def test_a_loader_that_keeps_up_is_not_waited_for(clock: Clock) -> None:
    phases, samples = measure_loading(clock, load_at_once())
    assert (len(samples.warmup_step_seconds), samples.reached_steady) == (64, True)
    assert (samples.data_wait_seconds, samples.max_queued_batches) == ((0.0,) * 10, 32)
    assert judge_validity(make_inputs(samples=samples, phases=phases)).verdict == "valid"


def test_a_warm_up_that_cannot_use_up_the_queue_in_its_time_is_cut_off(clock: Clock) -> None:
    _, samples = measure_loading(clock, load_at_once(), max_warmup_seconds=10.0)
    assert (len(samples.warmup_step_seconds), samples.reached_steady) == (40, False)


def test_steps_on_synthetic_data_record_no_waits(clock: Clock) -> None:
    _, samples, _ = measure(ScriptedWorkload(clock, repeat(0.5)), make_cell(), BUILT)
    assert (samples.data_wait_seconds, samples.max_queued_batches) == (None, None)


# Two levels


def test_a_window_with_two_levels_is_lengthened_four_times_and_summarised_by_its_mean(clock: Clock) -> None:
    levels = cycle([*[0.5] * 8, *[0.75] * 4])
    workload = ScriptedWorkload(clock, chain([7.0], repeat(0.5, 6), levels))
    phases, samples, _ = measure(workload, make_cell(num_steps=24), BUILT)
    assert (len(samples.step_seconds), phases.steady_seconds) == (96, 56.0)
    assert samples.summarized_by == "mean"
    assert samples.center_step_seconds == pytest.approx(7 / 12)


def test_a_window_is_lengthened_only_as_long_as_two_levels_are_seen(clock: Clock) -> None:
    # A jump in the first 24 steps, which is an outlier among 48.
    workload = ScriptedWorkload(clock, chain(repeat(0.5, 7), repeat(0.75, 4), repeat(0.5)))
    _, samples, _ = measure(workload, make_cell(num_steps=24), BUILT)
    assert (len(samples.step_seconds), samples.summarized_by, samples.center_step_seconds) == (48, "median", 0.5)


def test_events_are_there_for_every_step_of_a_lengthened_window(clock: Clock) -> None:
    levels = cycle([*[0.5] * 8, *[0.75] * 4])
    durations = chain([7.0], repeat(0.5, 6), levels)
    workload = ScriptedWorkload(clock, durations, is_asynchronous=True, device_timer=ScriptedTimer())
    _, samples, _ = measure(workload, make_cell(num_steps=24), BUILT)
    assert samples.device_step_seconds == samples.step_seconds
    assert len(samples.step_seconds) == 96
