"""The bandwidth of a GPU's memory, with a CUDA driver that only keeps time: what a real one does, only a GPU shows."""

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from bench.probes import cuda
from bench.probes.cuda import COPIES_PER_BATCH, measure_gpu_copy

MIB = 2**20


class FakeDriver:
    """Functions of the driver that return codes; a copy takes its bytes over the bandwidth, by the driver's clock."""

    def __init__(self, bandwidth: float, **codes: int) -> None:
        self.bandwidth, self.codes, self.now = bandwidth, codes, 0.0
        self.calls: list[str] = []

    def __getitem__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == "cuMemcpyDtoDAsync_v2":
                self.now += 2 * arguments[2].value / self.bandwidth
            return self.codes.get(name, 0)

        return call


def install(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver) -> FakeDriver:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver)
    monkeypatch.setattr(cuda, "perf_counter", lambda: driver.now)
    return driver


def test_a_copied_byte_is_one_read_and_one_written(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(monkeypatch, FakeDriver(bandwidth=3e12))
    assert measure_gpu_copy(128 * MIB) == pytest.approx(3e12)
    assert driver.calls.count("cuMemcpyDtoDAsync_v2") == cuda.NUM_BATCHES * COPIES_PER_BATCH


def test_the_frameworks_context_is_used_and_everything_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(monkeypatch, FakeDriver(bandwidth=1e12))
    measure_gpu_copy(MIB)
    around = [name for name in driver.calls if name not in ("cuMemcpyDtoDAsync_v2", "cuCtxSynchronize")]
    assert around == [
        "cuInit",
        "cuDeviceGet",
        "cuDevicePrimaryCtxRetain",
        "cuCtxPushCurrent_v2",
        "cuMemAlloc_v2",
        "cuMemAlloc_v2",
        "cuMemsetD8_v2",
        "cuMemFree_v2",
        "cuMemFree_v2",
        "cuCtxPopCurrent_v2",
        "cuDevicePrimaryCtxRelease_v2",
    ]
