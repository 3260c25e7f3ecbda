"""bench.tenants.tenant: which steps count, with steps of scripted lengths on a clock that only they move."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import cycle

import pytest

from bench.measure.harness import StepRecorder
from bench.schema import CommonWindow
from bench.tenants.meeting import NoCommonWindowError
from bench.tenants.tenant import TenantStepper
from scripted_workload import Clock, ScriptedWorkload
from tenancies import make_window


def make_stepper(clock: Clock, *durations: float) -> TenantStepper:
    """Return a tenant whose steps take these times in turns."""
    recorder = StepRecorder()
    recorder.warmup_steps.append(0.5)
    return TenantStepper(ScriptedWorkload(clock, cycle(durations)), recorder, clock.read)


def test_the_pace_is_the_mean_of_the_second_half_of_the_rehearsal() -> None:
    clock = Clock()
    # Steps of 0.5 s while the others begin, and then of 0.2 and 0.3 s in turns.
    durations = iter([0.5, 0.5, 0.2, 0.3, *([9.9] * 9)])
    stepper = TenantStepper(ScriptedWorkload(clock, durations), StepRecorder(), clock.read)
    assert stepper.rehearse() == pytest.approx(0.35)  # three steps in 1.2 s: the last two count
    assert clock.now == pytest.approx(101.2)


def test_steps_go_on_until_there_is_a_window() -> None:
    clock = Clock()
    answers: Iterator[CommonWindow | None] = iter([None, None, make_window(110.0)])
    assert make_stepper(clock, 0.125).await_window(lambda: next(answers)) == make_window(110.0)
    assert clock.now == pytest.approx(100.5)  # looked at once, and twice after 0.2 s and the rest of a step


def test_a_window_that_is_called_off_ends_the_steps() -> None:
    stepper = make_stepper(Clock(), 0.1)
    with pytest.raises(NoCommonWindowError, match="two machines"):
        stepper.await_window(lambda: CommonWindow(called_off="two machines"))


def test_the_steps_within_the_window_as_a_whole_count() -> None:
    clock, watched = Clock(), []

    @contextmanager
    def watch() -> Iterator[None]:
        watched.append(clock.now)
        yield
        watched.append(clock.now)

    window = make_window(101.0, seconds=2.0)
    stepper = make_stepper(clock, 0.375)
    stepper.run(window, watch)
    samples, seconds, lateness = stepper.select(window, reached_steady=True)
    # Steps begin at 100 + k * 0.375: the first within the window at 101.125, the last ends at 103.0.
    assert samples.step_seconds == (0.375,) * 5
    assert [seconds, lateness] == pytest.approx([1.875, 0.125])
    assert samples.warmup_step_seconds == (0.5,)
    assert samples.summarized_by == "mean"
    assert watched == [101.125, 103.0]


def test_a_window_shorter_than_a_step_holds_none() -> None:
    stepper = make_stepper(Clock(), 5.0)
    window = make_window(101.0, seconds=2.0)
    stepper.run(window, ignore)
    with pytest.raises(NoCommonWindowError, match="no step of this tenant lies within the window of 2.0 s"):
        stepper.select(window, reached_steady=True)


def test_a_tenant_that_began_late_was_not_in_the_window() -> None:
    clock = Clock()
    stepper = make_stepper(clock, 0.5)
    clock.now = 102.0
    window = make_window(101.0, seconds=4.0)
    stepper.run(window, ignore)
    with pytest.raises(NoCommonWindowError, match="did not step during the whole window"):
        stepper.select(window, reached_steady=True)


def ignore() -> AbstractContextManager[None]:
    """Watch nothing."""
    return contextmanager(lambda: iter([None]))()
