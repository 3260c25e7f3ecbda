"""CUDA's driver: why it does not start, whether MPS is in force, and copies, with drivers that only answer."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.probes import cuda
from bench.probes.cuda import COPIES_PER_BATCH, LIBRARY, explain_failed_start, measure_gpu_copy, read_mps_state
from stand_in_driver import CUDA_VARIABLE, compile_driver


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("driver") / "lib64")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("0", None),
        ("100", "CUDA does not start: cuInit ended with code 100, CUDA_ERROR_NO_DEVICE: no CUDA-capable device is"),
        ("4711", "CUDA does not start: cuInit ended with code 4711, which it has no name for"),
    ],
)
def test_cudas_own_code_says_why_it_does_not_start(
    driver: Path, monkeypatch: pytest.MonkeyPatch, code: str, expected: str | None
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    monkeypatch.setenv(CUDA_VARIABLE, code)
    answer = explain_failed_start()
    assert expected == (answer and answer[: len(expected or "")])


def test_a_library_that_cannot_be_loaded_is_named_with_the_loaders_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / LIBRARY).write_text("no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    answer = explain_failed_start()
    assert f"CUDA does not start: its driver library cannot be loaded ({tmp_path / LIBRARY}: file too short)" == answer


MIB = 2**20


class FakeDriver:
    """Functions of the driver that return codes; a copy takes its bytes over the bandwidth, by the driver's clock."""

    def __init__(self, bandwidth: float = 1e12, mps: int = 0, **codes: int) -> None:
        self.bandwidth, self.mps, self.codes, self.now = bandwidth, mps, codes, 0.0
        self.calls: list[str] = []

    def __getitem__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == "cuMemcpyDtoDAsync_v2":
                self.now += 2 * arguments[2].value / self.bandwidth
            if name == "cuDeviceGetAttribute":
                arguments[0]._obj.value = self.mps if arguments[1].value == 133 else 7  # behind byref
            return self.codes.get(name, 0)

        return call


def install(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver) -> FakeDriver:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver)
    monkeypatch.setattr(cuda, "perf_counter", lambda: driver.now)
    return driver


def test_the_frameworks_context_is_used_and_everything_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(monkeypatch, FakeDriver(bandwidth=1e12))
    assert measure_gpu_copy(MIB) == pytest.approx(1e12)  # a copied byte is one read and one written
    assert driver.calls.count("cuMemcpyDtoDAsync_v2") == cuda.NUM_BATCHES * COPIES_PER_BATCH
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


@pytest.mark.parametrize(
    ("driver", "state"),
    [(FakeDriver(mps=1), True), (FakeDriver(mps=0), False), (FakeDriver(cuDeviceGetAttribute=1), None)],
    ids=["in force", "not in force", "an older driver"],
)
def test_the_driver_says_whether_mps_is_in_force(
    monkeypatch: pytest.MonkeyPatch, driver: FakeDriver, state: bool | None
) -> None:
    install(monkeypatch, driver)
    assert read_mps_state() is state
