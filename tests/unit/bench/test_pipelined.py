"""Steps back to back with one synchronisation at the end, on a clock that only they move."""

from itertools import repeat

import pytest

from bench.measure.passes import run_pipelined
from scripted_workload import Clock, ScriptedWorkload


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("bench.measure.passes.perf_counter", clock.read)
    return clock


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


def test_work_left_over_from_before_is_not_in_the_window(clock: Clock) -> None:
    workload = ScriptedWorkload(clock, repeat(0.5), is_asynchronous=True)
    workload.run_step()
    assert run_pipelined(workload, 1.0, 1.0).seconds == 1.0
