"""Attempts in this process, with a stub as the framework: whatever happens, there is a record."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest

from bench.attempt import Attempt, summarize_error
from bench.device_profile import DeviceActivity
from bench.order import Order
from bench.probes.cpu import THREAD_VARIABLES
from bench.schema import Cell, Device, GpuUse, Result
from factories import make_cell
from fake_nvml import MIB, UUIDS, FakeNvml


class StubFramework:
    """A framework that is there; its model either cannot be built or does nothing, instantly."""

    versions = {"stub": "1"}
    settings: dict[str, str | int | bool] = {}
    cuda_version = None
    cudnn_version = None
    device_timer = None

    def __init__(self, error: Exception | None = None, *, late_error: Exception | None = None) -> None:
        self._error = error
        self._late_error = late_error
        """What every step raises after the first 10."""
        self.num_steps = 0

    def build_workload(self, cell: Cell) -> "StubFramework":
        if self._error is not None:
            raise self._error
        return self

    def run_step(self) -> None:
        if self._late_error is not None and self.num_steps == 10:
            raise self._late_error
        self.num_steps += 1

    def synchronize(self) -> None:
        pass

    def reset_peak_memory(self) -> None:
        pass

    def device_kind(self) -> Device:
        return "cpu"

    def read_peak_memory(self) -> tuple[int, int]:
        return 1000 + self.num_steps, 2000

    def is_out_of_memory(self, error: BaseException) -> bool:
        return "no room" in str(error)


class ProfiledFramework(StubFramework):
    """A framework whose profiler sees one kernel of a microsecond, however many steps are run."""

    profiler_name = "jax.profiler"

    def record_activities(self, run: Callable[[], None]) -> list[DeviceActivity]:
        run()
        return [DeviceActivity(device_index=0, kind="kernel", start_ns=0.0, end_ns=1e3)]


@pytest.fixture
def attempt_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Runs an attempt in this process whose framework is a stub, or cannot be loaded."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in (*THREAD_VARIABLES, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")  # the attempt sets them for good

    def run(framework: StubFramework | Exception, visible: str | None = None, **fields: Any) -> Result:
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

        def load(cell: Cell, num_threads: int) -> Any:
            if isinstance(framework, Exception):
                raise framework
            return framework

        monkeypatch.setattr("bench.attempt.load_framework", load)
        cell = make_cell(**fields)
        order = Order(cell=cell, run_id="r", repeat=1, attempt="a", store_url="-", image="i@sha256:0", git_revision="g")
        return Attempt(order).run()

    return run


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


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Three idle GPUs, looked at for an instant."""
    library = FakeNvml()
    monkeypatch.setattr("pynvml.nvmlLib", library)
    monkeypatch.setattr("pynvml._nvmlGetFunctionPointer_cache", {})
    monkeypatch.setattr("bench.probes.gpu.IDLE_SECONDS", 0.01)
    return library


# Six steps of warm-up at the least, the first step before them, and three timed ones.
TEN_STEPS = {
    "num_steps": 3,
    "max_warmup_seconds": 1e-9,
    "num_warmup_steps": 6,
    "min_seconds": 0.0,
    "num_profiled_steps": 0,
}


def test_a_gpu_cell_is_sampled_after_the_timing(attempt_with: Callable[..., Result], nvml: FakeNvml) -> None:
    framework = StubFramework()
    result = attempt_with(framework, device="gpu", num_gpus=2, sampling_seconds=0.01, visible="0,1", **TEN_STEPS)
    assert (result.status, result.probe_failures) == ("ok", ())
    assert [use.uuid for use in result.gpu_use] == [UUIDS[0], UUIDS[1]]
    assert {use.num_steps for use in result.gpu_use} == {framework.num_steps - 10}
    assert result.phases.steady_seconds is not None
    assert all(use.window and use.window.seconds >= result.phases.steady_seconds for use in result.gpu_use)
    assert result.phases.steady_seconds is not None
    assert all(use.window and use.window.seconds >= result.phases.steady_seconds for use in result.gpu_use)
    assert framework.num_steps > 10
    assert result.memory is not None
    assert result.memory.peak_memory_allocated_bytes == 1010  # read before the pass
    assert result.validity is not None
    assert result.validity.verdict == "wrong-device"  # the stub's output lives on the CPU


