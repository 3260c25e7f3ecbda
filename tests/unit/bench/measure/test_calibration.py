"""The calibration of a machine: what is measured of which device, and that nothing of it ends an attempt."""

from itertools import repeat

import pytest

from bench.measure import calibration
from bench.measure.calibration import PRODUCT_SIZE, calibrate_gpu
from bench.schema import Cell
from bench.worker.observe import Observer
from factories import make_cell, make_environment, make_gpu
from scripted_workload import Clock, ScriptedWorkload
from stub_framework import StubFramework


def test_a_gpu_multiplies_in_the_cells_precision_and_copies_past_its_cache(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = []

    def build(cell: Cell) -> ScriptedWorkload:
        cells.append(cell)
        return ScriptedWorkload(clock, repeat(2 * PRODUCT_SIZE**3 / 5e13), is_asynchronous=True)

    monkeypatch.setattr(calibration, "measure_gpu_copy", lambda num_bytes: 1e4 * num_bytes)
    found = calibrate_gpu(make_cell(device="gpu", precision="bf16", batch_size=64), build, ["Tesla T4"])
    assert found.product_flops_per_second == pytest.approx(5e13)
    product = Cell.model_validate(cells[0].model_dump())
    assert (product.model, product.precision, product.batch_size, product.input_size) == ("matmul", "bf16", 1, 4096)
    assert (found.cache_bytes, found.copy_bytes) == (4 * 2**20, 128 * 2**20)
    assert found.copy_bytes_per_second == 1e4 * 128 * 2**20
    # a first step, half of the time to warm up, one step alone, and then 1.25 times the time back to back
    assert 0.3 < found.seconds < 0.4


def test_a_calibration_that_fails_is_noted_and_does_not_end_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    framework = StubFramework(RuntimeError("no room"))
    probes = Observer(make_cell(device="gpu"), 1)
    probes.calibrate(framework, make_environment(gpus=(make_gpu(),)))
    assert probes.calibration is None
    assert probes.failures == ["calibration: RuntimeError: no room"]
