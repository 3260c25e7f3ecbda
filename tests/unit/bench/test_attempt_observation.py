"""What an attempt observes around its timing: GPUs, their window, the host's products. None of it costs the record."""

from collections.abc import Callable

import pytest

from bench.probes.memory import read_peak_rss_bytes
from bench.schema import Cell, GpuUse, Result
from fake_nvml import MIB, UUIDS, FakeNvml
from stub_framework import TEN_STEPS, ProfiledFramework, StubFramework


def test_a_gpu_cell_is_sampled_after_the_timing(attempt_with: Callable[..., Result], nvml: FakeNvml) -> None:
    framework = StubFramework()
    result = attempt_with(framework, device="gpu", num_gpus=2, sampling_seconds=0.01, visible="0,1", **TEN_STEPS)
    assert (result.status, result.probe_failures) == ("ok", ())
    assert [use.uuid for use in result.gpu_use] == [UUIDS[0], UUIDS[1]]
    assert {use.num_steps for use in result.gpu_use} == {framework.num_steps - 10}
    assert result.phases.steady_seconds is not None
    assert all(use.window and use.window.seconds >= result.phases.steady_seconds for use in result.gpu_use)
    assert framework.num_steps > 10
    assert result.memory is not None
    assert result.memory.peak_memory_allocated_bytes == 1010  # read before the pass
    assert result.validity is not None
    assert result.validity.verdict == "wrong-device"  # the stub's output lives on the CPU


def test_a_gpu_cell_is_profiled_after_the_timing(attempt_with: Callable[..., Result], nvml: FakeNvml) -> None:
    framework = ProfiledFramework()
    protocol = TEN_STEPS | {"sampling_seconds": 0.0, "num_profiled_steps": 2}
    result = attempt_with(framework, device="gpu", visible="0", **protocol)
    assert result.device_profile is not None
    assert (len(result.device_profile.step_seconds), framework.num_steps) == (2, 12)
    assert result.device_profile.kernel_seconds_per_step == pytest.approx(0.5e-6)
    assert result.memory is not None
    assert result.memory.peak_memory_allocated_bytes == 1010  # read before the pass
    assert Result.model_validate_json(result.to_json()) == result


@pytest.mark.parametrize("error", [RuntimeError("no room"), ValueError("CUDA error: an illegal access\nmore")])
def test_a_sampling_pass_that_fails_costs_no_timing(
    attempt_with: Callable[..., Result], nvml: FakeNvml, error: Exception
) -> None:
    framework = StubFramework(late_error=error)
    result = attempt_with(framework, device="gpu", visible="0", **TEN_STEPS)
    first_line = str(error).splitlines()[0]
    assert (f"sampling pass: {type(error).__name__}: {first_line}",) == result.probe_failures
    (use,) = result.gpu_use
    assert (result.status, use.window_seconds, use.memory_used_before_bytes) == ("ok", None, 3 * MIB)
    assert isinstance(use, GpuUse)


def test_matrix_products_that_fail_cost_no_timing(attempt_with: Callable[..., Result]) -> None:
    class NoProducts(StubFramework):
        def build_workload(self, cell: Cell) -> StubFramework:
            if cell.model == "matmul":
                raise RuntimeError("no product")
            return self

    result = attempt_with(NoProducts(), sampling_seconds=1.0, **TEN_STEPS)
    failures = [f"matrix product {when} the window: RuntimeError: no product" for when in ("before", "after")]
    assert (result.status, list(result.probe_failures)) == ("ok", failures)
    assert result.host_peak is not None
    assert (result.host_peak.before_flops_per_second, result.host_peak.after_flops_per_second) == (None, None)


def test_the_host_of_a_cpu_cell_is_measured_before_and_after_the_window(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = iter([2e11, 3e11])
    monkeypatch.setattr("bench.measure.host_peak.measure_matrix_product", lambda cell, build: next(rates))
    monkeypatch.setattr("bench.measure.host_peak.is_short_of_cores", lambda use, needed: False)
    framework = StubFramework()
    result = attempt_with(framework, sampling_seconds=1.0, **TEN_STEPS)
    assert result.host_peak is not None
    assert result.roofline is not None
    assert result.validity is not None
    assert (result.host_peak.before_flops_per_second, result.host_peak.after_flops_per_second) == (2e11, 3e11)
    assert result.roofline.peak_flops_per_second == result.host_peak.flops_per_second
    assert [note for note in result.validity.notes if "+50%" in note]


def test_the_matrix_product_before_the_window_enters_no_peak_of_memory(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_memory(cell: Cell, build: object) -> float:
        bytearray(2**29)[:: 2**12] = b"1" * 2**17  # touches every page of 512 MiB
        return 1e11

    monkeypatch.setattr("bench.measure.host_peak.measure_matrix_product", fill_memory)
    monkeypatch.setattr("bench.measure.host_peak.is_short_of_cores", lambda use, needed: False)
    before = read_peak_rss_bytes()
    result = attempt_with(StubFramework(), sampling_seconds=1.0, **TEN_STEPS)
    assert result.memory is not None
    assert result.memory.peak_rss_bytes is not None
    assert result.probe_failures == ()
    assert before <= result.memory.peak_rss_bytes < before + 2**28


@pytest.mark.parametrize("asked", [2**61, 10**25])
def test_an_attempt_that_asked_for_more_than_any_machine_has_still_ran_out_of_memory(
    attempt_with: Callable[..., Result], asked: int
) -> None:
    text = f"no room: Tried to allocate {asked} bytes"
    result = attempt_with(StubFramework(RuntimeError(text)), **TEN_STEPS)
    assert result.error is not None
    assert (result.status, result.error.kind, result.error.bytes_requested) == ("oom", "out-of-memory", None)
    assert result.error.message == f"RuntimeError: {text}"
    assert text in result.error.stderr_tail
    (note,) = result.probe_failures
    assert note.startswith("Result.error.bytes_requested: ")
    assert note.endswith("; left out")
    assert Result.model_validate_json(result.to_json()) == result
