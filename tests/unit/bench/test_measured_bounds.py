"""What this tool measures beyond the bounds of its documents loses no record."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Any, Self

import pytest

from bench.errors import UserError
from bench.measured_bounds import check_steps, describe_violation, make_record
from bench.schema import Failure, Memory, Result
from factories import make_result, make_roofline
from stub_framework import StubFramework


def list_fields(**changes: Any) -> dict[str, Any]:
    result = make_result(roofline=make_roofline())
    return {name: getattr(result, name) for name in Result.model_fields if name != "schema_version"} | changes


def test_a_record_within_its_bounds_is_as_it_was_measured() -> None:
    assert make_record(list_fields()) == Result(**list_fields())


def test_an_observation_beyond_its_bounds_is_left_out_and_named() -> None:
    broken = make_roofline().model_copy(update={"achieved_flops_per_second": 1e30})
    record = make_record(list_fields(roofline=broken, probe_failures=("before",)))
    assert (record.status, record.roofline) == ("ok", None)
    assert record.samples == make_result().samples
    assert record.probe_failures[0] == "before"
    assert "roofline.achieved_flops_per_second" in record.probe_failures[1]
    assert record.probe_failures[1].endswith("found 1e+30; left out")


def test_a_phase_beyond_its_bounds_makes_a_failed_record_that_names_it() -> None:
    broken = make_result().phases.model_copy(update={"steady_seconds": 0.0})
    record = make_record(list_fields(phases=broken))
    assert record.status == "failed"
    assert record.error is not None
    assert "phases.steady_seconds" in record.error.message
    assert (record.samples, record.environment) == (make_result().samples, make_result().environment)
    assert (record.phases.steady_seconds, record.phases.import_seconds) == (None, make_result().phases.import_seconds)
    assert [line.partition(":")[0] for line in record.probe_failures] == ["Result.phases.steady_seconds"]
    assert "0.000000001, found 0.0" in record.error.message
    assert Result.model_validate_json(record.to_json()) == record


def test_a_peak_of_memory_beyond_its_bounds_costs_that_peak_alone() -> None:
    memory = Memory(
        peak_rss_bytes=5, peak_cgroup_bytes=6, peak_memory_allocated_bytes=None, peak_memory_reserved_bytes=None
    )
    broken = memory.model_copy(update={"peak_cgroup_bytes": 2**63 - 4096, "peak_memory_reserved_bytes": -1})
    record = make_record(list_fields(memory=broken))
    assert (record.status, record.samples) == ("ok", make_result().samples)
    assert record.memory == memory.model_copy(update={"peak_cgroup_bytes": None})
    assert [line.partition(":")[0] for line in record.probe_failures] == [
        "Result.memory.peak_cgroup_bytes",
        "Result.memory.peak_memory_reserved_bytes",
    ]
    assert all(line.endswith("; left out") for line in record.probe_failures)


def test_an_attempt_that_ran_out_of_memory_says_so_whatever_its_peaks() -> None:
    error = Failure(kind="out-of-memory", message="CUDA out of memory", stderr_tail="Tried to allocate 20.00 GiB")
    broken = Memory(**dict.fromkeys(Memory.model_fields)).model_copy(update={"peak_rss_bytes": 2**62})
    fields = list_fields(status="oom", error=error, memory=broken, samples=None, validity=None)
    record = make_record(fields)
    assert (record.status, record.error) == ("oom", error)
    assert (record.phases, record.environment) == (make_result().phases, make_result().environment)
    assert (record.memory, len(record.probe_failures)) == (broken.model_copy(update={"peak_rss_bytes": None}), 1)


def test_steps_that_contradict_their_window_are_kept_in_a_failed_record() -> None:
    broken = make_result().phases.model_copy(update={"steady_seconds": 1e-6})
    record = make_record(list_fields(phases=broken))
    assert (record.status, record.samples, record.phases) == ("failed", make_result().samples, broken)
    assert record.error is not None
    assert "step_seconds: sums to" in record.error.message


@pytest.mark.parametrize(("seconds", "words"), [(0.0, "CLOCK_MONOTONIC"), (1e-10, "1e-10 s"), (90_000.0, "90,000 s")])
def test_a_step_that_no_record_can_hold_is_told_in_words(seconds: float, words: str) -> None:
    with pytest.raises(UserError, match=words):
        check_steps("timed window", [0.1, seconds])
    check_steps("timed window", [1e-9, 86_400.0])


def test_an_error_of_another_kind_is_no_violation() -> None:
    assert describe_violation(ValueError("x")) is None


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
