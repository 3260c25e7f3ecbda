"""Attempts in this process, with a stub as the framework: whatever happens, there is a record."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self

import pytest

from bench.schema import Result
from bench.worker.failures import summarize_error
from fake_nvml import FakeNvml
from stub_framework import StubFramework


def test_an_attempt_records_image_revision_and_memory_at_the_end_of_the_window(
    attempt_with: Callable[..., Result],
) -> None:
    result = attempt_with(StubFramework(), num_steps=10)
    assert result.environment is not None
    assert result.memory is not None
    assert result.samples is not None
    assert (result.environment.image, result.environment.git_revision) == ("i@sha256:0", "g")
    steps = 1 + len(result.samples.warmup_step_seconds) + len(result.samples.step_seconds)
    assert result.memory.peak_memory_allocated_bytes == 1000 + steps
    assert result.memory.peak_memory_reserved_bytes == 2000


@pytest.mark.parametrize(
    ("framework", "expected"),
    [
        (ModuleNotFoundError("No module named 'torch'"), ("failed", "missing-framework")),
        (ImportError("libcudart.so.13: cannot open shared object file"), ("failed", "missing-framework")),
        (MemoryError(), ("oom", "out-of-memory")),
        (RuntimeError("driver too old"), ("failed", "exception")),
        (StubFramework(ImportError("late")), ("failed", "exception")),
        (StubFramework(MemoryError("no array")), ("oom", "out-of-memory")),
        (StubFramework(RuntimeError("no room for 5 bytes")), ("oom", "out-of-memory")),
        (StubFramework(ZeroDivisionError("division by zero")), ("failed", "exception")),
    ],
    ids=lambda value: repr(getattr(value, "_error", value)),
)
def test_what_is_raised_becomes_a_status_and_a_kind(
    attempt_with: Callable[..., Result], framework: StubFramework | Exception, expected: tuple[str, str]
) -> None:
    result = attempt_with(framework)
    assert result.error is not None
    assert (result.status, result.error.kind) == expected
    assert Result.model_validate_json(result.to_json()) == result


def test_a_clock_that_is_set_back_meanwhile_costs_no_result(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    class GoingBack(datetime):
        hours = [12, 11]

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls(2026, 3, 1, cls.hours.pop(0), 0, tzinfo=tz)

    monkeypatch.setattr("bench.worker.attempt.datetime", GoingBack)
    result = attempt_with(StubFramework())
    assert (result.status, result.started_at) == ("ok", datetime(2026, 3, 1, 12, 0, tzinfo=UTC))
    assert timedelta(0) < result.finished_at - result.started_at < timedelta(minutes=10)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo", "RuntimeError: one"),
        ("\n\n  one  \n", "RuntimeError: one"),
        ("", "RuntimeError: no message"),
        ("x" * 10_000, "RuntimeError: " + "x" * 486),
        (
            "Graph execution error:\n\nDetected at node x defined at:\nfile t\n\nfailed to allocate memory\n\t [[x]]",
            "RuntimeError: failed to allocate memory",
        ),
        (
            "Exception encountered when calling Conv2D.call().\n\n\x1b[1m{{node}} OOM when allocating tensor with "
            "shape[20000,32,32,64] and type float\x1b[0m\n",
            "RuntimeError: {{node}} OOM when allocating tensor with shape[20000,32,32,64] and type float",
        ),
    ],
)
def test_an_error_is_summarized_in_one_line(text: str, expected: str) -> None:
    assert summarize_error(RuntimeError(text)) == expected


@pytest.mark.parametrize(("state", "status"), [(False, "failed"), (True, "ok"), (None, "ok")])
def test_a_cell_that_is_alone_under_mps_fails_where_mps_is_not_in_force(
    attempt_with: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    nvml: FakeNvml,
    *,
    state: bool | None,
    status: str,
) -> None:
    monkeypatch.setattr("bench.worker.attempt.read_mps_state", lambda: state)
    fields = {"num_profiled_steps": 0, "pipelined_seconds": 0.0, "sampling_seconds": 0.0}
    result = attempt_with(StubFramework(), visible="0", device="gpu", sharing="mps", max_warmup_seconds=1e-9, **fields)
    assert result.status == status
    assert result.error is None or result.error.message.startswith("MPS is not in force: CUDA found no MPS daemon")
