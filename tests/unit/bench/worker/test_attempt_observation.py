"""One attempt from its start to what is observed around the window; the GPU is a fake."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from bench.probes.cpu import THREAD_VARIABLES
from bench.probes.memory import read_peak_rss_bytes
from bench.schema import Cell, Failure, GpuUse, Result
from bench.worker.attempt import Attempt
from bench.worker.observe import Observer
from bench.worker.request import Order
from factories import make_cell
from fake_nvml import MIB, UUIDS, FakeNvml, install_nvml
from scripted_workload import Clock
from stub_framework import TEN_STEPS, ProfiledFramework, StubFramework


class Unbuildable:
    """A framework that is there, decides on a switch and a version when it builds, and fails."""

    versions = {"stub": "1"}
    cudnn_version = None

    def __init__(self) -> None:
        self.settings: dict[str, str | int | bool] = {}
        self.cuda_version: str | None = None

    def build_workload(self, cell: Cell) -> None:
        self.settings["decided"], self.cuda_version = True, "12.8"
        raise MemoryError("no array")

    def is_out_of_memory(self, error: BaseException) -> bool:
        return True


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Three idle GPUs, looked at for an instant."""
    library = install_nvml(monkeypatch)
    monkeypatch.setattr("bench.probes.gpu.IDLE_SECONDS", 0.01)
    for name in (*THREAD_VARIABLES, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")  # the attempt sets them for good
    return library


def attempt(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> tuple[Result, str]:
    """Return the record, and CUDA_VISIBLE_DEVICES as the framework found it when it was loaded."""
    seen: list[str] = []

    def load(cell: Cell, num_threads: int) -> Unbuildable:
        seen.append(os.environ["CUDA_VISIBLE_DEVICES"])
        return Unbuildable()

    monkeypatch.setattr("bench.worker.attempt.load_framework", load)
    cell = make_cell(device="gpu", **fields)
    return Attempt(Order(cell=cell, run_id="r", repeat=1, attempt="a", store_url="-")).run(), seen[0]


def test_the_framework_is_loaded_with_the_gpus_of_its_cell_alone(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,1,0")
    result, seen = attempt(monkeypatch, num_gpus=2)
    uuids = [UUIDS[2], UUIDS[1]]
    assert seen == ",".join(uuids)
    assert [use.uuid for use in result.gpu_use] == uuids
    assert result.environment is not None
    assert [gpu.uuid for gpu in result.environment.gpus] == uuids


def test_what_a_build_decided_is_recorded_though_it_failed(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    result, _ = attempt(monkeypatch)
    assert (result.status, result.phases.build_seconds) == ("oom", None)
    assert result.environment is not None
    assert (result.environment.settings["decided"], result.environment.gpus[0].cuda_version) == (True, "12.8")


class CutShort(StubFramework):
    """A framework whose attempt is ended from outside before its tenth step; each step moves `clock` by a second."""

    def __init__(self, clock: Clock, attempt: Attempt) -> None:
        super().__init__()
        self._clock, self._attempt = clock, attempt
        self.record: Result | None = None

    def run_step(self) -> None:
        if self.num_steps == 9:
            self.record = self._attempt.cut_short("timeout", Failure(kind="timeout", message="out of time"))
        self._clock.advance(1.0)
        super().run_step()


def test_an_attempt_that_is_cut_short_keeps_the_steps_that_it_has(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("bench.measure.harness.perf_counter", clock.read)
    cell = make_cell(sampling_seconds=0.0, **TEN_STEPS)
    one = Attempt(Order(cell=cell, run_id="r", repeat=1, attempt="a", store_url="-"))
    framework = CutShort(clock, one)
    monkeypatch.setattr("bench.worker.attempt.load_framework", lambda cell, num_threads: framework)
    one.run()
    record = framework.record
    assert record is not None
    assert (record.status, record.error and record.error.message) == ("timeout", "out of time")
    assert record.samples is not None
    assert len(record.samples.step_seconds) == 2


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


@pytest.mark.parametrize(("asked", "recorded"), [(2**61, 2**61), (10**25, None)])
def test_an_attempt_that_asked_for_more_than_any_machine_has_still_ran_out_of_memory(
    attempt_with: Callable[..., Result], asked: int, recorded: int | None
) -> None:
    text = f"no room: Tried to allocate {asked} bytes"
    result = attempt_with(StubFramework(RuntimeError(text)), **TEN_STEPS)
    assert result.error is not None
    assert (result.status, result.error.kind, result.error.bytes_requested) == ("oom", "out-of-memory", recorded)
    assert result.error.message == f"RuntimeError: {text}"
    assert text in result.error.stderr_tail
    assert Result.model_validate_json(result.to_json()) == result


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Three idle GPUs, all of them visible."""
    library = install_nvml(monkeypatch)
    monkeypatch.setattr("bench.probes.gpu.IDLE_SECONDS", 0.01)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return library


def test_the_gpus_of_the_cell_are_read_around_the_window(gpus: FakeNvml) -> None:
    probes = Observer(make_cell(device="gpu", num_gpus=2), 1)
    probes.read_baseline()
    probes.end_idle_watch()
    gpus.energy_millijoules = [
        1_000_000,
        2_000_000,
        1_005_000,
        2_007_000,
    ]  # each GPU's before, each GPU's after
    with probes.watch_window():
        pass
    assert [use.uuid for use in probes.gpu_use] == [UUIDS[0], UUIDS[1]]
    assert [use.window and use.window.energy_joules for use in probes.gpu_use] == [5.0, 7.0]
    assert [use.idle_power_watts for use in probes.gpu_use] == [60.5, 60.5]
    assert probes.failures == []


def test_a_window_that_cannot_be_watched_is_run_all_the_same(gpus: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(uses: object) -> None:
        raise OSError("no counters")

    monkeypatch.setattr("bench.worker.observe.WindowWatch", fail)
    probes = Observer(make_cell(device="gpu"), 1)
    probes.read_baseline()
    probes.end_idle_watch()
    was_run = False
    with probes.watch_window():
        was_run = True
    assert (was_run, probes.gpu_use[0].window) == (True, None)
    assert probes.failures == ["GPUs in the window: OSError: no counters"]