def test_no_sampling_pass_is_run_where_none_is_asked_for(attempt_with: Callable[..., Result], nvml: FakeNvml) -> None:
    framework = StubFramework()
    result = attempt_with(framework, device="gpu", sampling_seconds=0.0, visible="0", **TEN_STEPS)
    assert (framework.num_steps, result.gpu_use[0].window_seconds) == (10, None)


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


def test_a_window_that_cannot_be_watched_is_measured_all_the_same(
    attempt_with: Callable[..., Result], nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(uses: object) -> None:
        raise OSError("no counters")

    monkeypatch.setattr("bench.observation.WindowWatch", fail)
    result = attempt_with(StubFramework(), device="gpu", sampling_seconds=0.0, visible="0", **TEN_STEPS)
    assert (result.status, result.gpu_use[0].window) == ("ok", None)
    assert result.probe_failures == ("GPUs in the window: OSError: no counters",)


def test_the_framework_is_loaded_with_the_gpus_of_its_cell_alone(
    attempt_with: Callable[..., Result], nvml: FakeNvml
) -> None:
    attempt_with(StubFramework(), device="gpu", num_gpus=2, sampling_seconds=0.0, visible="2,1,0", **TEN_STEPS)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == f"{UUIDS[2]},{UUIDS[1]}"


def test_a_matrix_product_that_fails_costs_no_timing(attempt_with: Callable[..., Result]) -> None:
    result = attempt_with(StubFramework(late_error=RuntimeError("no product")), **TEN_STEPS)
    assert (result.status, result.probe_failures) == ("ok", ("peak of the host: RuntimeError: no product",))
    assert result.roofline is not None
    assert (result.roofline.peak_source, result.roofline.share_of_peak) == ("the host's peak was not measured", None)


def test_a_gpu_that_cannot_be_looked_at_is_noted(attempt_with: Callable[..., Result]) -> None:
    result = attempt_with(RuntimeError("stop here"), device="gpu", visible="0")
    (note,) = result.probe_failures
    assert note.startswith("GPU baseline: NVMLError")


def test_a_failed_attempt_claims_no_peak_of_a_gpu(attempt_with: Callable[..., Result]) -> None:
    result = attempt_with(StubFramework(RuntimeError("no room")))
    assert result.memory is not None
    assert (result.memory.peak_memory_allocated_bytes, result.memory.peak_memory_reserved_bytes) == (None, None)
    assert (result.memory.peak_rss_bytes or 0) > 0


def test_an_error_that_utf_8_cannot_hold_is_recorded_all_the_same(attempt_with: Callable[..., Result]) -> None:
    result = attempt_with(StubFramework(OSError("no file 'a\udcffb'")))
    assert result.error is not None
    assert result.error.message == "OSError: no file 'a?b'"
    assert Result.model_validate_json(result.to_json()) == result


def test_a_clock_that_is_set_back_meanwhile_costs_no_result(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    class GoingBack(datetime):
        hours = [12, 11]

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls(2026, 3, 1, cls.hours.pop(0), 0, tzinfo=tz)

    monkeypatch.setattr("bench.attempt.datetime", GoingBack)
    result = attempt_with(StubFramework())
    assert (result.status, result.started_at) == ("ok", datetime(2026, 3, 1, 12, 0, tzinfo=UTC))
    assert timedelta(0) < result.finished_at - result.started_at < timedelta(minutes=10)


@pytest.mark.parametrize(("device", "expected"), [("cpu", ""), ("gpu", "3")])
def test_a_cpu_cell_sees_no_gpu_and_a_gpu_cell_those_that_it_was_given(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, device: str, expected: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    attempt_with(RuntimeError("stop here"), device=device)
    assert (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["CUDA_DEVICE_ORDER"]) == (expected, "PCI_BUS_ID")


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
