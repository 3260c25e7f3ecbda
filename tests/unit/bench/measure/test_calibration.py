"""The calibration of a machine: what is measured of which device, and that nothing of it ends an attempt."""

import pytest

from bench.measure import calibration
from bench.measure.calibration import PRODUCT_SIZE, calibrate_gpu
from bench.measure.harness import DeviceTimer, Feed
from bench.schema import Cell, Device
from bench.worker.observe import Observer
from factories import make_cell, make_environment, make_gpu
from stub_framework import StubFramework


class Gpu:
    """A GPU that works at its rate, by a clock of its own; launching a step takes no time."""

    now = 0.0
    device_timer: DeviceTimer | None = None
    feed: Feed | None = None

    def __init__(self, flops_per_second: float) -> None:
        self._seconds = 2 * PRODUCT_SIZE**3 / flops_per_second
        self._num_started = 0
        self.cells: list[Cell] = []

    def build(self, cell: Cell) -> "Gpu":
        self.cells.append(cell)
        return self

    def run_step(self) -> None:
        self._num_started += 1

    def synchronize(self) -> None:
        Gpu.now += self._num_started * self._seconds
        self._num_started = 0

    def spin_up(self) -> None: ...
    def reset_peak_memory(self) -> None: ...

    def device_kind(self) -> Device:
        return "gpu"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gpu, "now", 0.0)
    for module in ("harness", "passes", "calibration"):
        monkeypatch.setattr(f"bench.measure.{module}.perf_counter", lambda: Gpu.now)


@pytest.mark.usefixtures("clock")
def test_a_gpu_multiplies_in_the_cells_precision_and_copies_past_its_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "measure_gpu_copy", lambda num_bytes: 1e4 * num_bytes)
    gpu = Gpu(5e13)
    cell = make_cell(device="gpu", precision="bf16", batch_size=64)
    found = calibrate_gpu(cell, gpu.build, ["Tesla T4"])
    assert found.product_flops_per_second == pytest.approx(5e13)
    product = Cell.model_validate(gpu.cells[0].model_dump())
    assert (product.model, product.precision, product.batch_size, product.input_size) == ("matmul", "bf16", 1, 4096)
    assert (found.cache_bytes, found.copy_bytes) == (4 * 2**20, 128 * 2**20)
    assert found.copy_bytes_per_second == 1e4 * 128 * 2**20
    # a first step, half of the time to warm up, one step alone, and then 1.25 times the time back to back
    assert 0.3 < found.seconds < 0.4


def test_a_calibration_that_fails_is_noted_and_does_not_end_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    framework = StubFramework(RuntimeError("no room"))
    probes = Observer(make_cell(device="gpu"), 1)
    probes.calibrate(framework, make_environment(gpus=(make_gpu(),)))  # type: ignore[arg-type]  # no profiler
    assert probes.calibration is None
    assert probes.failures == ["calibration: RuntimeError: no room"]
