"""Attempts in this process, with a stub as the framework and a fake NVML: whatever happens, there is a record."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Self

import pytest

from bench.measure.harness import measure as measure_steps
from bench.probes.memory import read_peak_rss_bytes
from bench.schema import Cell, CpuUse, Phases, Result, Samples
from bench.worker.failures import summarize_error
from factories import present
from fake_nvml import MIB, UUIDS, FakeNvml
from stub_framework import TEN_STEPS, ProfiledFramework, StubFramework

# How it ends


@pytest.mark.parametrize(
    ("framework", "expected"),
    [
        (ImportError("libcudart.so.13: cannot open shared object file"), ("failed", "missing-framework")),
        (MemoryError(), ("oom", "out-of-memory")),
        (RuntimeError("driver too old"), ("failed", "exception")),
        (StubFramework(ImportError("late")), ("failed", "exception")),
        (StubFramework(MemoryError("no array")), ("oom", "out-of-memory")),
        (StubFramework(RuntimeError("no room for 5 bytes")), ("oom", "out-of-memory")),
    ],
    ids=lambda value: repr(getattr(value, "_error", value)),
)
def test_what_is_raised_becomes_a_status_and_a_kind(
    attempt_with: Callable[..., Result], framework: StubFramework | Exception, expected: tuple[str, str]
) -> None:
    result = attempt_with(framework)
    assert (result.status, present(result.error).kind) == expected
    assert Result.model_validate_json(result.to_json()) == result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n\n  one  \ntwo", "RuntimeError: one"),
        ("", "RuntimeError: no message"),
        ("x" * 10_000, "RuntimeError: " + "x" * 486),
        (
            "Exception encountered when calling Conv2D.call().\n\n\x1b[1m{{node}} OOM when allocating tensor with "
            "shape[20000,32,32,64] and type float\x1b[0m\n",
            "RuntimeError: {{node}} OOM when allocating tensor with shape[20000,32,32,64] and type float",
        ),
    ],
)
def test_an_error_is_summarized_in_one_line(text: str, expected: str) -> None:
    assert summarize_error(RuntimeError(text)) == expected


@pytest.mark.parametrize(
    ("readings", "started_at"),
    [
        (["1970-01-01T00:05:00+00:00", "1970-01-01T00:06:00+00:00"], datetime(2000, 1, 1, tzinfo=UTC)),  # never set
        (["2026-03-01T12:00:00+00:00", "2026-03-01T11:00:00+00:00"], datetime(2026, 3, 1, 12, tzinfo=UTC)),  # set back
    ],
)
def test_a_clock_that_is_wrong_costs_no_result(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, readings: list[str], started_at: datetime
) -> None:
    times = iter(readings)

    class WrongClock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromisoformat(next(times))

    monkeypatch.setattr("bench.schema.document.datetime", WrongClock)
    result = attempt_with(StubFramework(), num_steps=2)
    assert (result.status, result.started_at) == ("ok", started_at)
    assert timedelta(0) < result.finished_at - result.started_at < timedelta(minutes=10)


def test_a_window_that_its_steps_contradict_makes_a_failed_record_with_what_was_measured(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(*args: Any) -> tuple[Phases, Samples, CpuUse | None]:
        phases, samples, cpu_use = measure_steps(*args)
        return phases.model_copy(update={"steady_seconds": 1e-9}), samples, cpu_use

    monkeypatch.setattr("bench.worker.attempt.measure", measure)
    result = attempt_with(StubFramework(), num_steps=2)
    assert result.error is not None
    assert "the measurement gave what no record can hold: " in result.error.message
    assert "step_seconds: sums to" in result.error.message
    assert (result.status, result.samples is None, result.environment is None) == ("failed", False, False)


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


# What is observed


class DecidingFramework(StubFramework):
    """Notes the GPUs that it sees, decides on a switch and a version when it builds, and fails."""

    def build_workload(self, cell: Cell) -> StubFramework:
        self.settings, self.cuda_version = {"seen": os.environ["CUDA_VISIBLE_DEVICES"]}, "12.8"  # type: ignore[assignment]
        raise MemoryError("no array")


def test_a_framework_sees_the_gpus_of_its_cell_and_what_a_failed_build_decided_is_recorded(
    attempt_with: Callable[..., Result], nvml: FakeNvml
) -> None:
    result = attempt_with(DecidingFramework(), visible="2,1,0", device="gpu", num_gpus=2)
    uuids = [UUIDS[2], UUIDS[1]]
    assert (result.status, result.phases.build_seconds) == ("oom", None)
    assert [use.uuid for use in result.gpu_use] == uuids
    assert result.environment is not None
    assert result.environment.settings["seen"] == ",".join(uuids)
    assert [(gpu.uuid, gpu.cuda_version) for gpu in result.environment.gpus] == [(uuid, "12.8") for uuid in uuids]


def test_a_gpu_cell_is_sampled_and_profiled_after_the_timing(
    attempt_with: Callable[..., Result], nvml: FakeNvml
) -> None:
    framework = ProfiledFramework()
    protocol = TEN_STEPS | {"sampling_seconds": 0.01, "num_profiled_steps": 2}
    result = attempt_with(framework, device="gpu", num_gpus=2, visible="0,1", **protocol)
    assert (result.status, result.probe_failures) == ("ok", ())
    assert result.environment is not None
    assert (result.environment.image, result.environment.git_revision) == ("i@sha256:0", "g")
    assert [use.uuid for use in result.gpu_use] == [UUIDS[0], UUIDS[1]]
    assert {use.idle_power_watts for use in result.gpu_use} == {60.5}
    assert {use.num_steps for use in result.gpu_use} == {framework.num_steps - 12}
    assert framework.num_steps > 12
    assert all(use.window and use.window.seconds >= present(result.phases.steady_seconds) for use in result.gpu_use)
    assert result.device_profile is not None
    assert len(result.device_profile.step_seconds) == 2
    assert result.device_profile.kernel_seconds_per_step == pytest.approx(0.5e-6)
    assert result.memory is not None
    assert result.memory.peak_memory_allocated_bytes == 1010  # read before the passes
    assert result.memory.peak_memory_reserved_bytes == 2000
    assert present(result.validity).verdict == "wrong-device"  # the stub's output lives on the CPU
    assert Result.model_validate_json(result.to_json()) == result


def test_probes_that_fail_are_named_and_cost_no_timing(
    attempt_with: Callable[..., Result], nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError("no counters")

    monkeypatch.setattr("bench.probes.gpu.GpuProbe.watch_window", fail)
    framework = ProfiledFramework(late_error=ValueError("CUDA error: an illegal access\nmore"))
    protocol = TEN_STEPS | {"num_profiled_steps": 2}
    result = attempt_with(framework, device="gpu", visible="0", **protocol)
    assert result.probe_failures == (
        "GPUs in the window: OSError: no counters",
        "sampling pass: ValueError: CUDA error: an illegal access",
        "profiler pass: ValueError: CUDA error: an illegal access",
    )
    (use,) = result.gpu_use
    assert (result.status, use.window, use.window_seconds, use.memory_used_before_bytes) == ("ok", None, None, 3 * MIB)


def test_the_host_of_a_cpu_cell_is_measured_around_the_window_and_its_product_enters_no_peak_of_memory(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = iter([2e11, 3e11])

    def fill_memory(cell: Cell, build: object) -> tuple[float, float]:
        bytearray(2**29)[:: 2**12] = b"1" * 2**17  # touches every page of 512 MiB
        return next(rates), 2.0

    monkeypatch.setattr("bench.worker.observe.measure_matrix_product", fill_memory)
    monkeypatch.setattr("bench.measure.host_peak.is_short_of_cores", lambda use, needed: False)
    before = read_peak_rss_bytes()
    result = attempt_with(StubFramework(), sampling_seconds=1.0, **TEN_STEPS)
    assert result.probe_failures == ()
    assert result.host_peak is not None
    assert (result.host_peak.before_flops_per_second, result.host_peak.after_flops_per_second) == (2e11, 3e11)
    assert present(result.roofline).peak_flops_per_second == result.host_peak.flops_per_second
    assert [note for note in present(result.validity).notes if "+50%" in note]
    assert before <= (present(result.memory).peak_rss_bytes or 0) < before + 2**28
