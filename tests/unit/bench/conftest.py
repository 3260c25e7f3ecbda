"""Attempts in this process, with a stub as the framework, and GPUs for them."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.probes.cpu import THREAD_VARIABLES
from bench.schema import Calibration, Cell, Result
from bench.worker.attempt import Alone, Attempt
from bench.worker.request import Order
from factories import make_cell
from fake_nvml import FakeNvml, install_nvml
from stub_framework import StubFramework


@pytest.fixture
def attempt_with(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs an attempt in this process whose framework is a stub, or cannot be loaded."""
    for name in (*THREAD_VARIABLES, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")  # the attempt sets them for good

    def run(framework: StubFramework | Exception, visible: str | None = None, **fields: Any) -> Result:
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

        def load(cell: Cell, num_threads: int) -> Any:
            if isinstance(framework, Exception):
                raise framework
            return framework

        monkeypatch.setattr("bench.worker.attempt.load_framework", load)
        # It needs a GPU's memory; test_calibration.py is about it.
        monkeypatch.setattr("bench.worker.observe.calibrate_gpu", lambda *_: Calibration(seconds=0.0))
        # A stub's matrix products take no time, so that they go on for theirs: only where a test is about them.
        cell = make_cell(**({"sampling_seconds": 0.0} if fields.get("device") != "gpu" else {}) | fields)
        order = Order(cell=cell, run_id="r", repeat=1, attempt="a", store_url="-", image="i@sha256:0", git_revision="g")
        return Attempt(order, Alone(order)).run()

    return run


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Three idle GPUs, all of them visible, each looked at for an instant."""
    library = install_nvml(monkeypatch)
    monkeypatch.setattr("bench.probes.gpu.IDLE_SECONDS", 0.01)
    monkeypatch.setattr("bench.probes.gpu.SAMPLE_INTERVAL_SECONDS", 0.005)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return library
