"""How an attempt begins, and how it is cut short: the GPUs it sees, what a build decides, the steps that it keeps."""

import os
from typing import Any

import pytest

from bench.probes.cpu import THREAD_VARIABLES
from bench.schema import Cell, Failure, Result
from bench.worker.attempt import Attempt
from bench.worker.request import Order
from factories import make_cell
from fake_nvml import UUIDS, FakeNvml, install_nvml
from scripted_workload import Clock
from stub_framework import TEN_STEPS, StubFramework


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
