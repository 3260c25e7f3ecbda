"""Steps that run on until their speed is flat, on a clock that only they move."""

from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from bench.measure.passes import find_flat_stretch, run_sustained
from bench.schema import SustainedRun
from scripted_workload import Clock, ScriptedWorkload


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("bench.measure.harness.perf_counter", clock.read)
    monkeypatch.setattr("bench.measure.passes.perf_counter", clock.read)
    return clock


def run(clock: Clock, durations: Iterator[float], max_seconds: float) -> SustainedRun:
    return run_sustained(ScriptedWorkload(clock, durations, is_asynchronous=True), max_seconds)


def test_a_flat_speed_ends_the_run_after_the_flat_stretch(clock: Clock) -> None:
    sustained = run(clock, repeat(0.5), 600.0)
    assert (sustained.window_step_seconds, sustained.seconds) == ((0.5,) * 6, 30.0)
    assert sustained.flat_after_seconds == 0.0


def test_a_device_that_slows_down_has_a_first_and_a_settled_speed(clock: Clock) -> None:
    # 20 s at 0.5 s a step, then 0.625 s for ever: 8 steps in each window of 5 s.
    sustained = run(clock, chain(repeat(0.5, 40), repeat(0.625)), 600.0)
    assert (sustained.window_step_seconds[0], sustained.window_step_seconds[-1]) == (0.5, 0.625)
    assert (sustained.flat_after_seconds, sustained.seconds) == (20.0, 50.0)


def test_a_speed_that_keeps_falling_is_not_called_flat(clock: Clock) -> None:
    sustained = run(clock, (0.5 * 1.001**number for number in range(10_000)), 60.0)
    assert sustained.flat_after_seconds is None
    assert 60.0 <= sustained.seconds < 66.0


@pytest.mark.parametrize(("last", "expected"), [(1.0099, 0.0), (1.0101, None)])
def test_windows_within_one_percent_of_each_other_are_flat(last: float, expected: float | None) -> None:
    assert find_flat_stretch([*[(5.0, 1.0)] * 6, (5.0, last)]) == expected
