"""A clock or a driver that says nonsense costs a repeat, and never its record."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Any, Self

import pytest

from bench.measure.harness import measure as measure_steps
from bench.schema import CpuUse, Phases, Result, Samples
from stub_framework import StubFramework


class ClockOfTheEpoch(datetime):
    """A clock without a battery."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls(1970, 1, 1, 0, 5, tzinfo=tz)


def test_a_machine_whose_clock_was_never_set_loses_no_result(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.worker.attempt.datetime", ClockOfTheEpoch)
    result = attempt_with(StubFramework(), num_steps=2)
    assert result.status == "ok"
    assert result.started_at == datetime(2000, 1, 1, tzinfo=UTC)
    assert result.finished_at > result.started_at
    assert any("the machine's clock says 1970-01-01T00:05:00+00:00" in line for line in result.probe_failures)


def test_a_window_that_its_steps_contradict_makes_a_failed_record_with_what_was_measured(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(*args: Any) -> tuple[Phases, Samples, CpuUse | None]:
        phases, samples, cpu_use = measure_steps(*args)
        return phases.model_copy(update={"steady_seconds": 1e-9}), samples, cpu_use

    monkeypatch.setattr("bench.worker.attempt.measure", measure)
    result = attempt_with(StubFramework(), num_steps=2)
    assert result.status == "failed"
    assert result.error is not None
    assert "the measurement gave what no record can hold: " in result.error.message
    assert "step_seconds: sums to" in result.error.message
    assert result.samples is not None
    assert result.environment is not None


def test_a_peak_of_memory_that_cannot_be_costs_the_peaks_alone(attempt_with: Callable[..., Result]) -> None:
    framework = StubFramework()
    framework.read_peak_memory = lambda: (-1, -1)  # type: ignore[method-assign]
    result = attempt_with(framework, num_steps=2)
    assert (result.status, result.memory and result.memory.peak_rss_bytes) == ("ok", None)
    assert any("peak_memory_allocated_bytes" in line for line in result.probe_failures)
